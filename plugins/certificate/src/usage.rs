//! Key usage and extended key usage.

use der::{Decode, oid::ObjectIdentifier};
use keywright_plugin_support::{Failure, Violation};
use rcgen::{ExtendedKeyUsagePurpose, KeyUsagePurpose};
use serde::{Deserialize, Serialize};
use x509_cert::{
    certificate::{Raw, TbsCertificateInner},
    ext::{Extension, pkix},
};

/// A bit of the key usage, in the order of RFC 5280, section 4.2.1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are from RFC 5280")]
pub enum KeyUsage {
    DigitalSignature,
    NonRepudiation,
    KeyEncipherment,
    DataEncipherment,
    KeyAgreement,
    KeyCertSign,
    CrlSign,
    EncipherOnly,
    DecipherOnly,
}

impl KeyUsage {
    /// Parses the name of a usage in the API.
    pub fn parse(name: &str) -> Result<Self, Violation> {
        KEY_USAGES
            .iter()
            .find_map(|(usage, its_name, ..)| (*its_name == name).then_some(*usage))
            .ok_or_else(|| unknown(KEY_USAGE, name, &KEY_USAGES.map(|(_, allowed, _)| allowed)))
    }

    /// The identifier of the extension.
    pub const EXTENSION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.15");

    /// Returns the name of the usage in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        KEY_USAGES
            .iter()
            .find_map(|(usage, name, _)| (*usage == self).then_some(*name))
            .unwrap_or_default()
    }

    /// Converts to rcgen's type.
    #[must_use]
    pub fn purpose(self) -> KeyUsagePurpose {
        match self {
            Self::DigitalSignature => KeyUsagePurpose::DigitalSignature,
            Self::NonRepudiation => KeyUsagePurpose::ContentCommitment,
            Self::KeyEncipherment => KeyUsagePurpose::KeyEncipherment,
            Self::DataEncipherment => KeyUsagePurpose::DataEncipherment,
            Self::KeyAgreement => KeyUsagePurpose::KeyAgreement,
            Self::KeyCertSign => KeyUsagePurpose::KeyCertSign,
            Self::CrlSign => KeyUsagePurpose::CrlSign,
            Self::EncipherOnly => KeyUsagePurpose::EncipherOnly,
            Self::DecipherOnly => KeyUsagePurpose::DecipherOnly,
        }
    }

    /// Returns the usages that an extension asserts.
    pub fn asserted(extension: &pkix::KeyUsage) -> impl Iterator<Item = Self> {
        KEY_USAGES
            .iter()
            .filter_map(|(usage, _, bit)| extension.0.contains(*bit).then_some(*usage))
    }
}

/// A purpose of the extended key usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are from RFC 5280")]
pub enum ExtendedKeyUsage {
    ClientAuth,
    ServerAuth,
    CodeSigning,
    EmailProtection,
    Timestamping,
}

impl ExtendedKeyUsage {
    /// Parses the name of a purpose in the API.
    pub fn parse(name: &str) -> Result<Self, Violation> {
        EXTENDED_KEY_USAGES
            .iter()
            .find_map(|(usage, its_name, _)| (*its_name == name).then_some(*usage))
            .ok_or_else(|| {
                let allowed = EXTENDED_KEY_USAGES.map(|(_, allowed, _)| allowed);
                unknown("extended_key_usage", name, &allowed)
            })
    }

    /// Converts to rcgen's type.
    #[must_use]
    pub fn purpose(self) -> ExtendedKeyUsagePurpose {
        match self {
            Self::ClientAuth => ExtendedKeyUsagePurpose::ClientAuth,
            Self::ServerAuth => ExtendedKeyUsagePurpose::ServerAuth,
            Self::CodeSigning => ExtendedKeyUsagePurpose::CodeSigning,
            Self::EmailProtection => ExtendedKeyUsagePurpose::EmailProtection,
            Self::Timestamping => ExtendedKeyUsagePurpose::TimeStamping,
        }
    }

    /// The identifier of the extension.
    pub const EXTENSION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37");

    /// Returns the purposes of an extension that a parameter can express, without duplicates, and whether these are all of its
    /// purposes.
    pub fn of_extension(extension: &Extension) -> der::Result<(Vec<Self>, bool)> {
        let pkix::ExtendedKeyUsage(purposes) =
            pkix::ExtendedKeyUsage::from_der(extension.extn_value.as_bytes())?;
        let mut found = Vec::new();
        let mut has_all = true;
        for purpose in &purposes {
            match Self::identified(purpose) {
                Some(purpose) if !found.contains(&purpose) => found.push(purpose),
                Some(_) => {}
                None => has_all = false,
            }
        }
        Ok((found, has_all))
    }

