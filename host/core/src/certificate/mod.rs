//! The facts of certificates. The host reads them from the certificate and never relies on a guest for them.

mod client;
mod serial_number;
mod settings;

use chrono::{DateTime, Utc};

pub use client::{ClientAuthorityFacts, ClientCertificateFacts};
pub use serial_number::SerialNumber;
pub use settings::CertificateSettings;
pub(crate) use settings::EffectiveParameters;

/// The facts of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// The end of its validity (`notAfter`).
    pub expires_at: DateTime<Utc>,
    /// Whether its basic constraints make it a certificate authority.
    pub is_certificate_authority: bool,
    /// Whether it counts as self-signed. A set certificate counts only if it is a CA, a generated one also if it is a leaf.
    pub is_self_signed: bool,
    /// The length of its public key, in bits.
    pub key_length_bits: u32,
    /// Its serial number; `None` for versions stored by an older release.
    pub serial_number: Option<SerialNumber>,
}

/// The limits of a certificate body that an issuer signs, from the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuanceRules {
    /// The common name of the subject. A leaf may have the issuer's subject only if this is the issuer's common name.
    pub common_name: Option<String>,
    /// Whether the certificate may be a CA.
    pub may_be_authority: bool,
    /// The signing usages that the certificate's key may have. A CA's key may always sign certificates and revocation lists.
    pub signing_usages: SigningUsages,
    /// The maximum validity, in days.
    pub duration_days_max: u32,
    /// The time of the call.
    pub now: DateTime<Utc>,
}

/// The properties of a certificate that an issuer must allow to issue another certificate like it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IssuanceFacts {
    /// Its validity in whole days, at least one.
    pub duration_days: u32,
    /// The signing usages of its key.
    pub signing_usages: SigningUsages,
}

/// The usages with which a key signs in the name of an issuer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SigningUsages {
    /// Signing certificates (`keyCertSign`).
    pub certificates: bool,
    /// Signing revocation lists (`cRLSign`).
    pub revocation_lists: bool,
    /// Signing OCSP responses (`OCSPSigning`).
    pub ocsp_responses: bool,
}

impl SigningUsages {
    /// Returns whether the other usages include all of these.
    #[must_use]
    pub fn is_within(self, other: Self) -> bool {
        (other.certificates || !self.certificates)
            && (other.revocation_lists || !self.revocation_lists)
            && (other.ocsp_responses || !self.ocsp_responses)
    }
}

/// The maximum validity of a generated certificate, in days.
pub const DURATION_DAYS_MAX: u32 = 3_650;

/// The minimum length of an RSA key to set, in bits.
pub const RSA_BITS_MIN: u32 = 1_024;

/// The minimum length of an RSA key to set without a warning, in bits.
pub const RSA_BITS_RECOMMENDED: u32 = 2_048;
