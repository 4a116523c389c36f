//! Generates ECDSA key pairs on the curves P-256, P-384 and P-521 (FIPS 186-5), in SSH format or as PKCS#8.

use keywright_plugin_support::{
    Failure, Fields, Generator, KeyFormat, KeyPair, PUBLIC_KEY, Recovered, Violation, first_block,
    ssh_comment,
};
use p256::{elliptic_curve::Generate, pkcs8::DecodePublicKey};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use ssh_key::{EcdsaCurve, PublicKey, private::EcdsaKeypair};

#[cfg(target_arch = "wasm32")]
keywright_plugin_support::generator_component! {
    generator: Ecdsa,
    credential_type: "ecdsa",
    summary: "ECDSA key pairs, in SSH format or as PKCS#8",
    // On the default curve, P-256: the order of its group is slightly below 2 to the power of 256.
    entropy_bits_min: 255,
    recover: recover,
}

/// The canonical parameters of a key pair.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Parameters {
    curve: Curve,
    format: KeyFormat,
    /// The comment of a key in SSH format, or empty.
    ssh_comment: String,
}

/// The curve of a key (NIST SP 800-186).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Curve {
    /// P-256.
    #[default]
    P256,
    /// P-384.
    P384,
    /// P-521.
    P521,
}

impl Curve {
    /// Takes the parameter `curve` from the caller's parameters.
    fn take(fields: &mut Fields) -> Result<Self, Violation> {
        match fields.take_filled_text(CURVE)?.as_deref() {
            None => Ok(Self::default()),
            Some("p256") => Ok(Self::P256),
            Some("p384") => Ok(Self::P384),
            Some("p521") => Ok(Self::P521),
            Some(_) => Err(Violation::of(CURVE, "must be p256, p384 or p521")),
        }
    }

    /// Returns the curve's identifier in SSH (RFC 5656).
    fn for_ssh(self) -> EcdsaCurve {
        match self {
            Self::P256 => EcdsaCurve::NistP256,
            Self::P384 => EcdsaCurve::NistP384,
            Self::P521 => EcdsaCurve::NistP521,
        }
    }
}

impl From<EcdsaCurve> for Curve {
    fn from(curve: EcdsaCurve) -> Self {
        match curve {
            EcdsaCurve::NistP256 => Self::P256,
            EcdsaCurve::NistP384 => Self::P384,
            EcdsaCurve::NistP521 => Self::P521,
        }
    }
}

/// Generates key pairs in SSH format (RFC 5656), or as PKCS#8 with a private key of RFC 5915.
///
/// Random private keys outside the order of the curve's group are discarded, so that all keys are equally likely (FIPS 186-5,
/// appendix A.2.2).
pub struct Ecdsa;

impl Generator for Ecdsa {
    type Parameters = Parameters;
    type Value = KeyPair;

    fn take(fields: &mut Fields) -> Result<Parameters, Violation> {
        let curve = Curve::take(fields)?;
        let (format, ssh_comment) = KeyFormat::take(fields)?;
        Ok(Parameters {
            curve,
            format,
            ssh_comment,
        })
    }

    fn make(parameters: Parameters, random: &mut impl CryptoRng) -> Result<KeyPair, Failure> {
        let Parameters {
            curve,
            format,
            ssh_comment,
        } = parameters;
        match format {
            KeyFormat::Ssh => {
                let keys = EcdsaKeypair::random(random, curve.for_ssh()).map_err(|error| {
                    Failure::Other(format!("could not generate a key: {error}"))
                })?;
                KeyPair::for_ssh(keys.into(), ssh_comment)
            }
            KeyFormat::Pkcs8 => pkcs8(curve, random),
        }
    }

    fn check(value: &str, _random: &mut impl CryptoRng) -> Result<KeyPair, Failure> {
        KeyPair::check(value)
    }
}

fn pkcs8(curve: Curve, random: &mut impl CryptoRng) -> Result<KeyPair, Failure> {
    match curve {
        Curve::P256 => {
            let key = p256::SecretKey::generate_from_rng(random);
            KeyPair::as_pkcs8(&key, &key.public_key())
        }
        Curve::P384 => {
            let key = p384::SecretKey::generate_from_rng(random);
            KeyPair::as_pkcs8(&key, &key.public_key())
        }
        Curve::P521 => {
            let key = p521::SecretKey::generate_from_rng(random);
            KeyPair::as_pkcs8(&key, &key.public_key())
        }
    }
}

/// Returns the stored parameters. Without stored parameters, reads them from the public key.
///
/// If the public key is absent, malformed or on another curve, the result has default parameters and is incomplete.
pub fn recover(parameters: Option<String>, value: &str) -> Result<Recovered, Failure> {
    Recovered::of_key_pair(parameters, value, |key| Some((parameters_of(key)?, true)))
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
        ssh_comment: ssh_comment(&key)?,
    })
}

fn curve_of_pem(public_key: &str) -> Option<Curve> {
    let der = first_block(public_key, &[PUBLIC_KEY])?;
    if p256::PublicKey::from_public_key_der(&der).is_ok() {
        return Some(Curve::P256);
    }
    if p384::PublicKey::from_public_key_der(&der).is_ok() {
        return Some(Curve::P384);
    }
    let is_on_p521 = p521::PublicKey::from_public_key_der(&der).is_ok();
    is_on_p521.then_some(Curve::P521)
}

const CURVE: &str = "curve";
