//! Key usage and extended key usage.

use der::{Decode, oid::ObjectIdentifier};
use keywright_plugin_support::{Failure, Violation};
use rcgen::{ExtendedKeyUsagePurpose, KeyUsagePurpose};
use serde::{Deserialize, Serialize};
use x509_cert::{
    certificate::{Raw, TbsCertificateInner},
    ext::{Extension, pkix},
};

/// Declares the values of a parameter: each with its name in the API, its form in an extension, and its name in rcgen's type.
macro_rules! usages {
    (
        $(#[$attribute:meta])*
        $usage:ident, $parameter:expr, $form:ty, $purpose:ident:
        $($variant:ident $name:literal $as_form:expr, $as_purpose:ident;)*
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[expect(missing_docs, reason = "the names are from RFC 5280")]
        pub enum $usage {
            $($variant,)*
        }

        impl $usage {
            const ALL: [(Self, &str, $form); [$($name),*].len()] =
                [$((Self::$variant, $name, $as_form)),*];

            /// Parses the name of a value in the API.
            pub fn parse(name: &str) -> Result<Self, Violation> {
                let found = Self::ALL.into_iter().find(|(_, its_name, _)| *its_name == name);
                found.map(|(usage, ..)| usage).ok_or_else(|| {
                    let allowed = [$($name),*].join(", ");
                    let rule =
                        format!("contains the unknown value `{name}`; it may contain {allowed}");
                    Violation::of($parameter, rule)
                })
            }

            /// Returns the name of the value in the API.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Converts to rcgen's type.
            pub fn purpose(self) -> $purpose {
                match self {
                    $(Self::$variant => $purpose::$as_purpose,)*
                }
            }
        }
    };
}

usages! {
    /// A bit of the key usage, in the order of RFC 5280, section 4.2.1.3.
    KeyUsage, KEY_USAGE, pkix::KeyUsages, KeyUsagePurpose:
    DigitalSignature "digital_signature" pkix::KeyUsages::DigitalSignature, DigitalSignature;
    NonRepudiation "non_repudiation" pkix::KeyUsages::NonRepudiation, ContentCommitment;
    KeyEncipherment "key_encipherment" pkix::KeyUsages::KeyEncipherment, KeyEncipherment;
    DataEncipherment "data_encipherment" pkix::KeyUsages::DataEncipherment, DataEncipherment;
    KeyAgreement "key_agreement" pkix::KeyUsages::KeyAgreement, KeyAgreement;
    KeyCertSign "key_cert_sign" pkix::KeyUsages::KeyCertSign, KeyCertSign;
    CrlSign "crl_sign" pkix::KeyUsages::CRLSign, CrlSign;
    EncipherOnly "encipher_only" pkix::KeyUsages::EncipherOnly, EncipherOnly;
    DecipherOnly "decipher_only" pkix::KeyUsages::DecipherOnly, DecipherOnly;
}

impl KeyUsage {
    /// The identifier of the extension.
    pub const EXTENSION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.15");

    /// Returns the usages that an extension asserts.
    pub fn asserted(extension: &pkix::KeyUsage) -> impl Iterator<Item = Self> {
        let asserted = Self::ALL.into_iter();
        asserted.filter_map(|(usage, _, bit)| extension.0.contains(bit).then_some(usage))
    }
}

usages! {
    /// A purpose of the extended key usage.
    ExtendedKeyUsage, "extended_key_usage", ObjectIdentifier, ExtendedKeyUsagePurpose:
    ClientAuth "client_auth" ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2"), ClientAuth;
    ServerAuth "server_auth" ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1"), ServerAuth;
    CodeSigning "code_signing" ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.3"), CodeSigning;
    EmailProtection "email_protection" ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.4"), EmailProtection;
    Timestamping "timestamping" ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.8"), TimeStamping;
}

impl ExtendedKeyUsage {
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
        let mut all = Self::ALL.into_iter();
        all.find_map(|(usage, _, its_identifier)| (its_identifier == *identifier).then_some(usage))
    }
}

/// The purpose OCSP signing (RFC 6960, section 4.2.2.2).
const OCSP_SIGNING: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.9");

/// The name of the parameter.
pub(crate) const KEY_USAGE: &str = "key_usage";
