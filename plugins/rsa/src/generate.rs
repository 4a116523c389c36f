//! The plugin's functions, independent of WIT.

use keywright_plugin_support::{Failure, Fields, Generator, KeyLength, Violation};
use rand_core::CryptoRng;
use rsa::{
    RsaPrivateKey,
    pkcs1::EncodeRsaPrivateKey,
    pkcs8::{EncodePublicKey, LineEnding},
};
use serde::{Deserialize, Serialize};

/// The canonical parameters of a key pair.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Parameters {
    pub(crate) key_length: KeyLength,
}

/// A key pair, PEM.
#[derive(Serialize)]
pub struct KeyPair {
    public_key: Option<String>,
    private_key: Option<String>,
}

/// Generates key pairs with the public exponent 65537.
pub struct Rsa;

impl Generator for Rsa {
    type Parameters = Parameters;
    type Value = KeyPair;

    fn take(fields: &mut Fields) -> Result<Parameters, Violation> {
        let key_length = KeyLength::take(fields)?;
        Ok(Parameters { key_length })
    }

    fn make(parameters: Parameters, random: &mut impl CryptoRng) -> Result<KeyPair, Failure> {
        let key = RsaPrivateKey::new(random, parameters.key_length.bits())
            .map_err(|error| Failure::Other(format!("could not generate a key: {error}")))?;
        let not_encoded = || Failure::Other("could not encode the key".to_owned());
        let public_key = key
            .to_public_key()
            .to_public_key_pem(LineEnding::LF)
            .map_err(|_| not_encoded())?;
        let private_key = key
            .to_pkcs1_pem(LineEnding::LF)
            .map_err(|_| not_encoded())?;
        Ok(KeyPair {
            public_key: Some(public_key),
            private_key: Some(private_key.to_string()),
        })
    }

    /// Checks a key pair that a caller sets. At least one of the keys is required; an empty key counts as absent.
    ///
    /// The contents of the keys are not checked.
    fn check(value: &str, _random: &mut impl CryptoRng) -> Result<KeyPair, Failure> {
        parse_value(value).map_err(Failure::InvalidValue)
    }
}

fn parse_value(value: &str) -> Result<KeyPair, Violation> {
    let mut fields = Fields::parse(value)?;
    let key_pair = KeyPair {
        public_key: fields.take_filled_text("public_key")?,
        private_key: fields.take_filled_text("private_key")?,
    };
    fields.finish()?;
    if key_pair.public_key.is_none() && key_pair.private_key.is_none() {
        return Err(Violation::of_whole(
            "at least one of public_key and private_key is required",
        ));
    }
    Ok(key_pair)
}

#[cfg(test)]
pub(crate) mod tests {
    use rand::{SeedableRng, rngs::ChaCha12Rng};
    use rsa::{
        RsaPublicKey,
        pkcs1::DecodeRsaPrivateKey,
        pkcs8::DecodePublicKey,
        traits::{PrivateKeyParts, PublicKeyParts},
    };
    use serde_json::{Value, json};

    use super::*;
    use crate::{PARAMETERS_SCHEMA, VALUE_SCHEMA};

    pub(crate) fn generated(key_length: usize, seed: u64) -> Value {
        let parameters =
            Rsa::normalize(&json!({"key_length": key_length}).to_string(), "{}").unwrap();
        let random = &mut ChaCha12Rng::seed_from_u64(seed);
        serde_json::from_str(&Rsa::generate(&parameters, "{}", random).unwrap()).unwrap()
    }

