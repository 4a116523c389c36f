//! Derives connection strings from a template and stored credentials.

pub mod template;

use std::{collections::BTreeMap, fmt::Write};

use keywright_plugin_support::{Failure, Input, Violation, canonical, no_settings, to_json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use self::template::{Part, parse};

#[cfg(target_arch = "wasm32")]
keywright_plugin_support::derived_generator_component! {
    credential_type: "connection-string",
    summary: "Connection strings, derived from stored credentials",
    entropy_bits_min: None,
    input_parameter: CREDENTIALS,
    example_type: "user",
    example_value: EXAMPLE,
    generate: (|parameters: &str, settings: &str, inputs: &[_], _: &mut _| {
        generate(parameters, settings, inputs)
    }),
}

/// The canonical parameters, which the host has validated against their schema.
#[derive(Serialize, Deserialize)]
struct Parameters {
    template: String,
    credentials: Map<String, Value>,
}

/// Derives a connection string from the credentials that the parameters name.
pub fn generate(parameters: &str, settings: &str, inputs: &[Input]) -> Result<String, Failure> {
    no_settings(settings)?;
    let Parameters {
        template,
        credentials,
    } = canonical(parameters)?;
    let parts = parse(&template).map_err(|rule| refused(TEMPLATE, rule))?;
    let values: BTreeMap<&str, &str> = inputs
        .iter()
        .filter_map(|input| Some((key_of(input)?, input.value.as_str())))
        .collect();
    let is_used = |key: &String| {
        let mut keys = parts.iter().filter_map(|part| match part {
            Part::Placeholder { key, .. } => Some(*key),
            Part::Text(_) => None,
        });
        keys.any(|used| used == key)
    };
    if let Some(unused) = credentials.keys().find(|key| !is_used(key)) {
        let rule = format!("has the key {unused}, which is not in the template");
        return Err(refused(CREDENTIALS, &rule));
    }
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Text(part) => text.push_str(part),
            Part::Placeholder { key, field } => {
                let value = values.get(key).ok_or_else(|| {
                    let rule = format!("must have the key {key}, which is in the template");
                    refused(CREDENTIALS, &rule)
                })?;
                push_encoded(&mut text, &inserted(value, key, field)?);
            }
        }
        if text.len() > TEXT_BYTES_MAX {
            let rule = format!("must result in a text of at most {TEXT_BYTES_MAX} bytes");
            return Err(refused(TEMPLATE, &rule));
        }
    }
    if text.is_empty() {
        return Err(refused(TEMPLATE, "must not result in an empty text"));
    }
    to_json(&text)
}

fn key_of(input: &Input) -> Option<&str> {
    input.pointer.strip_prefix(POINTER_PREFIX)
}

/// Returns the text of a value, or of one of its fields. Numbers are unchanged.
fn inserted(value: &str, key: &str, field: Option<&str>) -> Result<String, Failure> {
    let (value, placeholder) = match field {
        None => (Some(value), key.to_owned()),
        Some(field) => {
            let fields: BTreeMap<String, &RawValue> =
                serde_json::from_str(value).unwrap_or_default();
            let value = fields.get(field).map(|value| value.get());
            (value, format!("{key}.{field}"))
        }
    };
    let parsed = value.map(|value| serde_json::from_str(value).unwrap_or_default());
    let reason = match parsed {
        Some(Value::String(text)) => return Ok(text),
        Some(Value::Number(_) | Value::Bool(_)) => {
            return Ok(value.unwrap_or_default().trim().to_owned());
        }
        Some(Value::Object(_)) => "names an object; name one of its fields",
        Some(Value::Null | Value::Array(_)) => "must name a string, number or boolean",
        None => "names a missing field",
    };
    let rule = format!("has the placeholder {{{placeholder}}}, which {reason}");
    Err(refused(TEMPLATE, &rule))
}

/// Appends text with percent-encoding: only the unreserved characters of RFC 3986 stay as they are.
fn push_encoded(text: &mut String, inserted: &str) {
    for byte in inserted.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
}

fn refused(field: &str, rule: &str) -> Failure {
    Failure::InvalidParameters(Violation::of(field, rule))
}

