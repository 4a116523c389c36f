//! The plugin's functions, independent of WIT.

use ed25519_dalek::{SigningKey, pkcs8::KeypairBytes};
use keywright_plugin_support::{Failure, Fields, Generator, KeyFormat, KeyPair, Violation};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use ssh_key::{
    private::{Ed25519Keypair, Ed25519PrivateKey},
    public::Ed25519PublicKey,
};

/// The canonical parameters of a key pair.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Parameters {
    pub(crate) format: KeyFormat,
    /// The comment of a key in SSH format, or empty.
    pub(crate) ssh_comment: String,
}

/// Generates key pairs in SSH format (RFC 8709), or as PKCS#8 version 1 (RFC 8410), because many programs do not support version
/// 2, which includes the public key.
pub struct Ed25519;

impl Generator for Ed25519 {
    type Parameters = Parameters;
    type Value = KeyPair;

    fn take(fields: &mut Fields) -> Result<Parameters, Violation> {
        let (format, ssh_comment) = KeyFormat::take(fields)?;
        Ok(Parameters {
            format,
            ssh_comment,
        })
    }

    fn make(parameters: Parameters, random: &mut impl CryptoRng) -> Result<KeyPair, Failure> {
        let key = SigningKey::generate(random);
        match parameters.format {
            KeyFormat::Ssh => {
                let keys = Ed25519Keypair {
                    public: Ed25519PublicKey(key.verifying_key().to_bytes()),
                    private: Ed25519PrivateKey::from_bytes(key.as_bytes()),
                };
                KeyPair::for_ssh(keys.into(), parameters.ssh_comment)
            }
            KeyFormat::Pkcs8 => {
                let private_key = KeypairBytes {
                    secret_key: key.to_bytes(),
                    public_key: None,
                };
                KeyPair::as_pkcs8(&private_key, &key.verifying_key())
            }
        }
    }

    fn check(value: &str, _random: &mut impl CryptoRng) -> Result<KeyPair, Failure> {
        KeyPair::check(value)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use ed25519_dalek::{
        Signer, Verifier, VerifyingKey,
        pkcs8::{DecodePrivateKey, DecodePublicKey},
    };
    use rand::{SeedableRng, rngs::ChaCha12Rng};
    use serde_json::{Value, json};
    use ssh_key::{PrivateKey, PublicKey};

    use super::*;
    use crate::{PARAMETERS_SCHEMA, VALUE_SCHEMA};

    pub(crate) fn generated(parameters: &Value, seed: u64) -> Value {
        let parameters = Ed25519::normalize(&parameters.to_string(), "{}").unwrap();
        let random = &mut ChaCha12Rng::seed_from_u64(seed);
        serde_json::from_str(&Ed25519::generate(&parameters, "{}", random).unwrap()).unwrap()
    }

    fn matches(schema: &str, instance: &Value) -> bool {
        let schema: Value = serde_json::from_str(schema).unwrap();
        jsonschema::draft202012::new(&schema)
            .unwrap()
            .is_valid(instance)
    }

    #[test]
    fn normalize_fills_in_defaults_and_is_idempotent() {
        for (given, expected) in [
            ("{}", r#"{"format":"ssh","ssh_comment":""}"#),
            (
                r#"{"ssh_comment":"ada@host"}"#,
                r#"{"format":"ssh","ssh_comment":"ada@host"}"#,
            ),
            (
                r#"{"format":"pkcs8"}"#,
                r#"{"format":"pkcs8","ssh_comment":""}"#,
            ),
        ] {
            assert_eq!(Ed25519::normalize(given, "{}").unwrap(), expected);
            assert_eq!(Ed25519::normalize(expected, "{}").unwrap(), expected);
            let canonical = serde_json::from_str(expected).unwrap();
            assert!(matches(PARAMETERS_SCHEMA, &canonical));
        }
    }

    #[test]
    fn ssh_pair_is_one_key_with_the_comment_in_both() {
        let value = generated(&json!({"ssh_comment": "ada lovelace, ünïcode"}), 1);
        assert!(matches(VALUE_SCHEMA, &value));
        let line = value["public_key"].as_str().unwrap();
        assert!(line.starts_with("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI"));
        assert!(line.ends_with(" ada lovelace, ünïcode"));
        let private_key = PrivateKey::from_openssh(value["private_key"].as_str().unwrap()).unwrap();
        assert_eq!(
            private_key.public_key(),
            &PublicKey::from_openssh(line).unwrap()
        );
        let keys = private_key.key_data().ed25519().unwrap();
        let key = SigningKey::from_bytes(&keys.private.to_bytes());
        assert_eq!(key.verifying_key().to_bytes(), keys.public.0);
        assert_eq!(value["public_key_fingerprint"].as_str().unwrap().len(), 43);
    }

    #[test]
    fn pkcs8_pair_is_version_1_without_a_fingerprint() {
        let value = generated(&json!({"format": "pkcs8"}), 1);
        assert!(matches(VALUE_SCHEMA, &value));
        assert_eq!(value["public_key_fingerprint"], Value::Null);
        let private_key = value["private_key"].as_str().unwrap();
        // The single line of 48 bytes in RFC 8410, section 10.3.
        assert!(private_key.starts_with("-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEI"));
        assert_eq!(private_key.lines().count(), 3);
        let key = SigningKey::from_pkcs8_pem(private_key).unwrap();
        let public_key =
            VerifyingKey::from_public_key_pem(value["public_key"].as_str().unwrap()).unwrap();
        let signature = key.sign(b"message");
        assert!(public_key.verify(b"message", &signature).is_ok());
    }

    #[test]
    fn same_random_stream_yields_same_key() {
        for parameters in [json!({}), json!({"format": "pkcs8"})] {
            assert_eq!(generated(&parameters, 1), generated(&parameters, 1));
            assert_ne!(generated(&parameters, 1), generated(&parameters, 2));
        }
    }
}
