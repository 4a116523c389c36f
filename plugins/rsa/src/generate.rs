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