const TEMPLATE: &str = "template";

/// The parameter that names the credentials.
const CREDENTIALS: &str = "credentials";

/// The input with which the host tests the plugin.
pub const EXAMPLE: &str = r#"{"username": "example", "password": "an example"}"#;

/// Maximum length of a connection string: the host's limit of a value.
const TEXT_BYTES_MAX: usize = 65_536;

/// The JSON Pointer of a name in the parameters, without its key. Keys have no characters that a pointer escapes.
const POINTER_PREFIX: &str = "/credentials/";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn derived(template: &str, values: &Value) -> Result<Value, Failure> {
        let values = values.as_object().unwrap();
        let inputs = values.iter().map(|(key, value)| Input {
            pointer: format!("/credentials/{key}"),
            value: value.to_string(),
        });
        derived_from(template, &inputs.collect::<Vec<_>>())
    }

    fn derived_from(template: &str, inputs: &[Input]) -> Result<Value, Failure> {
        let keys = inputs.iter().filter_map(key_of);
        let credentials: Map<_, _> = keys
            .map(|key| (key.to_owned(), json!(format!("/{key}"))))
            .collect();
        let parameters = json!({"template": template, "credentials": credentials});
        assert!(
            matches(include_str!("parameters.schema.json"), &parameters),
            "{parameters}"
        );
        let value = generate(&parameters.to_string(), "{}", inputs)?;
        Ok(serde_json::from_str(&value).unwrap())
    }

    fn matches(schema: &str, instance: &Value) -> bool {
        let schema: Value = serde_json::from_str(schema).unwrap();
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        validator.is_valid(instance)
    }

    #[test]
    fn placeholders_are_replaced_by_percent_encoded_values() {
        let example: Value = serde_json::from_str(EXAMPLE).unwrap();
        for (template, values, expected) in [
            (
                "postgres://{u.username}:{u.password}@{h}:{c.port}/{{app}}?tls={c.tls}",
                json!({
                    "u": {"username": "ada", "password": "p@ss:/ä%"},
                    "h": "db.example",
                    "c": {"port": 5432, "tls": true},
                }),
                "postgres://ada:p%40ss%3A%2F%C3%A4%25@db.example:5432/{app}?tls=true",
            ),
            (
                "{user.password}{user.password}",
                json!({"user": example}),
                "an%20examplean%20example",
            ),
        ] {
            let value = derived(template, &values).unwrap();
            assert_eq!(value, expected);
            assert!(matches(include_str!("value.schema.json"), &value));
        }
    }

    #[test]
    fn numbers_are_inserted_unchanged() {
        for number in ["1234567890123456789012", "-0", "1.50", "1e2"] {
            let input = |value| Input {
                pointer: "/credentials/n".to_owned(),
                value,
            };
            let whole = input(format!(" {number} "));
            assert_eq!(derived_from("{n}", &[whole]).unwrap(), number);
            let field = input(format!("{{\"pin\": {number}}}"));
            assert_eq!(derived_from("{n.pin}", &[field]).unwrap(), number);
        }
    }

    #[test]
    fn failures_name_the_parameter_and_never_the_value() {
        let secret = "hunter2";
        for (template, values, field) in [
            ("{u.x}", json!({"u": {"password": secret}}), "template"),
            (
                "{u.x}",
                json!({"u": {"password": secret, "x": ""}}),
                "template",
            ),
            ("{u}", json!({"u": {"password": secret}}), "template"),
            ("{u}", json!({"u": [secret]}), "template"),
            ("{u.password}", json!({"u": secret}), "template"),
            ("{u.password", json!({"u": secret}), "template"),
            ("{v}", json!({"u": secret}), "credentials"),
            ("{u}{v}", json!({"u": secret}), "credentials"),
            ("{u}", json!({"u": secret, "v": secret}), "credentials"),
        ] {
            let failure = derived(template, &values).unwrap_err();
            let Failure::InvalidParameters(violation) = failure else {
                panic!("{failure:?}")
            };
            assert_eq!(violation.field.as_deref(), Some(field), "{template}");
            assert!(!violation.rule.contains(secret));
        }
    }
}
