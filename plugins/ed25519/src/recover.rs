//! Recovers the parameters of a stored key pair.

use ed25519_dalek::{VerifyingKey, pkcs8::DecodePublicKey};
use keywright_plugin_support::{Failure, KeyFormat, Recovered};
use ssh_key::PublicKey;

use crate::generate::Parameters;

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
    use serde_json::{Value, json};

    use super::*;
    use crate::generate::tests::generated;

    fn recovered(public_key: &Value) -> (Value, bool) {
        let value = json!({"public_key": public_key}).to_string();
        let recovered = recover(None, &value).unwrap();
        let parameters = serde_json::from_str(&recovered.parameters).unwrap();
        (parameters, recovered.is_complete)
    }

    #[test]
    fn stored_parameters_are_returned_unchanged() {
        let stored = r#"{"format":"pkcs8","ssh_comment":""}"#.to_owned();
        let recovered = recover(Some(stored.clone()), r#"{"public_key":null}"#).unwrap();
        let expected = Recovered {
            parameters: stored,
            is_complete: true,
        };
        assert_eq!(recovered, expected);
    }

    #[test]
    fn public_key_determines_format_and_comment() {
        for parameters in [
            json!({"format": "ssh", "ssh_comment": "ada @ host"}),
            json!({"format": "ssh", "ssh_comment": ""}),
            json!({"format": "pkcs8", "ssh_comment": ""}),
        ] {
            let public_key = &generated(&parameters, 3)["public_key"];
            assert_eq!(recovered(public_key), (parameters, true));
        }
    }

    #[test]
    fn unusable_public_key_yields_defaults() {
        let other = include_str!("../../ssh/tests/keys/ada.pub");
        assert!(PublicKey::from_openssh(other).is_ok());
        for public_key in [json!(null), json!("ssh-ed25519 !!!!"), json!(other)] {
            let defaults = json!({"format": "ssh", "ssh_comment": ""});
            assert_eq!(recovered(&public_key), (defaults, false), "{public_key}");
        }
    }
}
