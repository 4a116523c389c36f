//! Recovers the parameters of a stored key pair.

use keywright_plugin_support::{Failure, KeyLength, Recovered};
use rsa::{
    RsaPublicKey, pkcs1::DecodeRsaPublicKey, pkcs8::DecodePublicKey, traits::PublicKeyParts,
};

use crate::generate::Parameters;

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
    use rsa::pkcs1::EncodeRsaPublicKey;
    use serde_json::json;

    use super::*;
    use crate::generate::tests::generated;

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
