//! The parts of a set certificate that parameters can't express. They are kept unchanged.
//!
//! Parameters can't express every part of a certificate from another program, such as the constraints of a CA, or the order and
//! string types of a subject's fields. A regenerated certificate repeats the parts that the parameters alone would encode
//! differently: the subject, and the criticality and value of an extension. Parts that are not canonical DER are re-encoded,
//! because CAs sign only canonical DER.

use base64ct::{Base64, Encoding};
use der::{Decode, Encode, asn1::OctetString, oid::ObjectIdentifier};
use keywright_der::{LEVELS_MAX, is_der};
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
    parameters::Parameters,
    subject::Subject,
    tbs,
    usage::{ExtendedKeyUsage, KeyUsage},
};

/// The kept parts of a certificate. Each part is present only if the parameters would encode it differently.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<Encoded>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_usage: Option<Encoded>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) alternative_names: Option<Encoded>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) extended_key_usage: Option<Encoded>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_length: Option<u8>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    limits: Vec<Encoded>,
}

impl Kept {
    /// Determines the parts of a certificate that `parameters` can't express. `body` is the encoded form of `found`.
    ///
    /// # Errors
    ///
    /// [`Failure::InvalidValue`] if a part to keep is not DER at every level, or is a critical extension that the CAs of this
    /// server do not sign; [`Failure::Other`] if the parameters can't be encoded.
    pub fn in_addition_to(
        parameters: &Parameters,
        found: &TbsCertificateInner<Raw>,
        body: &[u8],
    ) -> Result<Self, Failure> {
        let sample = tbs::sample(parameters)?;
        let written = TbsCertificateInner::<Raw>::from_der(&sample).map_err(tbs::not_encoded)?;
        if !parameters.self_sign && ExtendedKeyUsage::signs_ocsp_responses(found)? {
            return Err(refused(
                "has the extended key usage OCSP signing, which the CAs of this server do not grant",
            ));
        }
        let differing = |part: &str, identifier, is_expressible: bool| {
            let Some(of_found) = extension(found, identifier) else {
                return Ok(None);
            };
            if is_expressible && extension(&written, identifier) == Some(of_found) {
                return Ok(None);
            }
            kept_extension(part, of_found).map(Some)
        };
        let (_, subject) = tbs::names(body).map_err(tbs::not_encoded)?;
        let (_, written_subject) = tbs::names(&sample).map_err(tbs::not_encoded)?;
        let has_suitable_usages = parameters
            .key_usage
            .iter()
            .all(|usage| parameters.key_type.may_assert(*usage));
        Ok(Self {
            subject: if parameters.subject.is_empty() || subject != written_subject {
                let sorted = reencoded::<Name>(subject).map_err(|_| not_der("subject"))?;
                // Certificates signed by this CA contain its name byte for byte.
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

    /// Returns whether no part is kept.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether `parameters` express the kept subject, alternative names and extended key usage, even if in another
    /// encoding. Ignores the other kept parts.
    pub fn is_expressed_by(&self, parameters: &Parameters) -> der::Result<bool> {
        let subject_is_expressed = match &self.subject {
            None => true,
            Some(Encoded(name)) => {
                Subject::of_name(&Name::from_der(name)?) == (parameters.subject.clone(), true)
            }
        };
        let names_are_expressed = match &self.alternative_names {
            None => true,
            Some(Encoded(extension)) => {
                AlternativeName::of_extension(&Extension::from_der(extension)?)?.1
            }
        };
        let usages_are_expressed = match &self.extended_key_usage {
            None => true,
            Some(Encoded(extension)) => {
                ExtendedKeyUsage::of_extension(&Extension::from_der(extension)?)?.1
            }
        };
        Ok(subject_is_expressed && names_are_expressed && usages_are_expressed)
    }

    /// Returns the kept subject, in DER.
    pub fn subject(&self) -> Option<&[u8]> {
        self.subject.as_ref().map(|Encoded(name)| name.as_slice())
    }

    /// Returns the kept extensions as rcgen's type.
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

/// Returns the extension with this identifier, if the certificate has it.
pub(crate) fn extension(
    tbs: &TbsCertificateInner<Raw>,
    identifier: ObjectIdentifier,
) -> Option<&Extension> {
    tbs.extensions()?
        .iter()
        .find(|extension| extension.extn_id == identifier)
}

/// Returns the path length constraint, the only field of the basic constraints that parameters can't express. The rest of the
/// extension is regenerated, and always critical.
fn path_length(found: &TbsCertificateInner<Raw>) -> Result<Option<u8>, Failure> {
    let constraints = found
        .get_extension::<BasicConstraints>()
        .map_err(|_| refused("has basic constraints that can't be read"))?;
    let length = constraints
        .filter(|(_, constraints)| constraints.ca)
        .and_then(|(_, constraints)| constraints.path_len_constraint);
    match length {
        Some(PATH_LENGTH_ABOVE_MAX..) => {
            Err(refused("has a path length constraint of more than 127"))
        }
        length => Ok(length),
    }
}

/// Returns the extensions that restrict trust, in the order of the certificate: the extensions in `LIMITS`, and all other
/// critical extensions. Omits the regenerated extensions in `REGENERATED`.
fn limits(
    parameters: &Parameters,
    found: &TbsCertificateInner<Raw>,
) -> Result<Vec<Encoded>, Failure> {
    found
        .extensions()
        .map_or(&[][..], Vec::as_slice)
        .iter()
        .filter(|extension| {
            !REGENERATED.contains(&extension.extn_id)
                && (extension.critical || LIMITS.contains(&extension.extn_id))
        })
        .map(|extension| {
            let part = format!("extension {}", extension.extn_id);
            if extension.critical && !parameters.self_sign {
                return Err(refused(&format!(
                    "has the critical {part}, which the CAs of this server do not sign"
                )));
            }
            kept_extension(&part, extension)
        })
        .collect()
}

/// Encodes an extension to keep. Its value must be DER.
fn kept_extension(part: &str, extension: &Extension) -> Result<Encoded, Failure> {
    let value = canonical(extension).map_err(|_| not_der(part))?;
    checked(part, &value)?;
    let extension = Extension {
        extn_value: OctetString::new(value).map_err(tbs::not_encoded)?,
        ..extension.clone()
    };
    checked(part, &extension.to_der().map_err(tbs::not_encoded)?)
}

/// Re-encodes the value of a known extension as canonical DER: without default values, and without trailing zeros in named bits.
/// Returns other values unchanged.
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
    if is_der(found, LEVELS_MAX - LEVELS_ABOVE) {
        Ok(Encoded(found.to_vec()))
    } else {
        Err(not_der(part))
    }
}

fn not_der(part: &str) -> Failure {
    refused(&format!("has a malformed {part}: it must be DER"))
}

fn refused(rule: &str) -> Failure {
    Failure::InvalidValue(Violation::of("certificate", rule))
}

/// The levels of a certificate body that are reserved for the levels above its parts.
const LEVELS_ABOVE: usize = 8;

/// One more than the largest path length constraint that a CA signs.
const PATH_LENGTH_ABOVE_MAX: u8 = 128;

/// The regenerated extensions: basic constraints, key usage, extended key usage, alternative names, and the key identifiers.
const REGENERATED: [ObjectIdentifier; 6] = [
    ObjectIdentifier::new_unwrap("2.5.29.19"),
    KeyUsage::EXTENSION,
    ExtendedKeyUsage::EXTENSION,
    AlternativeName::EXTENSION,
    ObjectIdentifier::new_unwrap("2.5.29.14"),
    ObjectIdentifier::new_unwrap("2.5.29.35"),
];

/// The extensions to keep even if they are not critical: name constraints, certificate policies, policy mappings, policy
/// constraints and inhibit anyPolicy (RFC 5280, sections 4.2.1.4, 4.2.1.5, 4.2.1.10, 4.2.1.11 and 4.2.1.14).
const LIMITS: [ObjectIdentifier; 5] = [
    NAME_CONSTRAINTS,
    ObjectIdentifier::new_unwrap("2.5.29.32"),
    ObjectIdentifier::new_unwrap("2.5.29.33"),
    ObjectIdentifier::new_unwrap("2.5.29.36"),
    ObjectIdentifier::new_unwrap("2.5.29.54"),
];

const NAME_CONSTRAINTS: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.30");

/// DER, encoded as base64 in parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Encoded(Vec<u8>);

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
