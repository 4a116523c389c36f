//! The plugin's functions, independent of WIT.

use keywright_plugin_support::{Failure, Fields, Generator, KeyLength, Recovered, Violation};
use rand_core::CryptoRng;
use rsa::{
    RsaPrivateKey, RsaPublicKey,
    pkcs1::{DecodeRsaPublicKey, EncodeRsaPrivateKey},
    pkcs8::{DecodePublicKey, EncodePublicKey, LineEnding},
    traits::PublicKeyParts,
};
use serde::{Deserialize, Serialize};

/// The canonical parameters of a key pair.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Parameters {
    key_length: KeyLength,
}

/// A key pair, in PEM.
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

/// Returns the stored parameters. Without stored parameters, reads them from the public key.
///
/// If the public key is absent or malformed, or has a length that can't be requested, the result has default parameters and is
/// incomplete.
pub fn recover(parameters: Option<String>, value: &str) -> Result<Recovered, Failure> {
    Recovered::of_key_pair(parameters, value, parameters_of)
}

fn parameters_of(public_key: &str) -> Option<Parameters> {
    let key = RsaPublicKey::from_public_key_pem(public_key)
        .ok()
        .or_else(|| RsaPublicKey::from_pkcs1_pem(public_key).ok())?;
    Some(Parameters {
        key_length: KeyLength::of_bits(key.n().bits().into())?,
    })
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::ChaCha12Rng};
    use rsa::{
        pkcs1::{DecodeRsaPrivateKey, EncodeRsaPublicKey},
        traits::PrivateKeyParts,
    };
    use serde_json::{Value, json};

    use super::*;
    use crate::{PARAMETERS_SCHEMA, VALUE_SCHEMA};

    fn generated(key_length: usize, seed: u64) -> Value {
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

    #[test]
    fn stored_parameters_are_returned_unchanged() {
        let stored = r#"{"key_length":4096}"#.to_owned();
        let recovered = recover(Some(stored.clone()), r#"{"public_key":null}"#).unwrap();
        assert_eq!(
            recovered,
            Recovered {
                parameters: stored,
                is_complete: true
            }
        );
    }

    #[test]
    fn public_key_determines_the_length() {
        let public_key = generated(3072, 2)["public_key"].clone();
        let key = RsaPublicKey::from_public_key_pem(public_key.as_str().unwrap()).unwrap();
        let pkcs1 = key.to_pkcs1_pem(rsa::pkcs8::LineEnding::CRLF).unwrap();
        for public_key in [public_key, json!(pkcs1)] {
            let value = json!({"public_key": public_key}).to_string();
            let recovered = recover(None, &value).unwrap();
            let expected = Recovered {
                parameters: r#"{"key_length":3072}"#.to_owned(),
                is_complete: true,
            };
            assert_eq!(recovered, expected);
        }
    }

    #[test]
    fn unusable_public_key_yields_defaults() {
        let odd = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDBo4FV3n2RcDsszxLG7dz14SCJ
DNLKE1J84t52WxN3RJACmVHQdAjRXlio4MKHSOjKkEGm9ZicsTI7GHcyTj0AOC5s
+NH4dk17aTWa3MXobSbBCw45tdUeH9MvrcJ/rcp7tbN0YDhPlA01tdBC27TOC69t
FOkx3JpI0T9hpnBCWwIDAQAB
-----END PUBLIC KEY-----
";
        for public_key in [json!(null), json!("no PEM"), json!(odd)] {
            let value = json!({"public_key": public_key}).to_string();
            let recovered = recover(None, &value).unwrap();
            let expected = Recovered {
                parameters: r#"{"key_length":2048}"#.to_owned(),
                is_complete: false,
            };
            assert_eq!(recovered, expected);
        }
    }
}
