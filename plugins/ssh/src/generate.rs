//! The plugin's functions, independent of WIT.

use keywright_plugin_support::{
    Failure, Fields, Generator, KeyLength, KeyPair, Recovered, Violation, ssh_fingerprint,
    take_ssh_comment,
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
    key_length: KeyLength,
    /// The comment at the end of the public key's line, or empty.
    ssh_comment: String,
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

/// Returns the stored parameters. Without stored parameters, reads them from the line with the public key.
///
/// If the public key is absent, malformed or not RSA, or has a length that can't be requested, the result has default parameters
/// and is incomplete.
pub fn recover(parameters: Option<String>, value: &str) -> Result<Recovered, Failure> {
    Recovered::of_key_pair(parameters, value, parameters_of)
}

fn parameters_of(public_key: &str) -> Option<Parameters> {
    let key = PublicKey::from_openssh(public_key).ok()?;
    let modulus = key.key_data().rsa()?.n().as_positive_bytes()?;
    let leading_zeros = modulus.first()?.leading_zeros();
    let bits = i64::try_from(modulus.len()).ok()? * 8 - i64::from(leading_zeros);
    Some(Parameters {
        key_length: KeyLength::of_bits(bits)?,
        ssh_comment: key.comment().as_str().ok()?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::ChaCha12Rng};
    use serde_json::{Value, json};

    use super::*;
    use crate::PARAMETERS_SCHEMA;

    fn generated(parameters: &Value) -> Value {
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
    fn public_key_line_determines_length_and_comment() {
        for (parameters, comment) in [
            (
                json!({"key_length": 3072, "ssh_comment": "ada @ host"}),
                "ada @ host",
            ),
            (json!({"key_length": 3072}), ""),
        ] {
            let value = json!({"public_key": generated(&parameters)["public_key"]}).to_string();
            let expected = json!({"key_length": 3072, "ssh_comment": comment}).to_string();
            assert_eq!(
                recover(None, &value).unwrap(),
                Recovered {
                    parameters: expected,
                    is_complete: true
                }
            );
        }
    }

    #[test]
    fn unusable_public_key_yields_defaults() {
        for public_key in [
            json!(null),
            json!("ssh-rsa"),
            json!("ssh-rsa !!!!"),
            json!(
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti x"
            ),
        ] {
            let value = json!({"public_key": public_key}).to_string();
            let expected = r#"{"key_length":2048,"ssh_comment":""}"#.to_owned();
            assert_eq!(
                recover(None, &value).unwrap(),
                Recovered {
                    parameters: expected,
                    is_complete: false
                }
            );
        }
    }
}
