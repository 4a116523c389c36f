//! The supported curves.

use keywright_plugin_support::{Fields, Violation};
use serde::{Deserialize, Serialize};
use ssh_key::EcdsaCurve;

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
    pub fn take(fields: &mut Fields) -> Result<Self, Violation> {
        match fields.take_filled_text(NAME)?.as_deref() {
            None => Ok(Self::default()),
            Some("p256") => Ok(Self::P256),
            Some("p384") => Ok(Self::P384),
            Some("p521") => Ok(Self::P521),
            Some(_) => Err(Violation::of(NAME, "must be p256, p384 or p521")),
        }
    }

    /// Returns the curve's identifier in SSH (RFC 5656).
    #[must_use]
    pub fn for_ssh(self) -> EcdsaCurve {
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

const NAME: &str = "curve";
