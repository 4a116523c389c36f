//! What a certificate that was set has and no parameter could ask for, kept as it is.
//!
//! Parameters name six fields of a subject, in one order and with one type of string each; four types of alternative
//! names; five purposes; and nothing that limits an authority. A certificate of another program may have more, or have it
//! otherwise. When it is regenerated, what the parameters alone would write differently is written as it was found: the
//! subject, and of an extension whether it is critical, and its value. Where it was not found in DER's one form, it is
//! written in that, as an authority signs nothing else.

use base64ct::{Base64, Encoding};
use der::{Decode, Encode, asn1::OctetString, oid::ObjectIdentifier};
use keywright_plugin_support::{Failure, Violation};
use rcgen::CustomExtension;
use serde::{Deserialize, Serialize};
use x509_cert::{
    certificate::{Raw, TbsCertificateInner},
    ext::{
        Extension,
        pkix::{self, BasicConstraints},
    },
    name::Name,
};

use crate::{
    alternative_name::AlternativeName,
    canonical_der::is_der,
    parameters::Parameters,
    subject::Subject,
    tbs,
    usage::{ExtendedKeyUsage, KeyUsage},
};

/// The parts of a certificate that are kept; each is there only when the parameters would write it differently.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<Encoded>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_usage: Option<Encoded>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alternative_names: Option<Encoded>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extended_key_usage: Option<Encoded>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_length: Option<u8>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    limits: Vec<Encoded>,
}

