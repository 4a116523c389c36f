//! Generates Ed25519 key pairs (RFC 8032), in SSH format or as PKCS#8.

use ed25519_dalek::{
    SigningKey, VerifyingKey,
    pkcs8::{DecodePublicKey, KeypairBytes},
};
use keywright_plugin_support::{
    Failure, Fields, Generator, KeyFormat, KeyPair, PUBLIC_KEY, Recovered, Violation, first_block,
    ssh_comment,
};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use ssh_key::{
    PublicKey,
    private::{Ed25519Keypair, Ed25519PrivateKey},
    public::Ed25519PublicKey,
};

#[cfg(target_arch = "wasm32")]
keywright_plugin_support::generator_component! {
    generator: Ed25519,
    credential_type: "ed25519",
    summary: "Ed25519 key pairs, in SSH format or as PKCS#8",
    // The bits of the secret key.
    entropy_bits_min: 256,
    recover: recover,
}

/// The canonical parameters of a key pair.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Parameters {
    format: KeyFormat,
    /// The comment of a key in SSH format, or empty.
    ssh_comment: String,
}

/// Generates key pairs in SSH format (RFC 8709) or as PKCS#8 (RFC 8410). Many programs do not support version 2 of PKCS#8, which
/// includes the public key, so the version is 1.
pub struct Ed25519;

impl Generator for Ed25519 {
    type Parameters = Parameters;
    type Value = KeyPair;

    fn take(fields: &mut Fields) -> Result<Parameters, Violation> {
        let (format, ssh_comment) = KeyFormat::take(fields)?;
        Ok(Parameters {
            format,
            ssh_comment,
        })
    }

    fn make(parameters: Parameters, random: &mut impl CryptoRng) -> Result<KeyPair, Failure> {
        let key = SigningKey::generate(random);
        match parameters.format {
            KeyFormat::Ssh => {
                let keys = Ed25519Keypair {
                    public: Ed25519PublicKey(key.verifying_key().to_bytes()),
                    private: Ed25519PrivateKey::from_bytes(key.as_bytes()),
                };
                KeyPair::for_ssh(keys.into(), parameters.ssh_comment)
            }
            KeyFormat::Pkcs8 => {
                let private_key = KeypairBytes {
                    secret_key: key.to_bytes(),
                    public_key: None,
                };
                KeyPair::as_pkcs8(&private_key, &key.verifying_key())
            }
        }
    }

    fn check(value: &str, _random: &mut impl CryptoRng) -> Result<KeyPair, Failure> {
        KeyPair::check(value)
    }
}

/// Returns the stored parameters. Without stored parameters, reads them from the public key.
///
/// If the public key is absent, malformed or not Ed25519, the result has default parameters and is incomplete.
pub fn recover(parameters: Option<String>, value: &str) -> Result<Recovered, Failure> {
    Recovered::of_key_pair(parameters, value, |key| Some((parameters_of(key)?, true)))
}

fn parameters_of(public_key: &str) -> Option<Parameters> {
    let der = first_block(public_key, &[PUBLIC_KEY]);
    if der.is_some_and(|der| VerifyingKey::from_public_key_der(&der).is_ok()) {
        return Some(Parameters {
            format: KeyFormat::Pkcs8,
            ssh_comment: String::new(),
        });
    }
    let key = PublicKey::from_openssh(public_key).ok()?;
    key.key_data().ed25519()?;
    Some(Parameters {
        format: KeyFormat::Ssh,
        ssh_comment: ssh_comment(&key)?,
    })
}
