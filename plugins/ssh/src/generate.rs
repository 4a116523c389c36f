//! The plugin's functions, independent of WIT.

use keywright_plugin_support::{
    Failure, Fields, KeyLength, KeyPair, Violation, canonical, no_settings, ssh_fingerprint,
    take_ssh_comment, to_json,
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
pub(crate) struct Parameters {
    pub(crate) key_length: KeyLength,
    /// The comment at the end of the public key's line, or empty.
    pub(crate) ssh_comment: String,
}

/// Converts parameters to their canonical form, in which every parameter is present.
pub fn normalize(parameters: &str, settings: &str) -> Result<String, Failure> {
    no_settings(settings)?;
    let parameters = parse(parameters).map_err(Failure::InvalidParameters)?;
    to_json(&parameters)
}

/// Generates a key pair from canonical parameters and returns it as JSON.
///
/// The public exponent is 65537.
pub fn generate(
    parameters: &str,
    settings: &str,
    random: &mut impl CryptoRng,
) -> Result<String, Failure> {
    no_settings(settings)?;
    let Parameters {
        key_length,
        ssh_comment,
    } = canonical(parameters)?;
    let key = RsaPrivateKey::new(random, key_length.bits())
        .map_err(|error| Failure::Other(format!("could not generate a key: {error}")))?;
    let not_encoded = || Failure::Other("could not encode the key".to_owned());
    let private_key = key
        .to_pkcs1_pem(LineEnding::LF)
        .map_err(|_| not_encoded())?;
    let public_key = public_key(&key.to_public_key(), ssh_comment).map_err(|_| not_encoded())?;
    to_json(&KeyPair {
        public_key: Some(public_key.to_openssh().map_err(|_| not_encoded())?),
        private_key: Some(private_key.to_string()),
        public_key_fingerprint: Some(ssh_fingerprint(&public_key)),
    })
}

fn parse(parameters: &str) -> Result<Parameters, Violation> {
    let mut fields = Fields::parse(parameters)?;
    let parameters = Parameters {
        key_length: KeyLength::take(&mut fields)?,
        ssh_comment: take_ssh_comment(&mut fields)?,
    };
    fields.finish()?;
    Ok(parameters)
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
        let parameters = normalize(&parameters.to_string(), "{}").unwrap();
        let random = &mut ChaCha12Rng::seed_from_u64(5);
        serde_json::from_str(&generate(&parameters, "{}", random).unwrap()).unwrap()
    }

    fn accepted(value: &Value) -> Result<Value, Failure> {
        Ok(serde_json::from_str(&KeyPair::accept(&value.to_string(), "{}")?).unwrap())
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
            assert_eq!(normalize(given, "{}").unwrap(), expected);
            assert_eq!(normalize(expected, "{}").unwrap(), expected);
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
                normalize(&json!({"ssh_comment": comment}).to_string(), "{}")
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

    #[test]
    fn key_that_is_set_has_no_fingerprint() {
        for value in [
            json!({"public_key": "ssh-rsa AAAA", "public_key_fingerprint": "abc"}),
            json!({"public_key": "ssh-rsa AAAA", "private_key": ""}),
        ] {
            let key_pair = accepted(&value).unwrap();
            assert_eq!(
                key_pair,
                json!({"public_key": "ssh-rsa AAAA", "private_key": null, "public_key_fingerprint": null})
            );
            assert!(matches(VALUE_SCHEMA, &key_pair));
        }
    }

    #[test]
    fn invalid_key_pairs_are_rejected() {
        for (value, field) in [
            (json!({}), None),
            (json!({"public_key": "", "private_key": ""}), None),
            (json!({"public_key_fingerprint": "abc"}), None),
            (json!({"private_key": []}), Some("private_key")),
            (json!({"public_key": "x", "comment": "y"}), Some("comment")),
        ] {
            let Err(Failure::InvalidValue(violation)) = accepted(&value) else {
                panic!("{value} was accepted")
            };
            assert_eq!(violation.field.as_deref(), field, "{value}");
        }
    }
}
