//! The plugin's functions, independent of WIT.

use keywright_plugin_support::{Failure, Fields, Generator, KeyFormat, KeyPair, Violation};
use p256::elliptic_curve::Generate;
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use ssh_key::private::EcdsaKeypair;

use crate::curve::Curve;

/// The canonical parameters of a key pair.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Parameters {
    pub(crate) curve: Curve,
    pub(crate) format: KeyFormat,
    /// The comment of a key in SSH format, or empty.
    pub(crate) ssh_comment: String,
}

/// Generates key pairs in SSH format (RFC 5656), or as PKCS#8 with a private key of RFC 5915.
///
/// Random private keys outside the order of the curve's group are discarded, so that all keys are equally likely (FIPS 186-5,
/// appendix A.2.2).
pub struct Ecdsa;

impl Generator for Ecdsa {
    type Parameters = Parameters;
    type Value = KeyPair;

    fn take(fields: &mut Fields) -> Result<Parameters, Violation> {
        let curve = Curve::take(fields)?;
        let (format, ssh_comment) = KeyFormat::take(fields)?;
        Ok(Parameters {
            curve,
            format,
            ssh_comment,
        })
    }

    fn make(parameters: Parameters, random: &mut impl CryptoRng) -> Result<KeyPair, Failure> {
        let Parameters {
            curve,
            format,
            ssh_comment,
        } = parameters;
        match format {
            KeyFormat::Ssh => {
                let keys = EcdsaKeypair::random(random, curve.for_ssh()).map_err(|error| {
                    Failure::Other(format!("could not generate a key: {error}"))
                })?;
                KeyPair::for_ssh(keys.into(), ssh_comment)
            }
            KeyFormat::Pkcs8 => pkcs8(curve, random),
        }
    }

    fn check(value: &str, _random: &mut impl CryptoRng) -> Result<KeyPair, Failure> {
        KeyPair::check(value)
    }
}

fn pkcs8(curve: Curve, random: &mut impl CryptoRng) -> Result<KeyPair, Failure> {
    match curve {
        Curve::P256 => {
            let key = p256::SecretKey::generate_from_rng(random);
            KeyPair::as_pkcs8(&key, &key.public_key())
        }
        Curve::P384 => {
            let key = p384::SecretKey::generate_from_rng(random);
            KeyPair::as_pkcs8(&key, &key.public_key())
        }
        Curve::P521 => {
            let key = p521::SecretKey::generate_from_rng(random);
            KeyPair::as_pkcs8(&key, &key.public_key())
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use p256::pkcs8::{DecodePrivateKey, EncodePublicKey, LineEnding};
    use rand::{SeedableRng, rngs::ChaCha12Rng};
    use serde_json::{Value, json};
    use ssh_key::{PrivateKey, PublicKey};

    use super::*;
    use crate::{PARAMETERS_SCHEMA, VALUE_SCHEMA};

    pub(crate) const CURVES: [&str; 3] = ["p256", "p384", "p521"];

    pub(crate) fn generated(parameters: &Value, seed: u64) -> Value {
        let parameters = Ecdsa::normalize(&parameters.to_string(), "{}").unwrap();
        let random = &mut ChaCha12Rng::seed_from_u64(seed);
        serde_json::from_str(&Ecdsa::generate(&parameters, "{}", random).unwrap()).unwrap()
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
            ("{}", r#"{"curve":"p256","format":"ssh","ssh_comment":""}"#),
            (
                r#"{"ssh_comment":"ada@host","curve":"p521"}"#,
                r#"{"curve":"p521","format":"ssh","ssh_comment":"ada@host"}"#,
            ),
            (
                r#"{"format":"pkcs8","curve":"p384"}"#,
                r#"{"curve":"p384","format":"pkcs8","ssh_comment":""}"#,
            ),
        ] {
            assert_eq!(Ecdsa::normalize(given, "{}").unwrap(), expected);
            assert_eq!(Ecdsa::normalize(expected, "{}").unwrap(), expected);
            let canonical = serde_json::from_str(expected).unwrap();
            assert!(matches(PARAMETERS_SCHEMA, &canonical));
        }
    }

    #[test]
    fn unknown_curve_is_reported() {
        for curve in [json!("secp256k1"), json!("P-256"), json!(256)] {
            let parameters = json!({"curve": curve}).to_string();
            let Err(Failure::InvalidParameters(violation)) = Ecdsa::normalize(&parameters, "{}")
            else {
                panic!("{curve} was accepted")
            };
            assert_eq!(violation.field.as_deref(), Some("curve"));
        }
    }

    #[test]
    fn ssh_pair_is_one_key_with_the_comment_in_both() {
        for (curve, name) in CURVES.into_iter().zip(["nistp256", "nistp384", "nistp521"]) {
            let value = generated(&json!({"curve": curve, "ssh_comment": "ada @ host"}), 1);
            assert!(matches(VALUE_SCHEMA, &value));
            let line = value["public_key"].as_str().unwrap();
            assert!(
                line.starts_with(&format!("ecdsa-sha2-{name} AAAA")),
                "{line}"
            );
            assert!(line.ends_with(" ada @ host"), "{line}");
            let private_key =
                PrivateKey::from_openssh(value["private_key"].as_str().unwrap()).unwrap();
            assert_eq!(
                private_key.public_key(),
                &PublicKey::from_openssh(line).unwrap()
            );
            assert_eq!(value["public_key_fingerprint"].as_str().unwrap().len(), 43);
        }
    }

    #[test]
    fn pkcs8_pair_is_one_key_without_a_fingerprint() {
        for curve in CURVES {
            let value = generated(&json!({"curve": curve, "format": "pkcs8"}), 1);
            assert!(matches(VALUE_SCHEMA, &value));
            assert_eq!(value["public_key_fingerprint"], Value::Null);
            let private_key = value["private_key"].as_str().unwrap();
            let public_key = match curve {
                "p256" => p256::SecretKey::from_pkcs8_pem(private_key)
                    .unwrap()
                    .public_key()
                    .to_public_key_pem(LineEnding::LF),
                "p384" => p384::SecretKey::from_pkcs8_pem(private_key)
                    .unwrap()
                    .public_key()
                    .to_public_key_pem(LineEnding::LF),
                _ => p521::SecretKey::from_pkcs8_pem(private_key)
                    .unwrap()
                    .public_key()
                    .to_public_key_pem(LineEnding::LF),
            };
            assert_eq!(value["public_key"], public_key.unwrap());
        }
    }

    #[test]
    fn same_random_stream_yields_same_key() {
        for curve in CURVES {
            for format in ["ssh", "pkcs8"] {
                let parameters = json!({"curve": curve, "format": format});
                assert_eq!(generated(&parameters, 1), generated(&parameters, 1));
                assert_ne!(generated(&parameters, 1), generated(&parameters, 2));
            }
        }
    }
}
