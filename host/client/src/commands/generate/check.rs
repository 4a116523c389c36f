//! Validates parameters against the server's schemas before they are sent.

use std::collections::BTreeSet;

use jsonschema::{
    ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind},
};
use serde_json::{Map, Value};

use crate::{
    Client, Error, KnownType,
    command_error::CommandError,
    commands::types::{find_type, parameters as parameters_of},
};

/// Returns the description of a type, or `None` if the server describes no types, or not the parameters of this type. In that
/// case, only the server validates the parameters.
pub(super) async fn known_type(
    client: &Client,
    credential_type: &str,
) -> Result<Option<KnownType>, CommandError> {
    let types = match client.types().await {
        Ok(types) => types,
        Err(Error::Refused(refusal)) if refusal.status == 404 => return Ok(None),
        Err(cause) => return Err(cause.into()),
    };
    let known = find_type(&types, credential_type).map_err(CommandError::Usage)?;
    Ok(Some(known.clone()).filter(|known| known.parameters.is_object()))
}

/// Validates parameters. `argument` returns the argument that contains a parameter. Leaves scalars of the wrong type to the server
/// if it may convert them.
///
/// # Errors
/// The violated rules and the parameters of the type, without the given values: they may be secret.
pub(super) fn check(
    known: &KnownType,
    parameters: &Map<String, Value>,
    argument: impl Fn(&str) -> String,
) -> Result<(), CommandError> {
    let Some(validator) = validator(&known.parameters) else {
        return Ok(());
    };
    let parameters = Value::Object(parameters.clone());
    let errors: Vec<_> = validator.iter_errors(&parameters).collect();
    let left_to_server: BTreeSet<_> = errors
        .iter()
        .filter(|error| may_be_converted(error))
        .map(|error| error.instance_path().to_string())
        .collect();
    let violations: Vec<String> = errors
        .iter()
        .filter(|error| !left_to_server.contains(&error.instance_path().to_string()))
        .map(|error| {
            let path = error.instance_path().to_string();
            let path = path.trim_start_matches('/');
            let rule = match error.kind() {
                ValidationErrorKind::AdditionalProperties { unexpected } => {
                    let plural = if unexpected.len() == 1 { "" } else { "s" };
                    format!("unknown parameter{plural} {}", unexpected.join(", "))
                }
                ValidationErrorKind::Type {
                    kind: TypeKind::Single(expected),
                } => format!("must be of type {expected}"),
                ValidationErrorKind::Required { property } => {
                    format!("{} is required", property.as_str().unwrap_or_default())
                }
                ValidationErrorKind::Enum { options } => {
                    let options = options.as_array().into_iter().flatten();
                    let options: Vec<_> = options.map(Value::to_string).collect();
                    format!("must be one of {}", options.join(", "))
                }
                _ => error.masked_with(MASK).to_string(),
            };
            match path.split_once('/') {
                None if path.is_empty() => rule,
                None => format!("{}: {rule}", argument(path)),
                Some((name, within)) => format!("{}/{within}: {rule}", argument(name)),
            }
        })
        .collect();
    if violations.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = parameters_of(&known.parameters)
        .map(|(name, _)| name)
        .collect();
    Err(CommandError::Usage(format!(
        "{}\nparameters of type {}: {}",
        violations.join("\n"),
        known.name,
        names.join(", ")
    )))
}

/// Returns whether the server may accept the value after a conversion: a number, a boolean, or a string that contains one.
fn may_be_converted(error: &ValidationError<'_>) -> bool {
    let is_scalar = match error.instance().as_ref() {
        Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => {
            text.parse::<i64>().is_ok() || text.to_ascii_lowercase().parse::<bool>().is_ok()
        }
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    };
    is_scalar && matches!(error.kind(), ValidationErrorKind::Type { .. })
}

/// Returns the validator of a schema. `None` if only the server can validate: the schema is malformed, or its validation could
/// take very long or very much memory. A malicious server can send any schema.
fn validator(schema: &Value) -> Option<Validator> {
    if schema.to_string().len() > SCHEMA_BYTES_MAX || has_multiplier(schema) {
        return None;
    }
    let patterns = jsonschema::PatternOptions::regex()
        .size_limit(PATTERN_BYTES_MAX)
        .dfa_size_limit(PATTERN_BYTES_MAX);
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .with_pattern_options(patterns)
        .offline()
        .build(schema)
        .ok()
}

/// Returns whether a schema has a keyword that multiplies the work: a reference, or one that validates the same schemas again.
fn has_multiplier(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().any(has_multiplier),
        Value::Object(fields) => fields
            .iter()
            .any(|(key, field)| MULTIPLIERS.contains(&key.as_str()) || has_multiplier(field)),
        _ => false,
    }
}

const MULTIPLIERS: [&str; 5] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// The longest schema of a server, in bytes.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;

/// The maximum memory of a compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 64 * 1024;

/// Replaces given values in messages.
const MASK: &str = "the value";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pin(parameters: &Value) -> Result<(), CommandError> {
        let known: KnownType = serde_json::from_value(json!({
            "name": "pin",
            "summary": "A number.",
            "plugin": null,
            "parameters": {
                "type": "object",
                "properties": {
                    "digits": {"type": "integer", "maximum": 12},
                    "seed": {"type": "string", "maxLength": 4, "pattern": "^[a-z]*$"},
                    "uses": {"type": "array", "items": {"enum": ["a", "b", "c", "d", "e"]}},
                    "kept": {"type": "string", "readOnly": true},
                },
                "required": ["digits"],
                "additionalProperties": false,
                "anyOf": [{"required": ["digits"]}, {"required": ["seed"]}],
                "not": {"properties": {"seed": {"const": "none"}}, "required": ["seed"]},
            },
        }))
        .unwrap();
        check(&known, parameters.as_object().unwrap(), str::to_owned)
    }

    #[test]
    fn values_that_the_server_converts_are_accepted() {
        for parameters in [
            json!({"digits": 12}),
            json!({"digits": "12", "seed": 5}),
            json!({"digits": true}),
        ] {
            pin(&parameters).unwrap();
        }
    }

    #[test]
    fn refusals_do_not_repeat_given_values() {
        for parameters in [
            json!({"digits": "hunter2"}),
            json!({"digits": 4, "seed": "hunter2"}),
            json!({"digits": 4, "seed": ["hunter2"]}),
            json!({"digits": 4, "length": "hunter2"}),
            json!({"digits": {"hunter2": "hunter2"}, "seed": "none"}),
            // Matches no branch of `anyOf`.
            json!({"length": "hunter2"}),
        ] {
            let refused = pin(&parameters).unwrap_err().to_string();
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }
}