impl Kept {
    /// What of a certificate must be kept beside the parameters that it tells; `body` is the same certificate's, as it is
    /// encoded.
    ///
    /// # Errors
    ///
    /// [`Failure::InvalidValue`], when what is to be kept is not DER through and through, or is critical and an authority
    /// does not know it, so that none would sign it; [`Failure::Other`], when the parameters can't be written.
    pub fn beside(
        parameters: &Parameters,
        found: &TbsCertificateInner<Raw>,
        body: &[u8],
    ) -> Result<Self, Failure> {
        let sample = tbs::sample(parameters)?;
        let written = TbsCertificateInner::<Raw>::from_der(&sample).map_err(tbs::not_written)?;
        if !parameters.self_sign && ExtendedKeyUsage::signs_ocsp_responses(found)? {
            return Err(refused(
                "its extended key usage lets it sign OCSP responses, and no authority here signs one like it",
            ));
        }
        let differing = |part: &str, identifier, may_be_written: bool| {
            let Some(of_found) = extension(found, identifier) else {
                return Ok(None);
            };
            if may_be_written && extension(&written, identifier) == Some(of_found) {
                return Ok(None);
            }
            kept_extension(part, of_found).map(Some)
        };
        let (_, subject) = tbs::names(body).map_err(tbs::not_written)?;
        let (_, written_subject) = tbs::names(&sample).map_err(tbs::not_written)?;
        let has_suitable_usages = parameters
            .key_usage
            .iter()
            .all(|usage| parameters.key_type.may_assert(*usage));
        Ok(Self {
            subject: if parameters.subject.is_empty() || subject != written_subject {
                let sorted = reencoded::<Name>(subject).map_err(|_| not_der("subject"))?;
                // Those that such a certificate signed name it byte for byte.
                let kept = if parameters.self_sign {
                    subject
                } else {
                    &sorted
                };
                Some(checked("subject", kept)?)
            } else {
                None
            },
            key_usage: differing("key usage", KeyUsage::EXTENSION, has_suitable_usages)?,
            alternative_names: differing(
                "subject alternative name",
                AlternativeName::EXTENSION,
                true,
            )?,
            extended_key_usage: differing("extended key usage", ExtendedKeyUsage::EXTENSION, true)?,
            path_length: path_length(found)?,
            limits: limits(parameters, found)?,
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

    /// Whether the key usage is kept.
    #[must_use]
    pub fn has_key_usage(&self) -> bool {
        self.key_usage.is_some()
    }

    /// How many authorities may stand below this one, where that is limited.
    #[must_use]
    pub fn path_length(&self) -> Option<u8> {
        self.path_length
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
        [
            &self.key_usage,
            &self.alternative_names,
            &self.extended_key_usage,
        ]
        .into_iter()
        .flatten()
        .chain(&self.limits)
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

/// The extension of this identifier, if a certificate has it.
pub(crate) fn extension(
    tbs: &TbsCertificateInner<Raw>,
    identifier: ObjectIdentifier,
) -> Option<&Extension> {
    tbs.extensions()?
        .iter()
        .find(|extension| extension.extn_id == identifier)
}

/// How many authorities may stand below this one, where that is limited: the one member of the basic constraints that no
/// parameter tells. They are written anew, and critical always.
fn path_length(found: &TbsCertificateInner<Raw>) -> Result<Option<u8>, Failure> {
    let constraints = found
        .get_extension::<BasicConstraints>()
        .map_err(|_| refused("its basic constraints can't be read"))?;
    let length = constraints
        .filter(|(_, constraints)| constraints.ca)
        .and_then(|(_, constraints)| constraints.path_len_constraint);
    match length {
        Some(PATH_LENGTH_ABOVE_MAX..) => Err(refused("its path length is more than 127")),
        length => Ok(length),
    }
}

/// The extensions beside those that are written anew that say what is not to be trusted, in their order: the known ones,
/// and whatever is critical.
fn limits(
    parameters: &Parameters,
    found: &TbsCertificateInner<Raw>,
) -> Result<Vec<Encoded>, Failure> {
    found
        .extensions()
        .map_or(&[][..], Vec::as_slice)
        .iter()
        .filter(|extension| {
            !WRITTEN.contains(&extension.extn_id)
                && (extension.critical || LIMITS.contains(&extension.extn_id))
        })
        .map(|extension| {
            let part = format!("extension {}", extension.extn_id);
            if extension.critical && !parameters.self_sign {
                return Err(refused(&format!(
                    "its {part} is critical, and no authority here signs one like it"
                )));
            }
            kept_extension(&part, extension)
        })
        .collect()
}

/// An extension to be kept; its value is DER within octets.
fn kept_extension(part: &str, extension: &Extension) -> Result<Encoded, Failure> {
    let value = canonical(extension).map_err(|_| not_der(part))?;
    checked(part, &value)?;
    let extension = Extension {
        extn_value: OctetString::new(value).map_err(tbs::not_written)?,
        ..extension.clone()
    };
    checked(part, &extension.to_der().map_err(tbs::not_written)?)
}

/// The value of an extension in DER's one form, where its type is known: without default values written out, and with
/// named bits up to the last that is set.
fn canonical(extension: &Extension) -> der::Result<Vec<u8>> {
    let value = extension.extn_value.as_bytes();
    match extension.extn_id {
        KeyUsage::EXTENSION => reencoded::<pkix::KeyUsage>(value),
        NAME_CONSTRAINTS => reencoded::<pkix::NameConstraints>(value),
        _ => Ok(value.to_vec()),
    }
}

fn reencoded<'a, T: Decode<'a, Error = der::Error> + Encode>(
    value: &'a [u8],
) -> der::Result<Vec<u8>> {
    T::from_der(value)?.to_der()
}

fn checked(part: &str, found: &[u8]) -> Result<Encoded, Failure> {
    if is_der(found) {
        Ok(Encoded(found.to_vec()))
    } else {
        Err(not_der(part))
    }
}

fn not_der(part: &str) -> Failure {
    refused(&format!("its {part} is not DER"))
}

fn refused(reason: &str) -> Failure {
    let rule = format!("can't be made anew: {reason}");
    Failure::InvalidValue(Violation::of("certificate", rule))
}

/// One above the greatest path length that an authority signs.
const PATH_LENGTH_ABOVE_MAX: u8 = 128;

/// Basic constraints, key usage, extended key usage, alternative names, and the key identifiers.
const WRITTEN: [ObjectIdentifier; 6] = [
    ObjectIdentifier::new_unwrap("2.5.29.19"),
    KeyUsage::EXTENSION,
    ExtendedKeyUsage::EXTENSION,
    AlternativeName::EXTENSION,
    ObjectIdentifier::new_unwrap("2.5.29.14"),
    ObjectIdentifier::new_unwrap("2.5.29.35"),
];

/// Name constraints, certificate policies, policy mappings, policy constraints and inhibit anyPolicy (RFC 5280, sections
/// 4.2.1.4, 4.2.1.5, 4.2.1.10, 4.2.1.11 and 4.2.1.14).
const LIMITS: [ObjectIdentifier; 5] = [
    NAME_CONSTRAINTS,
    ObjectIdentifier::new_unwrap("2.5.29.32"),
    ObjectIdentifier::new_unwrap("2.5.29.33"),
    ObjectIdentifier::new_unwrap("2.5.29.36"),
    ObjectIdentifier::new_unwrap("2.5.29.54"),
];

const NAME_CONSTRAINTS: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.30");

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
