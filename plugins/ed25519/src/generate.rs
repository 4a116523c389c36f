//! The plugin's functions, independent of WIT.

use ed25519_dalek::{
    SigningKey, VerifyingKey,
    pkcs8::{DecodePublicKey, KeypairBytes},
};
use keywright_plugin_support::{
    Failure, Fields, Generator, KeyFormat, KeyPair, Recovered, Violation,
};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use ssh_key::{
    PublicKey,
    private::{Ed25519Keypair, Ed25519PrivateKey},
    public::Ed25519PublicKey,
};

/// The canonical parameters of a key pair.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Parameters {
    format: KeyFormat,
    /// The comment of a key in SSH format, or empty.
    ssh_comment: String,
}

/// Generates key pairs in SSH format (RFC 8709) or as PKCS#8 (RFC 8410). Many programs do not support version 2 of PKCS#8, which
/// includes the public key, so the version is 1.
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

/// Returns the stored parameters. Without stored parameters, reads them from the public key.
///
/// If the public key is absent, malformed or not Ed25519, the result has default parameters and is incomplete.
pub fn recover(parameters: Option<String>, value: &str) -> Result<Recovered, Failure> {
    Recovered::of_key_pair(parameters, value, parameters_of)
}

fn parameters_of(public_key: &str) -> Option<Parameters> {
    if VerifyingKey::from_public_key_pem(public_key).is_ok() {
        return Some(Parameters {
            format: KeyFormat::Pkcs8,
            ssh_comment: String::new(),
        });
    }
    let key = PublicKey::from_openssh(public_key).ok()?;
    key.key_data().ed25519()?;
    Some(Parameters {
        format: KeyFormat::Ssh,
        ssh_comment: key.comment().as_str().ok()?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::{Signer, Verifier, pkcs8::DecodePrivateKey};
    use rand::{SeedableRng, rngs::ChaCha12Rng};
    use serde_json::{Value, json};

    use super::*;
    use crate::VALUE_SCHEMA;

    fn generated(parameters: &Value, seed: u64) -> Value {
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
}
