//! Generates RSA key pairs.
//!
//! Build it with `-C target-feature=+wide-arithmetic,+simd128`: without these features, big-number arithmetic is about nine
//! times slower.

use keywright_plugin_support::{
    Failure, Fields, Generator, KeyLength, PUBLIC_KEY, Recovered, Violation, first_block,
};
use rand_core::CryptoRng;
use rsa::{
    RsaPrivateKey, RsaPublicKey,
    pkcs1::{DecodeRsaPublicKey, EncodeRsaPrivateKey},
    pkcs8::{DecodePublicKey, EncodePublicKey, LineEnding},
    traits::PublicKeyParts,
};
use serde::{Deserialize, Serialize};

#[cfg(target_arch = "wasm32")]
keywright_plugin_support::generator_component! {
    generator: Rsa,
    credential_type: "rsa",
    summary: "RSA key pairs",
    // With the default length: all bits of both primes except the first two and the last bit of each.
    entropy_bits_min: 2042,
    recover: recover,
}

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

    /// Checks a key pair that a caller sets. At least one of the keys is required; a blank key counts as absent.
    ///
    /// The contents of the keys are not checked.
    fn check(value: &str, _random: &mut impl CryptoRng) -> Result<KeyPair, Failure> {
        parse_value(value).map_err(Failure::InvalidValue)
    }
}

fn parse_value(value: &str) -> Result<KeyPair, Violation> {
    let mut fields = Fields::parse(value)?;
    let key_pair = KeyPair {
        public_key: fields.take_key("public_key")?,
        private_key: fields.take_key("private_key")?,
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
/// If the public key is absent or malformed, the result has default parameters and is incomplete. A length that can't be requested is
/// rounded up to the next one, at most 4096 bits, and the result is incomplete.
pub fn recover(parameters: Option<String>, value: &str) -> Result<Recovered, Failure> {
    Recovered::of_key_pair(parameters, value, parameters_of)
}

fn parameters_of(public_key: &str) -> Option<(Parameters, bool)> {
    let der = first_block(public_key, &[PUBLIC_KEY, "RSA PUBLIC KEY"])?;
    let key = RsaPublicKey::from_public_key_der(&der)
        .ok()
        .or_else(|| RsaPublicKey::from_pkcs1_der(&der).ok())?;
    let bits = key.n().bits();
    let key_length = KeyLength::covering_or_longest(bits);
    Some((Parameters { key_length }, u32::from(key_length) == bits))
}

#[cfg(test)]
mod tests {
    use rsa::BoxedUint;

    use super::*;

    #[test]
    fn length_of_a_set_key_is_rounded_up() {
        for (bytes, key_length, is_complete) in [
            (128, 2048, false),
            (256, 2048, true),
            (257, 3072, false),
            (384, 3072, true),
            (512, 4096, true),
            (1024, 4096, false),
        ] {
            let modulus = BoxedUint::from_be_slice_vartime(&vec![0xff; bytes]);
            let key = RsaPublicKey::new(modulus, BoxedUint::from(65_537_u64)).unwrap();
            let public_key = key.to_public_key_pem(LineEnding::LF).unwrap();
            let recovered = recover(None, &format!(r#"{{"public_key":{public_key:?}}}"#)).unwrap();
            let expected = Recovered {
                parameters: format!(r#"{{"key_length":{key_length}}}"#),
                is_complete,
            };
            assert_eq!(recovered, expected);
        }
    }
}
