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
