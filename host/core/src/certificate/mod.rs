//! What the host itself knows of certificates. It reads it from the certificate, never from what a guest says.

mod client;
mod serial_number;
mod settings;

use chrono::{DateTime, Utc};

pub use client::{ClientAuthorityFacts, ClientCertificateFacts};
pub use serial_number::SerialNumber;
pub use settings::CertificateSettings;
pub(crate) use settings::EffectiveParameters;

/// What a certificate says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// The end of its validity (`notAfter`).
    pub expires_at: DateTime<Utc>,
    /// Whether its basic constraints make it a certificate authority.
    pub is_certificate_authority: bool,
    /// Whether it counts as signed by itself. When set, only an authority's does; when generated, also a leaf's.
    pub is_self_signed: bool,
    /// The length of its public key, in bits.
    pub key_length_bits: u32,
    /// Its serial number; unknown for versions that an older release stored.
    pub serial_number: Option<SerialNumber>,
}

/// What the caller of a generate asked for, and the issuer therefore allows in a certificate body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuanceRules {
    /// The common name of the subject. A certificate of no authority has the issuer's subject only if this is its name.
    pub common_name: Option<String>,
    /// Whether the certificate may be an authority.
    pub may_be_authority: bool,
    /// What the certificate's key may sign for the issuer. One that may be an authority may also sign certificates and
    /// revocation lists.
    pub signing_usages: SigningUsages,
    /// The longest validity, in days.
    pub duration_days_max: u32,
    /// The time of the call.
    pub now: DateTime<Utc>,
}

/// The properties of a certificate that its issuer must allow when it issues another one like it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IssuanceFacts {
    /// The whole days between the beginning and the end of its validity, at least one.
    pub duration_days: u32,
    /// What its key may sign for its issuer.
    pub signing_usages: SigningUsages,
}

/// The usages of a key by which it signs in the name of an issuer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SigningUsages {
    /// Certificates (`keyCertSign`).
    pub certificates: bool,
    /// Revocation lists (`cRLSign`).
    pub revocation_lists: bool,
    /// Responses of OCSP (`OCSPSigning`).
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

/// The longest validity of a generated certificate, in days.
pub const DURATION_DAYS_MAX: u32 = 3_650;

/// The length of the shortest RSA key that may be set, in bits.
pub const RSA_BITS_MIN: u32 = 1_024;

/// The length of the shortest RSA key that is set without a warning, in bits.
pub const RSA_BITS_RECOMMENDED: u32 = 2_048;
