//! Checks parameters before they are sent, by what the server says of its types.

use std::collections::BTreeSet;

use jsonschema::{ValidationError, Validator, error::ValidationErrorKind};
use serde_json::{Map, Value};

use crate::{Client, Error, KnownType, commands::Failure};

/// What the server says of a type. None when it says nothing of its types at all, or nothing of what this one is made of:
/// then it is the server itself that checks.
pub(super) async fn known_type(
    client: &Client,
    credential_type: &str,
) -> Result<Option<KnownType>, Failure> {
    let types = match client.types().await {
        Ok(types) => types,
        Err(Error::Refused(refusal)) if refusal.status == 404 => return Ok(None),
        Err(cause) => return Err(cause.into()),
    };
    let names: Vec<_> = types.iter().map(|known| known.name.clone()).collect();
    let is_named = |known: &KnownType| known.name.eq_ignore_ascii_case(credential_type);
    match types.into_iter().find(is_named) {
        Some(known) => Ok(Some(known).filter(|known| known.parameters.is_object())),
        None => Err(Failure::Usage(format!(
            "the server knows no type {credential_type}, but {}",
            names.join(", ")
        ))),
    }
}

/// Checks parameters. Scalars of another type than the schema declares are left to the server if it may convert them.
///
/// # Errors
/// The rules that are broken, and which parameters there are. What was given is not repeated: with `--parameters-file` it may be
/// meant for nobody's eyes.
pub(super) fn check(known: &KnownType, parameters: &Map<String, Value>) -> Result<(), Failure> {
    let Ok(validator) = validator(&known.parameters) else {
        // A schema that this program can't read: the server checks by it.
        return Ok(());
    };
    let parameters = Value::Object(parameters.clone());
    let errors: Vec<_> = validator.iter_errors(&parameters).collect();
    let left_to_server: BTreeSet<_> = errors
        .iter()
        .filter(|error| may_be_converted(error))
        .map(|error| error.instance_path().to_string())
        .collect();
    let broken: Vec<String> = errors
        .iter()
        .filter(|error| !left_to_server.contains(&error.instance_path().to_string()))
        .map(|broken| {
            let place = broken.instance_path().to_string();
            let place = place.trim_start_matches('/');
            let rule = broken.masked_with(MASK);
            if place.is_empty() {
                rule.to_string()
            } else {
                format!("{place}: {rule}")
            }
        })
        .collect();
    if broken.is_empty() {
        return Ok(());
    }
    let known_names = known
        .parameters
        .get("properties")
        .and_then(Value::as_object);
    let names: Vec<&str> = known_names
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    Err(Failure::Usage(format!(
        "{}\nparameters of type {}: {}",
        broken.join("\n"),
        known.name,
        names.join(", ")
    )))
}

/// Whether the only mistake may be the type of a scalar: a number or a boolean, or a string that has one.
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

fn validator(schema: &Value) -> Result<Validator, Failure> {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .with_pattern_options(jsonschema::PatternOptions::regex())
        .offline()
        .build(schema)
        .map_err(|cause| Failure::Other(cause.to_string()))
}

/// What stands in the place of what was given.
const MASK: &str = "what is given";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pin(parameters: &Value) -> Result<(), Failure> {
        let known: KnownType = serde_json::from_value(json!({
            "name": "pin",
            "summary": "A number.",
            "plugin": null,
            "parameters": {
                "type": "object",
                "properties": {
                    "digits": {"type": "integer", "maximum": 12},
                    "seed": {"type": "string", "maxLength": 4, "pattern": "^[a-z]*$"},
                },
                "required": ["digits"],
                "additionalProperties": false,
                "anyOf": [{"required": ["digits"]}, {"required": ["seed"]}],
                "not": {"properties": {"seed": {"const": "none"}}, "required": ["seed"]},
            },
        }))
        .unwrap();
        check(&known, parameters.as_object().unwrap())
    }

    #[test]
    fn what_breaks_a_rule_is_named_with_what_there_is() {
        for parameters in [
            json!({"digits": 12}),
            json!({"digits": "12", "seed": 5}),
            json!({"digits": true}),
        ] {
            pin(&parameters).unwrap();
        }
        for (parameters, words) in [
            (
                json!({"digits": 13}),
                "digits: what is given is greater than the maximum of 12",
            ),
            (json!({"digits": "x"}), "integer"),
            (json!({"digits": 4, "length": 1}), "length"),
            (json!({}), "digits"),
        ] {
            let refused = pin(&parameters).unwrap_err().to_string();
            assert!(refused.contains(words), "{refused}");
            assert!(
                refused.ends_with("parameters of type pin: digits, seed"),
                "{refused}"
            );
        }
    }

    #[test]
    fn what_was_given_is_not_repeated() {
        for parameters in [
            json!({"digits": "hunter2"}),
            json!({"digits": 4, "seed": "hunter2"}),
            json!({"digits": 4, "seed": ["hunter2"]}),
            json!({"digits": 4, "length": "hunter2"}),
            json!({"digits": {"hunter2": "hunter2"}, "seed": "none"}),
            // None of the alternatives.
            json!({"length": "hunter2"}),
        ] {
            let refused = pin(&parameters).unwrap_err().to_string();
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }
}
