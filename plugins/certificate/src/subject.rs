//! The subject of a certificate.

use der::{
    Tagged,
    asn1::{AnyRef, PrintableStringRef, TeletexStringRef, Utf8StringRef},
    oid::ObjectIdentifier,
};
use keywright_plugin_support::{Members, Violation};
use rcgen::{DistinguishedName, DnType, DnValue};
use serde::{Deserialize, Serialize};
use x509_cert::{attr::AttributeTypeAndValue, name::Name};

/// The fields of a subject that may be asked for; none of them is empty.
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
    /// Takes the fields out of what the caller sent.
    ///
    /// # Errors
    ///
    /// The rule that they break: at least one field, each within its length, and no control characters. A subject that is
    /// kept as it was found needs no field.
    pub fn take(members: &mut Members, is_kept: bool) -> Result<Self, Violation> {
        let mut subject = Self::default();
        for field in &FIELDS {
            *(field.place)(&mut subject) = field.take(members)?;
        }
        if subject.is_empty() && !is_kept {
            return Err(Violation::of_whole(format!(
                "needs at least one of {}",
                FIELDS.each_ref().map(|field| field.parameter).join(", ")
            )));
        }
        Ok(subject)
    }

    /// Whether there is no field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether there is a common name.
    #[must_use]
    pub fn has_common_name(&self) -> bool {
        self.common_name.is_some()
    }

    /// The fields as a name, one relative distinguished name for each, in the order CN, OU, C, ST, O, L.
    ///
    /// # Errors
    ///
    /// [`rcgen::Error`], when the country can't be written as a `PrintableString`; neither a caller nor a certificate gives
    /// such a one.
    pub fn distinguished_name(&self) -> Result<DistinguishedName, rcgen::Error> {
        let mut name = DistinguishedName::new();
        let mut subject = self.clone();
        for field in &FIELDS {
            let Some(text) = (field.place)(&mut subject).take() else {
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

    /// The fields that a name has, and whether it has nothing else.
    ///
    /// In which order they stand, and in which type of string, does not count. An attribute counts that is no field, is
    /// there twice, shares its relative distinguished name with another, or has a text that nobody may ask for.
    #[must_use]
    pub fn of_name(name: &Name) -> (Self, bool) {
        let mut subject = Self::default();
        let mut is_complete = name.iter_rdn().all(|relative| relative.len() == 1);
        for attribute in name.iter() {
            let field = FIELDS
                .iter()
                .find(|field| field.identifier == attribute.oid);
            let place = field.map(|field| (field.place)(&mut subject));
            let text = field.and_then(|field| {
                text(attribute).filter(|text| !text.is_empty() && field.broken_rule(text).is_none())
            });
            match (place, text) {
                (Some(place @ None), Some(text)) => *place = Some(text),
                _ => is_complete = false,
            }
        }
        let is_empty = subject.is_empty();
        (subject, is_complete && !is_empty)
    }
}

/// What is known of one field.
struct Field {
    parameter: &'static str,
    characters_max: usize,
    form: Form,
    attribute: DnType,
    identifier: ObjectIdentifier,
    place: fn(&mut Subject) -> &mut Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Utf8,
    Printable,
}

impl Field {
    fn take(&self, members: &mut Members) -> Result<Option<String>, Violation> {
        let Some(text) = members.take_filled_text(self.parameter)? else {
            return Ok(None);
        };
        match self.broken_rule(&text) {
            None => Ok(Some(text)),
            Some(rule) => Err(Violation::of(self.parameter, rule)),
        }
    }

    /// The rule that a text breaks, if it does.
    fn broken_rule(&self, text: &str) -> Option<String> {
        if text.chars().count() > self.characters_max {
            return Some(format!(
                "must be of at most {} characters",
                self.characters_max
            ));
        }
        if text.chars().any(char::is_control) {
            return Some("must not have control characters".to_owned());
        }
        if self.form == Form::Printable && PrintableStringRef::new(text).is_err() {
            return Some("must be of letters, digits and plain punctuation".to_owned());
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

/// The fields in the order in which a certificate has them.
const FIELDS: [Field; 6] = [
    Field {
        parameter: "common_name",
        characters_max: 64,
        form: Form::Utf8,
        attribute: DnType::CommonName,
        identifier: ObjectIdentifier::new_unwrap("2.5.4.3"),
        place: |subject| &mut subject.common_name,
    },
    Field {
        parameter: "organization_unit",
        characters_max: 64,
        form: Form::Utf8,
        attribute: DnType::OrganizationalUnitName,
        identifier: ObjectIdentifier::new_unwrap("2.5.4.11"),
        place: |subject| &mut subject.organization_unit,
    },
    Field {
        parameter: "country",
        characters_max: 2,
        form: Form::Printable,
        attribute: DnType::CountryName,
        identifier: ObjectIdentifier::new_unwrap("2.5.4.6"),
        place: |subject| &mut subject.country,
    },
    Field {
        parameter: "state",
        characters_max: 128,
        form: Form::Utf8,
        attribute: DnType::StateOrProvinceName,
        identifier: ObjectIdentifier::new_unwrap("2.5.4.8"),
        place: |subject| &mut subject.state,
    },
    Field {
        parameter: "organization",
        characters_max: 64,
        form: Form::Utf8,
        attribute: DnType::OrganizationName,
        identifier: ObjectIdentifier::new_unwrap("2.5.4.10"),
        place: |subject| &mut subject.organization,
    },
    Field {
        parameter: "locality",
        characters_max: 128,
        form: Form::Utf8,
        attribute: DnType::LocalityName,
        identifier: ObjectIdentifier::new_unwrap("2.5.4.7"),
        place: |subject| &mut subject.locality,
    },
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taken(parameters: &serde_json::Value) -> Result<Subject, Violation> {
        Subject::take(&mut Members::parse(&parameters.to_string()).unwrap(), false)
    }

    #[test]
    fn each_field_is_taken_up_to_its_length_in_characters() {
        for (parameter, max) in [
            ("common_name", 64),
            ("organization", 64),
            ("organization_unit", 64),
            ("locality", 128),
            ("state", 128),
        ] {
            assert!(taken(&json!({parameter: "ü".repeat(max)})).is_ok());
            assert_eq!(
                taken(&json!({parameter: "ü".repeat(max + 1)})),
                Err(Violation::of(
                    parameter,
                    format!("must be of at most {max} characters")
                ))
            );
        }
        assert!(taken(&json!({"country": "DE"})).is_ok());
        for country in ["DEU", "Ü", "*", "d\n"] {
            let violation = taken(&json!({"country": country})).unwrap_err();
            assert_eq!(violation.member.as_deref(), Some("country"));
        }
    }

    #[test]
    fn a_subject_without_a_field_is_refused() {
        for parameters in [json!({}), json!({"common_name": "", "state": null})] {
            assert_eq!(taken(&parameters).unwrap_err().member, None);
        }
    }

    #[test]
    fn control_characters_are_refused() {
        for text in ["a\u{0}b", "a\nb", "\u{7f}", "\u{85}"] {
            let violation = taken(&json!({"common_name": text})).unwrap_err();
            assert_eq!(violation.member.as_deref(), Some("common_name"));
        }
    }
}
