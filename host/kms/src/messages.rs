//! The messages of `key_management.proto`. They are written by hand: it is three calls, and the build then needs no compiler
//! for protocol buffers.

use std::fmt;

/// Asks for the version of the protocol.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct VersionRequest {
    #[prost(string, tag = "1")]
    pub(crate) version: String,
}

/// What the plugin is.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct VersionResponse {
    #[prost(string, tag = "1")]
    pub(crate) version: String,
    #[prost(string, tag = "2")]
    pub(crate) runtime_name: String,
    #[prost(string, tag = "3")]
    pub(crate) runtime_version: String,
}

/// Bytes to encrypt.
#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct EncryptRequest {
    #[prost(string, tag = "1")]
    pub(crate) version: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) plain: Vec<u8>,
}

/// Bytes that were encrypted.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct EncryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) cipher: Vec<u8>,
}

/// Bytes to decrypt.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct DecryptRequest {
    #[prost(string, tag = "1")]
    pub(crate) version: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) cipher: Vec<u8>,
}

/// Bytes that were decrypted.
#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
pub(crate) struct DecryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) plain: Vec<u8>,
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
    use prost::Message;

    use super::*;

    /// The wire format, written out by hand: a byte of the field's number and its type (2: bytes), a length, the bytes.
    #[test]
    fn messages_have_the_fields_of_the_protocol() {
        let version = "v1beta1".to_owned();
        let request = VersionRequest {
            version: version.clone(),
        };
        assert_eq!(request.encode_to_vec(), b"\x0a\x07v1beta1");
        let response = VersionResponse {
            version: version.clone(),
            runtime_name: "n".to_owned(),
            runtime_version: "1".to_owned(),
        };
        assert_eq!(
            response.encode_to_vec(),
            b"\x0a\x07v1beta1\x12\x01n\x1a\x011"
        );
        let request = EncryptRequest {
            version: version.clone(),
            plain: vec![7, 8],
        };
        assert_eq!(request.encode_to_vec(), b"\x0a\x07v1beta1\x12\x02\x07\x08");
        let response = EncryptResponse { cipher: vec![9] };
        assert_eq!(response.encode_to_vec(), b"\x0a\x01\x09");
        let request = DecryptRequest {
            version,
            cipher: vec![9],
        };
        assert_eq!(request.encode_to_vec(), b"\x0a\x07v1beta1\x12\x01\x09");
        let response = DecryptResponse { plain: vec![7] };
        assert_eq!(response.encode_to_vec(), b"\x0a\x01\x07");
    }

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
