//! The parameters of certificates.

use std::collections::BTreeSet;

use keywright_plugin_support::{Failure, Fields, Violation, no_settings, to_json};
use serde::{Deserialize, Serialize};

use crate::{
    ISSUER_PARAMETER,
    alternative_name::AlternativeName,
    kept::Kept,
    key_type::KeyType,
    subject::Subject,
    usage::{ExtendedKeyUsage, KEY_USAGE, KeyUsage},
};

/// The canonical parameters.
///
/// Absent parameters are omitted, except the key's type or length, the duration and the two flags, which are always present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// The subject.
    #[serde(flatten)]
    pub subject: Subject,
    /// The alternative names, in the requested order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternative_names: Vec<AlternativeName>,
    /// The key usage. Its order is not significant.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub key_usage: BTreeSet<KeyUsage>,
    /// The extended key usage, without duplicates, in the requested order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extended_key_usage: Vec<ExtendedKeyUsage>,
    /// The type of the key: `key_length` for RSA, `key_type` for other types.
    #[serde(flatten)]
    pub key_type: KeyType,
    /// The duration in days. A caller may request 1 to 3650. A certificate that was set may have a longer duration, and keeps it
    /// when it is regenerated.
    #[serde(rename = "duration")]
    pub duration_days: u32,
    /// The name of the signing CA's credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
    /// Whether the certificate is a CA.
    pub is_ca: bool,
    /// Whether the certificate is self-signed: as requested, or because it is a CA without `ca`.
    pub self_sign: bool,
    /// The parts of a set certificate that other parameters can't express. The host rejects this parameter in requests.
    #[serde(default, skip_serializing_if = "Kept::is_empty")]
    pub kept: Kept,
}

/// Converts parameters to their canonical form.
pub fn normalize(parameters: &str, settings: &str) -> Result<String, Failure> {
    no_settings(settings)?;
    let parameters = Parameters::parse(parameters).map_err(Failure::InvalidParameters)?;
    to_json(&parameters)
}

impl Parameters {
    /// Parses a caller's parameters.
    pub fn parse(parameters: &str) -> Result<Self, Violation> {
        let mut fields = Fields::parse(parameters)?;
        let ca = fields.take_filled_text(ISSUER_PARAMETER)?;
        let is_ca = fields.take_flag("is_ca")?;
        let self_sign = fields.take_flag("self_sign")?;
        let kept: Kept = fields.take_deserialized("kept")?.unwrap_or_default();
        let parameters = Self {
            subject: Subject::take(&mut fields, kept.subject.is_some())?,
            alternative_names: take_each(&mut fields, "alternative_names", AlternativeName::parse)?,
            key_usage: take_each(&mut fields, KEY_USAGE, KeyUsage::parse)?
                .into_iter()
                .collect(),
            extended_key_usage: each_once(take_each(
                &mut fields,
                "extended_key_usage",
                ExtendedKeyUsage::parse,
            )?),
            key_type: KeyType::take(&mut fields)?,
            duration_days: take_duration(&mut fields)?,
            self_sign: signs_itself(ca.is_some(), is_ca, self_sign)?,
            ca,
            is_ca,
            kept,
        };
        fields.finish()?;
        if parameters.kept.key_usage.is_none() {
            suits_key_type(&parameters)?;
        }
        Ok(parameters)
    }
}

/// Checks the key usage against the key type. Does not apply to a certificate that was set, which keeps its key usage.
fn suits_key_type(parameters: &Parameters) -> Result<(), Violation> {
    let key_type = parameters.key_type;
    let unsuitable = parameters
        .key_usage
        .iter()
        .find(|usage| !key_type.may_assert(**usage));
    match unsuitable {
        None => Ok(()),
        Some(usage) => Err(Violation::of(
            KEY_USAGE,
            format!(
                "must not contain {} for a key of type {}",
                usage.name(),
                key_type.name()
            ),
        )),
    }
}

fn signs_itself(has_ca: bool, is_ca: bool, self_sign: bool) -> Result<bool, Violation> {
    match (has_ca, self_sign) {
        (true, true) => Err(Violation::of_whole(
            "only one of ca and self_sign may be given",
        )),
        (true, false) => Ok(false),
        (false, _) if is_ca || self_sign => Ok(true),
        (false, _) => Err(Violation::of_whole(
            "at least one of ca, is_ca and self_sign is required",
        )),
    }
}

fn take_each<T>(
    fields: &mut Fields,
    parameter: &str,
    parse: fn(&str) -> Result<T, Violation>,
) -> Result<Vec<T>, Violation> {
    fields
        .take_texts(parameter)?
        .iter()
        .map(|text| parse(text))
        .collect()
}

fn each_once<T: PartialEq>(items: Vec<T>) -> Vec<T> {
    let mut seen = Vec::with_capacity(items.len());
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

fn take_duration(fields: &mut Fields) -> Result<u32, Violation> {
    let Some(days) = fields.take_integer("duration")? else {
        return Ok(DURATION_DAYS_DEFAULT);
    };
    u32::try_from(days)
        .ok()
        .filter(|days| (DURATION_DAYS_MIN..=DURATION_DAYS_MAX).contains(days))
        .ok_or_else(|| {
            Violation::of(
                "duration",
                format!("must be from {DURATION_DAYS_MIN} to {DURATION_DAYS_MAX} days"),
            )
        })
}

const DURATION_DAYS_DEFAULT: u32 = 365;
const DURATION_DAYS_MIN: u32 = 1;
const DURATION_DAYS_MAX: u32 = 3650;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::PARAMETERS_SCHEMA;

    fn normalized(parameters: &Value) -> Value {
        let text = normalize(&parameters.to_string(), "{}").unwrap();
        assert_eq!(
            normalize(&text, "{}").unwrap(),
            text,
            "not its own canonical form"
        );
        let canonical: Value = serde_json::from_str(&text).unwrap();
        let schema = serde_json::from_str(PARAMETERS_SCHEMA).unwrap();
        assert!(
            jsonschema::draft202012::new(&schema)
                .unwrap()
                .is_valid(&canonical),
            "{canonical}"
        );
        canonical
    }

    fn violation(parameters: &Value) -> Violation {
        let Err(Failure::InvalidParameters(violation)) = normalize(&parameters.to_string(), "{}")
        else {
            panic!("{parameters} was accepted")
        };
        violation
    }

    #[test]
    fn kept_parts_are_unchanged_and_may_replace_the_subject() {
        let parameters = json!({
            "key_length": 2048, "duration": 30, "is_ca": true, "self_sign": true,
            "kept": {"subject": "MAA=", "extended_key_usage": "MAA="}
        });
        assert_eq!(normalized(&parameters), parameters);
        let without = json!({"kept": {"extended_key_usage": "MAA="}, "self_sign": true});
        assert_eq!(violation(&without).field, None);
        let malformed = json!({"kept": {"subject": "?"}, "self_sign": true});
        assert_eq!(violation(&malformed).field.as_deref(), Some("kept"));
    }
}
