//! The facts of certificates. The host reads them from the certificate itself and never relies on a guest for them.

use std::fmt;

use chrono::{DateTime, Utc};

/// The facts of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// The end of its validity (`notAfter`).
    pub expires_at: DateTime<Utc>,
    /// Whether its basic constraints make it a certificate authority.
    pub is_certificate_authority: bool,
    /// Whether it counts as self-signed: a set certificate only if it is a CA, a generated certificate also if it is a leaf.
    pub is_self_signed: bool,
    /// The length of its public key, in bits.
    pub key_length_bits: u32,
    /// Its serial number; `None` for versions stored by an older release.
    pub serial_number: Option<SerialNumber>,
}

/// The contents of a certificate, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateDetails {
    /// Its subject (RFC 4514, in the order of the certificate). Empty if the certificate has none.
    pub subject: String,
    /// Its issuer, in the same form.
    pub issuer: String,
    /// Its serial number.
    pub serial_number: SerialNumber,
    /// The first second of its validity.
    pub valid_from: DateTime<Utc>,
    /// The last second of its validity.
    pub expires_at: DateTime<Utc>,
    /// The algorithm of its public key.
    pub key_algorithm: String,
    /// The length of its public key in bits, or 0 if the algorithm is unknown.
    pub key_length_bits: u32,
    /// The algorithm of its signature.
    pub signature_algorithm: String,
    /// Its first subject alternative names, at most [`ALTERNATIVE_NAMES_MAX`], each prefixed with its kind.
    pub alternative_names: Vec<String>,
    /// The number of further alternative names.
    pub more_alternative_names: usize,
    /// Its key usages and extended key usages, as in the parameters of a generated certificate; others by their number.
    pub usages: Vec<String>,
    /// Whether its basic constraints make it a CA, and the maximum number of CAs below it; `None` without the extension.
    pub basic_constraints: Option<(bool, Option<u32>)>,
    /// Its subject key identifier, in hexadecimal.
    pub subject_key_id: Option<String>,
    /// Its authority key identifier, in hexadecimal.
    pub authority_key_id: Option<String>,
    /// The SHA-256 of its DER, in hexadecimal.
    pub fingerprint: String,
}

/// The maximum number of alternative names in [`CertificateDetails`].
pub const ALTERNATIVE_NAMES_MAX: usize = 100;

/// The limits that a request sets for a certificate body that an issuer signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuanceRules {
    /// The common name in the canonical parameters. A leaf may have the issuer's subject only if this is the issuer's common name.
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

/// The properties of a certificate that an issuer of a similar certificate must allow.
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
    pub fn is_within(self, other: Self) -> bool {
        (other.certificates || !self.certificates)
            && (other.revocation_lists || !self.revocation_lists)
            && (other.ocsp_responses || !self.ocsp_responses)
    }

    /// Returns these usages, and if the certificate may be a CA, those of every CA.
    #[must_use]
    pub fn with_those_of_authorities(self, may_be_authority: bool) -> Self {
        Self {
            certificates: self.certificates || may_be_authority,
            revocation_lists: self.revocation_lists || may_be_authority,
            ..self
        }
    }
}

/// The maximum validity of a generated certificate, in days.
pub const DURATION_DAYS_MAX: u32 = 3_650;

/// The minimum length of an RSA key to set, in bits.
pub const RSA_BITS_MIN: u32 = 1_024;

/// The minimum length of an RSA key to set without a warning, in bits.
pub const RSA_BITS_RECOMMENDED: u32 = 2_048;

/// The facts of a client certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCertificateFacts {
    /// The organizational units of its subject in order, including the units in multi-valued names. Units that are not encoded
    /// in UTF-8 or a subset of it are omitted.
    pub organization_units: Vec<String>,
    /// Whether its extended key usage names client authentication (RFC 5280, section 4.2.1.12). A missing extension or the
    /// purpose `anyExtendedKeyUsage` does not count.
    pub is_for_client_authentication: bool,
    /// The last second of its validity, and of the validity of its chain. A connection may stay open longer.
    pub expires_at: DateTime<Utc>,
}

/// The facts of the CA certificate that issues client certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAuthorityFacts {
    /// Whether it is a CA certificate (RFC 5280, section 4.2.1.9).
    pub is_certificate_authority: bool,
    /// Maximum number of CAs between it and a client, if it limits them.
    pub path_length_max: Option<u32>,
    /// The first second of its validity.
    pub valid_from: DateTime<Utc>,
    /// The last second of its validity.
    pub expires_at: DateTime<Utc>,
}

impl ClientAuthorityFacts {
    /// Returns whether the certificate is valid at this time.
    pub fn is_valid_at(&self, time: DateTime<Utc>) -> bool {
        let second = time.timestamp();
        self.valid_from.timestamp() <= second && second <= self.expires_at.timestamp()
    }
}

/// The serial number of a certificate (RFC 5280, section 4.1.2.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerialNumber(Vec<u8>);

impl SerialNumber {
    /// Wraps the content octets of the DER integer, which may begin with a zero octet for the sign.
    pub fn new(mut octets: Vec<u8>) -> Self {
        let zeros = octets.iter().take_while(|octet| **octet == 0).count();
        octets.drain(..zeros.min(octets.len().saturating_sub(1)));
        Self(octets)
    }

    /// Returns the octets, without leading zeros.
    pub fn octets(&self) -> &[u8] {
        &self.0
    }
}

/// Lower-case hexadecimal, two digits for each octet.
impl fmt::Display for SerialNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|octet| write!(formatter, "{octet:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_zeros_are_dropped_and_zero_keeps_one_octet() {
        for (octets, shown) in [
            (&[0x00, 0x8f, 0x01][..], "8f01"),
            (&[0x01, 0x00], "0100"),
            (&[0x00, 0x00], "00"),
            (&[], ""),
        ] {
            assert_eq!(SerialNumber::new(octets.to_vec()).to_string(), shown);
        }
    }
}
