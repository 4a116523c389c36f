//! Generates RSA key pairs in SSH format.
//!
//! Build it with `-C target-feature=+wide-arithmetic,+simd128`: without these features, big-number arithmetic is about nine
//! times slower.

use keywright_plugin_support::{
    Failure, Fields, Generator, KeyLength, KeyPair, Recovered, Violation, ssh_comment,
    ssh_fingerprint, take_ssh_comment,
};
use rand_core::CryptoRng;
use rsa::{
    RsaPrivateKey, RsaPublicKey,
    pkcs1::{EncodeRsaPrivateKey, LineEnding},
    traits::PublicKeyParts,
};
use serde::{Deserialize, Serialize};
use ssh_key::{Mpint, PublicKey, public};

#[cfg(target_arch = "wasm32")]
keywright_plugin_support::generator_component! {
    generator: Ssh,
    credential_type: "ssh",
    summary: "RSA key pairs in SSH format",
    // With the default length: all bits of both primes except the first two and the last bit of each.
    entropy_bits_min: 2042,
    recover: recover,
}

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
/// If the public key is absent, malformed or not RSA, the result has default parameters and is incomplete. A length that can't be
/// requested is rounded up to the next one, at most 4096 bits, and the result is incomplete.
pub fn recover(parameters: Option<String>, value: &str) -> Result<Recovered, Failure> {
    Recovered::of_key_pair(parameters, value, parameters_of)
}

fn parameters_of(public_key: &str) -> Option<(Parameters, bool)> {
    let key = PublicKey::from_openssh(public_key).ok()?;
    let modulus = key.key_data().rsa()?.n().as_positive_bytes()?;
    let bytes = u32::try_from(modulus.len()).ok()?;
    let bits = bytes * u8::BITS - modulus.first()?.leading_zeros();
    let key_length = KeyLength::covering_or_longest(bits);
    let parameters = Parameters {
        key_length,
        ssh_comment: ssh_comment(&key)?,
    };
    Some((parameters, u32::from(key_length) == bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_of_a_set_key_is_rounded_up_and_only_its_line_is_read() {
        for (bytes, key_length, is_complete) in
            [(256, 2048, true), (375, 3072, false), (1024, 4096, false)]
        {
            let number = |bytes: &[u8]| Mpint::from_positive_bytes(bytes);
            let key = public::RsaPublicKey::new(number(&[1, 0, 1]), number(&vec![0xff; bytes]));
            let line = PublicKey::new(key.unwrap().into(), "ada on host");
            let lines = format!("{}\nssh-ed25519 AAAA other\n", line.to_openssh().unwrap());
            let recovered = recover(None, &format!(r#"{{"public_key":{lines:?}}}"#)).unwrap();
            let expected = Recovered {
                parameters: format!(r#"{{"key_length":{key_length},"ssh_comment":"ada on host"}}"#),
                is_complete,
            };
            assert_eq!(recovered, expected);
        }
    }
}
