//! The messages of `key_management.proto`, written by hand so that the build needs no protocol buffer compiler.

use std::fmt;

use zeroize::ZeroizeOnDrop;

/// A request for the protocol version.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct VersionRequest {
    #[prost(string, tag = "1")]
    pub(crate) version: String,
}

/// The versions of the protocol and the plugin.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct VersionResponse {
    #[prost(string, tag = "1")]
    pub(crate) version: String,
    #[prost(string, tag = "2")]
    pub(crate) runtime_name: String,
    #[prost(string, tag = "3")]
    pub(crate) runtime_version: String,
}

/// A plaintext to encrypt. Copies inside the transport are not zeroized.
#[derive(Clone, PartialEq, Eq, prost::Message, ZeroizeOnDrop)]
#[prost(skip_debug)]
pub(crate) struct EncryptRequest {
    #[prost(string, tag = "1")]
    pub(crate) version: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) plain: Vec<u8>,
}

/// An encrypted plaintext.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct EncryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) cipher: Vec<u8>,
}

/// A ciphertext to decrypt.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct DecryptRequest {
    #[prost(string, tag = "1")]
    pub(crate) version: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) cipher: Vec<u8>,
}

/// A decrypted ciphertext. Copies inside the transport are not zeroized.
#[derive(Clone, PartialEq, Eq, prost::Message, ZeroizeOnDrop)]
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
    use kms_server::messages;
    use prost::Message;

    use super::*;

    /// Compares with the wire format: a byte with the field's number and type (2: bytes), the length, the bytes. Also checks the
    /// example plugin's own message types.
    fn assert_is_written<M, E>(bytes: &[u8], message: &M)
    where
        M: Message + Default + PartialEq + std::fmt::Debug,
        E: Message + Default,
    {
        assert_eq!(message.encode_to_vec(), bytes);
        assert_eq!(M::decode(bytes).unwrap(), *message);
        let of_example = E::decode(bytes).unwrap();
        assert_eq!(of_example.encode_to_vec(), bytes);
    }

    #[test]
    fn messages_have_the_fields_of_the_protocol() {
        let version = || "v1beta1".to_owned();
        assert_is_written::<_, messages::VersionRequest>(
            b"\x0a\x07v1beta1",
            &VersionRequest { version: version() },
        );
        assert_is_written::<_, messages::VersionResponse>(
            b"\x0a\x07v1beta1\x12\x01n\x1a\x011",
            &VersionResponse {
                version: version(),
                runtime_name: "n".to_owned(),
                runtime_version: "1".to_owned(),
            },
        );
        assert_is_written::<_, messages::EncryptRequest>(
            b"\x0a\x07v1beta1\x12\x02\x07\x08",
            &EncryptRequest {
                version: version(),
                plain: vec![7, 8],
            },
        );
        assert_is_written::<_, messages::EncryptResponse>(
            b"\x0a\x01\x09",
            &EncryptResponse { cipher: vec![9] },
        );
        assert_is_written::<_, messages::DecryptRequest>(
            b"\x0a\x07v1beta1\x12\x01\x09",
            &DecryptRequest {
                version: version(),
                cipher: vec![9],
            },
        );
        assert_is_written::<_, messages::DecryptResponse>(
            b"\x0a\x01\x07",
            &DecryptResponse { plain: vec![7] },
        );
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
