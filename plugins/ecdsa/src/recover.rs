//! Recovers the parameters of a stored key pair.

use keywright_plugin_support::{Failure, KeyFormat, Recovered};
use p256::pkcs8::DecodePublicKey;
use ssh_key::PublicKey;

use crate::{curve::Curve, generate::Parameters};

/// Returns the stored parameters. Without stored parameters, reads them from the public key.
///
/// If the public key is absent, malformed or on another curve, the result has default parameters and is incomplete.
pub fn recover(parameters: Option<String>, value: &str) -> Result<Recovered, Failure> {
    Recovered::of_key_pair(parameters, value, parameters_of)
}

fn parameters_of(public_key: &str) -> Option<Parameters> {
    if let Some(curve) = curve_of_pem(public_key) {
        return Some(Parameters {
            curve,
            format: KeyFormat::Pkcs8,
            ssh_comment: String::new(),
        });
    }
    let key = PublicKey::from_openssh(public_key).ok()?;
    Some(Parameters {
        curve: key.key_data().ecdsa()?.curve().into(),
        format: KeyFormat::Ssh,
        ssh_comment: key.comment().as_str().ok()?.to_owned(),
    })
}

fn curve_of_pem(public_key: &str) -> Option<Curve> {
    if p256::PublicKey::from_public_key_pem(public_key).is_ok() {
        return Some(Curve::P256);
    }
    if p384::PublicKey::from_public_key_pem(public_key).is_ok() {
        return Some(Curve::P384);
    }
    let is_on_p521 = p521::PublicKey::from_public_key_pem(public_key).is_ok();
    is_on_p521.then_some(Curve::P521)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::generate::tests::{CURVES, generated};

    fn recovered(public_key: &Value) -> (Value, bool) {
        let value = json!({"public_key": public_key}).to_string();
        let recovered = recover(None, &value).unwrap();
        let parameters = serde_json::from_str(&recovered.parameters).unwrap();
        (parameters, recovered.is_complete)
    }

    #[test]
    fn stored_parameters_are_returned_unchanged() {
        let stored = r#"{"curve":"p384","format":"pkcs8","ssh_comment":""}"#.to_owned();
        let recovered = recover(Some(stored.clone()), r#"{"public_key":null}"#).unwrap();
        let expected = Recovered {
            parameters: stored,
            is_complete: true,
        };
        assert_eq!(recovered, expected);
    }

    #[test]
    fn public_key_determines_curve_format_and_comment() {
        for curve in CURVES {
            for (format, comment) in [("ssh", "ada @ host"), ("ssh", ""), ("pkcs8", "")] {
                let parameters = json!({"curve": curve, "format": format, "ssh_comment": comment});
                let public_key = &generated(&parameters, 3)["public_key"];
                assert_eq!(recovered(public_key), (parameters, true));
            }
        }
    }

    #[test]
    fn unusable_public_key_yields_defaults() {
        let other = include_str!("../../ssh/tests/keys/ada.pub");
        assert!(PublicKey::from_openssh(other).is_ok());
        for public_key in [json!(null), json!("ecdsa-sha2-nistp256 !!!!"), json!(other)] {
            let defaults = json!({"curve": "p256", "format": "ssh", "ssh_comment": ""});
            assert_eq!(recovered(&public_key), (defaults, false), "{public_key}");
        }
    }
}
