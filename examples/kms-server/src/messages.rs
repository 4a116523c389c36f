//! The messages of `host/kms/key_management.proto`. Those that hold a key do not show it.
//!
//! Keywright has the same in a crate of its own. They are written again here so that this example stands alone, as a plugin of
//! another's does; a test of that crate holds the two against each other.

use std::fmt;

/// Asks for the version of the protocol.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct VersionRequest {
    /// The version that is asked for.
    #[prost(string, tag = "1")]
    pub version: String,
}

/// What the plugin is.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct VersionResponse {
    /// The version that the plugin speaks.
    #[prost(string, tag = "1")]
    pub version: String,
    /// The plugin's name.
    #[prost(string, tag = "2")]
    pub runtime_name: String,
    /// The plugin's own version.
    #[prost(string, tag = "3")]
    pub runtime_version: String,
}

/// Bytes to encrypt.
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

/// Bytes that were encrypted.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct EncryptResponse {
    /// The bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub cipher: Vec<u8>,
}

/// Bytes to decrypt.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DecryptRequest {
    /// The version of the protocol.
    #[prost(string, tag = "1")]
    pub version: String,
    /// The bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub cipher: Vec<u8>,
}

/// Bytes that were decrypted.
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
