//! The facts of certificates, and the settings for generated certificates. The host reads facts from the certificate itself and
//! never relies on a guest for them.

use std::fmt;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::credential::{CredentialType, Parameters};

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

/// Server-wide settings for generated certificates.
///
/// They change the canonical parameters before these are compared or stored. So a generate request in mode `converge` keeps a
/// certificate that an equal request generated under the same settings, and regenerates a certificate that was generated under
/// weaker settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CertificateSettings {
    /// The minimum duration of a CA certificate, in days. Shorter durations are raised to it.
    pub authority_duration_days_min: u32,
    /// The minimum duration of a leaf certificate, in days. Shorter durations are raised to it.
    pub leaf_duration_days_min: u32,
    /// Whether a CA requested without key usages gets the usages that RFC 5280 requires: `key_cert_sign` and `crl_sign`.
    pub has_default_authority_key_usages: bool,
    /// Whether `ca` in responses also contains the other trusted CA certificate, after the issuing CA certificate.
    pub concatenates_authorities: bool,
}

/// Canonical parameters with the settings applied.
#[derive(Clone, Debug)]
pub(crate) struct EffectiveParameters {
    pub(crate) parameters: Parameters,
    /// Whether the duration was raised.
    pub(crate) is_duration_overridden: bool,
}

impl CertificateSettings {
    /// Applies the settings to canonical parameters. Has no effect on types other than certificate.
    pub(crate) fn apply(
        self,
        credential_type: &CredentialType,
        mut parameters: Parameters,
    ) -> EffectiveParameters {
        let mut is_duration_overridden = false;
        if credential_type.is_certificate() {
            is_duration_overridden = self.raise_duration(&mut parameters);
            self.add_default_key_usages(&mut parameters);
        }
        EffectiveParameters {
            parameters,
            is_duration_overridden,
        }
    }

    fn raise_duration(self, parameters: &mut Parameters) -> bool {
        let duration_days_min = if parameters.is_true("is_ca") {
            self.authority_duration_days_min
        } else {
            self.leaf_duration_days_min
        };
        let is_shorter = parameters
            .field("duration")
            .and_then(Value::as_u64)
            .is_some_and(|days| days < u64::from(duration_days_min));
        if is_shorter {
            parameters.insert("duration", duration_days_min.into());
        }
        is_shorter
    }

    fn add_default_key_usages(self, parameters: &mut Parameters) {
        let has_key_usage = parameters
            .field("key_usage")
            .and_then(Value::as_array)
            .is_some_and(|usages| !usages.is_empty());
        if self.has_default_authority_key_usages && parameters.is_true("is_ca") && !has_key_usage {
            // In the order of the canonical form, because comparisons depend on it.
            parameters.insert("key_usage", json!(["key_cert_sign", "crl_sign"]));
        }
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

    #[test]
    fn settings_do_not_change_parameters_of_other_types() {
        let settings = CertificateSettings {
            authority_duration_days_min: 100,
            has_default_authority_key_usages: true,
            ..CertificateSettings::default()
        };
        let Value::Object(fields) = json!({"duration": 1, "is_ca": true}) else {
            unreachable!()
        };
        let credential_type = CredentialType::parse("wireguard").unwrap();
        let effective = settings.apply(&credential_type, Parameters::new(fields.clone()));
        assert!(effective.parameters == Parameters::new(fields));
        assert!(!effective.is_duration_overridden);
    }
}
