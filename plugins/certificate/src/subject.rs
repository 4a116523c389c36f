//! The subject of a certificate.

use der::{
    Tagged,
    asn1::{AnyRef, PrintableStringRef, TeletexStringRef, Utf8StringRef},
    oid::ObjectIdentifier,
};
use keywright_plugin_support::{Fields, Violation};
use rcgen::{DistinguishedName, DnType, DnValue};
use serde::{Deserialize, Serialize};
use x509_cert::{attr::AttributeTypeAndValue, name::Name};

/// The fields of a subject that can be requested. No field is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    #[serde(skip_serializing_if = "Option::is_none")]
    common_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    organization: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    organization_unit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locality: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    country: Option<String>,
}

impl Subject {
    /// Takes the fields from the caller's parameters. If `is_kept`, the parameters also contain the encoded subject of a set
    /// certificate, and no field is required.
    ///
    /// # Errors
    ///
    /// If all fields are missing and `is_kept` is false, or if a field is too long or contains characters that are not allowed.
    pub fn take(fields: &mut Fields, is_kept: bool) -> Result<Self, Violation> {
        let mut subject = Self::default();
        for field in &FIELDS {
            *(field.slot)(&mut subject) = field.take(fields)?;
        }
        if subject.is_empty() && !is_kept {
            return Err(Violation::of_whole(format!(
                "at least one of {} is required",
                FIELDS.each_ref().map(|field| field.parameter).join(", ")
            )));
        }
        Ok(subject)
    }

    /// Returns whether there are no fields.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether there is a common name.
    pub fn has_common_name(&self) -> bool {
        self.common_name.is_some()
    }

    /// Converts the fields to a name, with one relative distinguished name per field, in the order CN, OU, C, ST, O, L.
    ///
    /// # Errors
    ///
    /// [`rcgen::Error`] if the country is not a `PrintableString`, which [`Self::take`] and [`Self::of_name`] prevent.
    pub fn distinguished_name(&self) -> Result<DistinguishedName, rcgen::Error> {
        let mut name = DistinguishedName::new();
        let mut subject = self.clone();
        for field in &FIELDS {
            let Some(text) = (field.slot)(&mut subject).take() else {
                continue;
            };
            let value = match field.form {
                Form::Utf8 => DnValue::Utf8String(text),
                Form::Printable => DnValue::PrintableString(text.try_into()?),
            };
            name.push(field.attribute.clone(), value);
        }
        Ok(name)
    }

    /// Returns the fields in a name, and whether they express all of it.
    ///
    /// They do not express an attribute that:
    ///
    /// - is not one of the fields,
    /// - is a duplicate,
    /// - shares its relative distinguished name with another attribute, or
    /// - has a value that can't be requested.
    ///
    /// The order of attributes and their string types do not matter.
    pub fn of_name(name: &Name) -> (Self, bool) {
        let mut subject = Self::default();
        let mut is_complete = name.iter_rdn().all(|relative| relative.len() == 1);
        for attribute in name.iter() {
            let field = FIELDS
                .iter()
                .find(|field| field.identifier == attribute.oid);
            let slot = field.map(|field| (field.slot)(&mut subject));
            let text = field.and_then(|field| {
                text(attribute).filter(|text| !text.is_empty() && field.broken_rule(text).is_none())
            });
            match (slot, text) {
                (Some(slot @ None), Some(text)) => *slot = Some(text),
                _ => is_complete = false,
            }
        }
        let is_empty = subject.is_empty();
        (subject, is_complete && !is_empty)
    }
}

/// The definition of a field.
struct Field {
    parameter: &'static str,
    characters_max: usize,
    form: Form,
    attribute: DnType,
    identifier: ObjectIdentifier,
    slot: fn(&mut Subject) -> &mut Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Utf8,
    Printable,
}

impl Field {
    fn take(&self, fields: &mut Fields) -> Result<Option<String>, Violation> {
        let Some(text) = fields.take_filled_text(self.parameter)? else {
            return Ok(None);
        };
        match self.broken_rule(&text) {
            None => Ok(Some(text)),
            Some(rule) => Err(Violation::of(self.parameter, rule)),
        }
    }

    /// Returns the rule that a value breaks, if any.
    fn broken_rule(&self, text: &str) -> Option<String> {
        if text.chars().count() > self.characters_max {
            return Some(format!(
                "must have at most {} characters",
                self.characters_max
            ));
        }
        if text.chars().any(char::is_control) {
            return Some("must not contain control characters".to_owned());
        }
        if self.form == Form::Printable && PrintableStringRef::new(text).is_err() {
            return Some("must contain only letters, digits and basic punctuation".to_owned());
        }
        None
    }
}

fn text(attribute: &AttributeTypeAndValue) -> Option<String> {
    let value = AnyRef::from(&attribute.value);
    let text = match value.tag() {
        der::Tag::Utf8String => value
            .decode_as::<Utf8StringRef<'_>>()
            .ok()?
            .as_str()
            .to_owned(),
        der::Tag::PrintableString => value
            .decode_as::<PrintableStringRef<'_>>()
            .ok()?
            .as_str()
            .to_owned(),
        der::Tag::TeletexString => value
            .decode_as::<TeletexStringRef<'_>>()
            .ok()?
            .as_str()
            .to_owned(),
        _ => return None,
    };
    Some(text)
}

/// Defines fields, each with its parameter, its maximum number of characters, its form, its name in rcgen's type, and its identifier.
macro_rules! fields {
    ($($parameter:ident $characters_max:literal $form:ident $attribute:ident $identifier:literal;)*) => {
        [$(Field {
            parameter: stringify!($parameter),
            characters_max: $characters_max,
            form: Form::$form,
            attribute: DnType::$attribute,
            identifier: ObjectIdentifier::new_unwrap($identifier),
            slot: |subject| &mut subject.$parameter,
        }),*]
    };
}

/// The fields, in their order in certificates.
const FIELDS: [Field; 6] = fields! {
    common_name 64 Utf8 CommonName "2.5.4.3";
    organization_unit 64 Utf8 OrganizationalUnitName "2.5.4.11";
    country 2 Printable CountryName "2.5.4.6";
    state 128 Utf8 StateOrProvinceName "2.5.4.8";
    organization 64 Utf8 OrganizationName "2.5.4.10";
    locality 128 Utf8 LocalityName "2.5.4.7";
};
