//! Recovers the parameters of a stored key pair.

use keywright_plugin_support::{Failure, KeyLength, Recovered};
use ssh_key::PublicKey;

use crate::generate::Parameters;

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
    use serde_json::json;

    use super::*;
    use crate::generate::tests::generated;

    #[test]
    fn stored_parameters_are_returned_unchanged() {
        let stored = r#"{"key_length":4096,"ssh_comment":"x"}"#.to_owned();
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