    fn accepted(value: &Value) -> Result<Value, Failure> {
        let random = &mut ChaCha12Rng::seed_from_u64(1);
        let accepted = Rsa::accept(&value.to_string(), "{}", random)?;
        Ok(serde_json::from_str(&accepted).unwrap())
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
            ("{}", r#"{"key_length":2048}"#),
            (r#"{"key_length":3072}"#, r#"{"key_length":3072}"#),
            (r#"{"key_length":4096}"#, r#"{"key_length":4096}"#),
        ] {
            assert_eq!(Rsa::normalize(given, "{}").unwrap(), expected);
            assert_eq!(Rsa::normalize(expected, "{}").unwrap(), expected);
            assert!(matches(
                PARAMETERS_SCHEMA,
                &serde_json::from_str(expected).unwrap()
            ));
        }
    }

    #[test]
    fn unknown_parameter_is_reported() {
        assert_eq!(
            Rsa::normalize(r#"{"length":30}"#, "{}"),
            Err(Failure::InvalidParameters(Violation::of(
                "length",
                "is unknown"
            )))
        );
    }

    #[test]
    fn keys_of_a_pair_match_and_have_the_requested_length() {
        for (bits, seed) in [(2048, 1), (3072, 2)] {
            let value = generated(bits, seed);
            assert!(matches(VALUE_SCHEMA, &value));
            let private_pem = value["private_key"].as_str().unwrap();
            let public_pem = value["public_key"].as_str().unwrap();
            let private_key = RsaPrivateKey::from_pkcs1_pem(private_pem).unwrap();
            let public_key = RsaPublicKey::from_public_key_pem(public_pem).unwrap();
            private_key.validate().unwrap();
            assert_eq!(private_key.to_public_key(), public_key);
            assert_eq!(public_key.n().bits() as usize, bits);
            assert_eq!(public_key.e_bytes().as_ref(), [1, 0, 1]);
            assert_eq!(private_key.primes().len(), 2);
        }
    }

    #[test]
    fn pem_has_lines_of_64_characters_and_a_final_line_feed() {
        let value = generated(2048, 1);
        for (field, label) in [
            ("private_key", "RSA PRIVATE KEY"),
            ("public_key", "PUBLIC KEY"),
        ] {
            let pem = value[field].as_str().unwrap();
            assert!(pem.starts_with(&format!("-----BEGIN {label}-----\n")));
            assert!(pem.ends_with(&format!("\n-----END {label}-----\n")));
            assert!(!pem.contains('\r'));
            let lines: Vec<&str> = pem.lines().filter(|line| !line.starts_with('-')).collect();
            let (last, others) = lines.split_last().unwrap();
            assert!(others.iter().all(|line| line.len() == 64) && last.len() <= 64);
        }
    }

    #[test]
    fn another_random_stream_yields_another_key() {
        assert_eq!(generated(2048, 1), generated(2048, 1));
        assert_ne!(generated(2048, 1), generated(2048, 3));
    }

    #[test]
    fn one_key_is_enough_and_an_empty_key_is_absent() {
        for value in [
            json!({"public_key": "no PEM at all"}),
            json!({"public_key": "no PEM at all", "private_key": ""}),
            json!({"public_key": "no PEM at all", "private_key": null}),
        ] {
            let key_pair = accepted(&value).unwrap();
            assert_eq!(
                key_pair,
                json!({"public_key": "no PEM at all", "private_key": null})
            );
            assert!(matches(VALUE_SCHEMA, &key_pair));
        }
        let key_pair = accepted(&json!({"private_key": "x", "public_key": ""})).unwrap();
        assert_eq!(key_pair, json!({"public_key": null, "private_key": "x"}));
    }

    #[test]
    fn invalid_key_pairs_are_rejected() {
        for (value, field) in [
            (json!({}), None),
            (json!({"public_key": "", "private_key": ""}), None),
            (json!({"public_key": 5}), Some("public_key")),
            (
                json!({"public_key": "x", "certificate": "y"}),
                Some("certificate"),
            ),
            (json!([]), None),
        ] {
            let Err(Failure::InvalidValue(violation)) = accepted(&value) else {
                panic!("{value} was accepted")
            };
            assert_eq!(violation.field.as_deref(), field, "{value}");
        }
    }
}