    /// Returns whether a certificate may sign OCSP responses for its issuer. No parameter can request this purpose.
    ///
    /// # Errors
    ///
    /// [`Failure::InvalidValue`] if its extended key usage is malformed.
    pub fn signs_ocsp_responses(tbs: &TbsCertificateInner<Raw>) -> Result<bool, Failure> {
        let usage = tbs.get_extension::<pkix::ExtendedKeyUsage>().map_err(|_| {
            Failure::InvalidValue(Violation::of(
                "certificate",
                "has an extended key usage that can't be read",
            ))
        })?;
        Ok(usage.is_some_and(|(_, usage)| usage.0.contains(&OCSP_SIGNING)))
    }

    /// Returns the purpose with this identifier, if it can be requested.
    fn identified(identifier: &ObjectIdentifier) -> Option<Self> {
        EXTENDED_KEY_USAGES
            .iter()
            .find_map(|(usage, _, its_identifier)| (its_identifier == identifier).then_some(*usage))
    }
}

fn unknown(parameter: &str, name: &str, allowed: &[&str]) -> Violation {
    let allowed = allowed.join(", ");
    let rule = format!("contains the unknown value `{name}`; it may contain {allowed}");
    Violation::of(parameter, rule)
}

/// The purpose OCSP signing (RFC 6960, section 4.2.2.2).
const OCSP_SIGNING: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.9");

/// The name of the parameter.
pub(crate) const KEY_USAGE: &str = "key_usage";

const KEY_USAGES: [(KeyUsage, &str, pkix::KeyUsages); 9] = [
    (
        KeyUsage::DigitalSignature,
        "digital_signature",
        pkix::KeyUsages::DigitalSignature,
    ),
    (
        KeyUsage::NonRepudiation,
        "non_repudiation",
        pkix::KeyUsages::NonRepudiation,
    ),
    (
        KeyUsage::KeyEncipherment,
        "key_encipherment",
        pkix::KeyUsages::KeyEncipherment,
    ),
    (
        KeyUsage::DataEncipherment,
        "data_encipherment",
        pkix::KeyUsages::DataEncipherment,
    ),
    (
        KeyUsage::KeyAgreement,
        "key_agreement",
        pkix::KeyUsages::KeyAgreement,
    ),
    (
        KeyUsage::KeyCertSign,
        "key_cert_sign",
        pkix::KeyUsages::KeyCertSign,
    ),
    (KeyUsage::CrlSign, "crl_sign", pkix::KeyUsages::CRLSign),
    (
        KeyUsage::EncipherOnly,
        "encipher_only",
        pkix::KeyUsages::EncipherOnly,
    ),
    (
        KeyUsage::DecipherOnly,
        "decipher_only",
        pkix::KeyUsages::DecipherOnly,
    ),
];

const EXTENDED_KEY_USAGES: [(ExtendedKeyUsage, &str, ObjectIdentifier); 5] = [
    (
        ExtendedKeyUsage::ClientAuth,
        "client_auth",
        ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2"),
    ),
    (
        ExtendedKeyUsage::ServerAuth,
        "server_auth",
        ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1"),
    ),
    (
        ExtendedKeyUsage::CodeSigning,
        "code_signing",
        ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.3"),
    ),
    (
        ExtendedKeyUsage::EmailProtection,
        "email_protection",
        ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.4"),
    ),
    (
        ExtendedKeyUsage::Timestamping,
        "timestamping",
        ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.8"),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_in_api_and_canonical_parameters() {
        for (usage, name, _) in KEY_USAGES {
            assert_eq!(KeyUsage::parse(name), Ok(usage));
            assert_eq!(serde_json::to_value(usage).unwrap(), name);
        }
        for (usage, name, _) in EXTENDED_KEY_USAGES {
            assert_eq!(ExtendedKeyUsage::parse(name), Ok(usage));
            assert_eq!(serde_json::to_value(usage).unwrap(), name);
        }
    }

    #[test]
    fn unknown_names_are_reported() {
        for name in ["Digital_Signature", "server_auth", "", "crl_sign "] {
            let violation = KeyUsage::parse(name).unwrap_err();
            assert_eq!(violation.field.as_deref(), Some("key_usage"));
            assert!(
                violation
                    .rule
                    .contains(&format!("`{name}`; it may contain digital_signature, "))
            );
        }
        assert!(ExtendedKeyUsage::parse("SERVER_AUTH").is_err());
    }
}
