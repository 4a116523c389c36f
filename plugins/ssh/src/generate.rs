//! The plugin's functions, independent of WIT.

use keywright_plugin_support::{
    Failure, Fields, Generator, KeyLength, KeyPair, Violation, ssh_fingerprint, take_ssh_comment,
};
use rand_core::CryptoRng;
use rsa::{
    RsaPrivateKey, RsaPublicKey,
    pkcs1::{EncodeRsaPrivateKey, LineEnding},
    traits::PublicKeyParts,
};
use serde::{Deserialize, Serialize};
use ssh_key::{Mpint, PublicKey, public};

/// The canonical parameters of a key pair.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Parameters {
    pub(crate) key_length: KeyLength,
    /// The comment at the end of the public key's line, or empty.
    pub(crate) ssh_comment: String,
}

/// Generates key pairs with the public exponent 65537.
pub struct Ssh;

impl Generator for Ssh {
    type Parameters = Parameters;
    type Value = KeyPair;

    fn take(fields: &mut Fields) -> Result<Parameters, Violation> {
        Ok(Parameters {
            key_length: KeyLength::take(fields)?,
            ssh_comment: take_ssh_comment(fields)?,
        })
    }

    fn make(parameters: Parameters, random: &mut impl CryptoRng) -> Result<KeyPair, Failure> {
        let key = RsaPrivateKey::new(random, parameters.key_length.bits())
            .map_err(|error| Failure::Other(format!("could not generate a key: {error}")))?;
        let not_encoded = || Failure::Other("could not encode the key".to_owned());
        let private_key = key
            .to_pkcs1_pem(LineEnding::LF)
            .map_err(|_| not_encoded())?;
        let public_key =
            public_key(&key.to_public_key(), parameters.ssh_comment).map_err(|_| not_encoded())?;
        Ok(KeyPair {
            public_key: Some(public_key.to_openssh().map_err(|_| not_encoded())?),
            private_key: Some(private_key.to_string()),
            public_key_fingerprint: Some(ssh_fingerprint(&public_key)),
        })
    }

    fn check(value: &str, _random: &mut impl CryptoRng) -> Result<KeyPair, Failure> {
        KeyPair::check(value)
    }
}

fn public_key(key: &RsaPublicKey, comment: String) -> ssh_key::Result<PublicKey> {
    let exponent = Mpint::from_positive_bytes(&key.e_bytes());
    let modulus = Mpint::from_positive_bytes(&key.n_bytes());
    let key = public::RsaPublicKey::new(exponent, modulus)?;
    Ok(PublicKey::new(key.into(), comment))
}

#[cfg(test)]
pub(crate) mod tests {
    use rand::{SeedableRng, rngs::ChaCha12Rng};
    use rsa::pkcs1::DecodeRsaPrivateKey;
    use serde_json::{Value, json};

    use super::*;
    use crate::{PARAMETERS_SCHEMA, VALUE_SCHEMA};

    pub(crate) fn generated(parameters: &Value) -> Value {
        let parameters = Ssh::normalize(&parameters.to_string(), "{}").unwrap();
        let random = &mut ChaCha12Rng::seed_from_u64(5);
        serde_json::from_str(&Ssh::generate(&parameters, "{}", random).unwrap()).unwrap()
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
            ("{}", r#"{"key_length":2048,"ssh_comment":""}"#),
            (
                r#"{"ssh_comment":null}"#,
                r#"{"key_length":2048,"ssh_comment":""}"#,
            ),
            (
                r#"{"ssh_comment":"ada@host","key_length":4096}"#,
                r#"{"key_length":4096,"ssh_comment":"ada@host"}"#,
            ),
        ] {
            assert_eq!(Ssh::normalize(given, "{}").unwrap(), expected);
            assert_eq!(Ssh::normalize(expected, "{}").unwrap(), expected);
            assert!(matches(
                PARAMETERS_SCHEMA,
                &serde_json::from_str(expected).unwrap()
            ));
        }
    }

    #[test]
    fn comment_must_not_contain_line_breaks() {
        for comment in ["a\nssh-rsa AAAA", "a\r", "\u{0}", "\u{85}"] {
            let Err(Failure::InvalidParameters(violation)) =
                Ssh::normalize(&json!({"ssh_comment": comment}).to_string(), "{}")
            else {
                panic!("{comment:?} was accepted")
            };
            assert_eq!(violation.field.as_deref(), Some("ssh_comment"));
        }
    }

    #[test]
    fn line_contains_public_key_and_comment() {
        let value = generated(&json!({"ssh_comment": "ada lovelace, ünïcode"}));
        assert!(matches(VALUE_SCHEMA, &value));
        let line = value["public_key"].as_str().unwrap();
        assert!(line.starts_with("ssh-rsa AAAAB3NzaC1yc2E"));
        assert!(line.ends_with(" ada lovelace, ünïcode"));
        let key = PublicKey::from_openssh(line).unwrap();
        let private_key =
            RsaPrivateKey::from_pkcs1_pem(value["private_key"].as_str().unwrap()).unwrap();
        let expected = public_key(&private_key.to_public_key(), key.comment().to_string()).unwrap();
        assert_eq!(key, expected);
    }

    #[test]
    fn line_without_comment_ends_with_the_key() {
        let value = generated(&json!({}));
        let line = value["public_key"].as_str().unwrap();
        assert_eq!(line.split(' ').count(), 2);
        assert!(!line.ends_with(char::is_whitespace));
    }

    #[test]
    fn fingerprint_matches_ssh_keygen() {
        // The output of `ssh-keygen -l` for the line.
        let line = include_str!("../tests/keys/ada.pub");
        let key = PublicKey::from_openssh(line).unwrap();
        assert_eq!(
            ssh_fingerprint(&key),
            "LSNnWGRxjajAnit6qsn3OXQ8dVk2wn9us9MHPeyKuPw"
        );
    }
}
