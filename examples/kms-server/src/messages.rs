//! The messages of `host/kms/key_management.proto`. `Debug` does not show keys.
//!
//! Keywright's own crate defines the same messages. The example repeats them so that it does not depend on that crate, like any other
//! plugin. A test in that crate compares both.

use std::fmt;

/// A request for the protocol version.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct VersionRequest {
    /// The requested version.
    #[prost(string, tag = "1")]
    pub version: String,
}

/// The versions of the protocol and the plugin.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct VersionResponse {
    /// The plugin's protocol version.
    #[prost(string, tag = "1")]
    pub version: String,
    /// The plugin's name.
    #[prost(string, tag = "2")]
    pub runtime_name: String,
    /// The version of the plugin.
    #[prost(string, tag = "3")]
    pub runtime_version: String,
}

/// A plaintext to encrypt.
#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub struct EncryptRequest {
    /// The version of the protocol.
    #[prost(string, tag = "1")]
    pub version: String,
    /// The bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub plain: Vec<u8>,
}

/// An encrypted plaintext.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct EncryptResponse {
    /// The bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub cipher: Vec<u8>,
}

/// A ciphertext to decrypt.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DecryptRequest {
    /// The version of the protocol.
    #[prost(string, tag = "1")]
    pub version: String,
    /// The bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub cipher: Vec<u8>,
}

/// A decrypted ciphertext.
#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub struct DecryptResponse {
    /// The bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub plain: Vec<u8>,
}

impl fmt::Debug for EncryptRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("EncryptRequest(redacted)")
    }
}

impl fmt::Debug for DecryptResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DecryptResponse(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_plaintext() {
        let request = EncryptRequest {
            version: String::new(),
            plain: vec![113; 4],
        };
        let response = DecryptResponse {
            plain: vec![113; 4],
        };
        assert!(!format!("{request:?}{response:?}").contains("113"));
    }
}
