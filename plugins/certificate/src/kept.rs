//! What a certificate that was set has and no parameter could ask for, kept as it is.
//!
//! Parameters name six fields of a subject, in one order and with one type of string each; four types of alternative
//! names; five purposes. A certificate of another program may have more, or have it otherwise. When it is made anew,
//! what the parameters alone would write differently is written as it was found, byte for byte.

use base64ct::{Base64, Encoding};
use der::{Decode, Encode};
use keywright_plugin_support::{Failure, Violation};
use rcgen::CustomExtension;
use serde::{Deserialize, Serialize};
use x509_cert::{certificate::Raw, certificate::TbsCertificateInner, ext::Extension, name::Name};

use crate::{
    alternative_name::AlternativeName, canonical_der::is_der, parameters::Parameters,
    subject::Subject, tbs, usage::ExtendedKeyUsage,
};

/// The parts of a certificate that are kept; each is there only when the parameters would write it differently.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<Encoded>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alternative_names: Option<Encoded>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extended_key_usage: Option<Encoded>,
}

impl Kept {
    /// What of a certificate must be kept beside the parameters that it tells.
    ///
    /// # Errors
    ///
    /// [`Failure::InvalidValue`], when what is to be kept is not DER through and through, so that no authority would sign
    /// it; [`Failure::Other`], when the parameters can't be written.
    pub fn beside(
        parameters: &Parameters,
        found: &TbsCertificateInner<Raw>,
    ) -> Result<Self, Failure> {
        let body = tbs::sample(parameters)?;
        let written = TbsCertificateInner::<Raw>::from_der(&body).map_err(tbs::not_written)?;
        let keep = |part: &str, found: Option<Vec<u8>>, written: Option<Vec<u8>>| match found {
            Some(found) if Some(&found) != written.as_ref() => {
                if is_der(&found) {
                    Ok(Some(Encoded(found)))
                } else {
                    let rule = format!("can't be made anew: its {part} is not DER");
                    Err(Failure::InvalidValue(Violation::of("certificate", rule)))
                }
            }
            _ => Ok(None),
        };
        Ok(Self {
            subject: keep(
                "subject",
                encoded(Some(found.subject()))?,
                encoded(Some(written.subject()))?,
            )?,
            alternative_names: keep(
                "subject alternative name",
                encoded(alternative_names(found))?,
                encoded(alternative_names(&written))?,
            )?,
            extended_key_usage: keep(
                "extended key usage",
                encoded(extended_key_usage(found))?,
                encoded(extended_key_usage(&written))?,
            )?,
        })
    }

    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the named parameters tell everything that is kept, if not in the same bytes.
    ///
    /// # Errors
    ///
    /// [`der::Error`], when it is not what this plugin keeps.
    pub fn is_told_by(&self, parameters: &Parameters) -> der::Result<bool> {
        let subject_is_told = match &self.subject {
            None => true,
            Some(Encoded(name)) => {
                Subject::of_name(&Name::from_der(name)?) == (parameters.subject.clone(), true)
            }
        };
        let names_are_told = match &self.alternative_names {
            None => true,
            Some(Encoded(extension)) => {
                AlternativeName::of_extension(&Extension::from_der(extension)?)?.1
            }
        };
        let usages_are_told = match &self.extended_key_usage {
            None => true,
            Some(Encoded(extension)) => {
                ExtendedKeyUsage::of_extension(&Extension::from_der(extension)?)?.1
            }
        };
        Ok(subject_is_told && names_are_told && usages_are_told)
    }

    /// The subject, DER, where it is kept.
    #[must_use]
    pub fn subject(&self) -> Option<&[u8]> {
        self.subject.as_ref().map(|Encoded(name)| name.as_slice())
    }

    /// Whether the alternative names are kept.
    #[must_use]
    pub fn has_alternative_names(&self) -> bool {
        self.alternative_names.is_some()
    }

    /// Whether the extended key usage is kept.
    #[must_use]
    pub fn has_extended_key_usage(&self) -> bool {
        self.extended_key_usage.is_some()
    }

    /// The extensions that are kept, as rcgen takes them.
    ///
    /// # Errors
    ///
    /// [`der::Error`], when one is not what this plugin keeps.
    pub fn extensions(&self) -> der::Result<Vec<CustomExtension>> {
        [&self.alternative_names, &self.extended_key_usage]
            .into_iter()
            .flatten()
            .map(|Encoded(extension)| {
                let extension = Extension::from_der(extension)?;
                let identifier: Vec<u64> = extension.extn_id.arcs().map(u64::from).collect();
                let value = extension.extn_value.into_bytes().into_vec();
                let mut kept = CustomExtension::from_oid_content(&identifier, value);
                kept.set_criticality(extension.critical);
                Ok(kept)
            })
            .collect()
    }
}

/// The extension with a certificate's alternative names, if it has one.
pub(crate) fn alternative_names(tbs: &TbsCertificateInner<Raw>) -> Option<&Extension> {
    extension(tbs, AlternativeName::EXTENSION)
}

/// The extension with a certificate's extended key usage, if it has one.
pub(crate) fn extended_key_usage(tbs: &TbsCertificateInner<Raw>) -> Option<&Extension> {
    extension(tbs, ExtendedKeyUsage::EXTENSION)
}

fn extension(
    tbs: &TbsCertificateInner<Raw>,
    identifier: der::oid::ObjectIdentifier,
) -> Option<&Extension> {
    tbs.extensions()?
        .iter()
        .find(|extension| extension.extn_id == identifier)
}

fn encoded(part: Option<&impl Encode>) -> Result<Option<Vec<u8>>, Failure> {
    part.map(|part| part.to_der().map_err(tbs::not_written))
        .transpose()
}

/// DER, which parameters hold in base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
struct Encoded(Vec<u8>);

impl From<Encoded> for String {
    fn from(Encoded(bytes): Encoded) -> Self {
        Base64::encode_string(&bytes)
    }
}

impl TryFrom<String> for Encoded {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Base64::decode_vec(&text)
            .map(Self)
            .map_err(|_| "must be base64")
    }
}
