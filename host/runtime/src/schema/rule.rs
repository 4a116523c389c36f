//! Messages for violated rules of a schema, without the offending values.

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind},
};
use keywright_core::ports::Violation;
use serde_json::Value;

use crate::text::violation;

/// Returns the field that violates a rule of its schema, and the rule. Only field names are taken from the value.
pub(super) fn broken_rule(broken: &ValidationError<'_>, value: &Value) -> Violation {
    let mut path = dotted(broken.instance_path().as_str());
    let mut within = |name: &str| {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
    };
    let rule = match broken.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            if let Some(name) = unexpected.first() {
                within(name);
            }
            "is not known".to_owned()
        }
        // For `"additionalProperties": false` in a schema without properties, the error refers to the object, not to its field.
        ValidationErrorKind::FalseSchema if is_of_members(broken) => {
            let object = value.pointer(broken.instance_path().as_str());
            if let Some(name) = object.and_then(|object| object.as_object()?.keys().next()) {
                within(name);
            }
            "is not known".to_owned()
        }
        ValidationErrorKind::Required { property } => {
            if let Some(name) = property.as_str() {
                within(name);
            }
            "is required".to_owned()
        }
        kind => plain_rule(kind),
    };
    violation(Some(path.as_str()).filter(|path| !path.is_empty()), &rule)
}

fn is_of_members(broken: &ValidationError<'_>) -> bool {
    broken
        .schema_path()
        .as_str()
        .ends_with("/additionalProperties")
}

fn plain_rule(kind: &ValidationErrorKind) -> String {
    match kind {
        ValidationErrorKind::Constant { expected_value } => format!("must be {expected_value}"),
        ValidationErrorKind::Enum { options } => format!("must be one of {}", listed(options)),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        ValidationErrorKind::FalseSchema => "is not allowed".to_owned(),
        ValidationErrorKind::Format { format } => format!("must be of the format {format}"),
        ValidationErrorKind::MaxItems { limit } => format!("must have at most {limit} items"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::MaxLength { limit } => format!("must have at most {limit} characters"),
        ValidationErrorKind::MaxProperties { limit } => {
            format!("must have at most {limit} fields")
        }
        ValidationErrorKind::MinItems { limit } => format!("must have at least {limit} items"),
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::MinLength { limit } => {
            format!("must have at least {limit} characters")
        }
        ValidationErrorKind::MinProperties { limit } => {
            format!("must have at least {limit} fields")
        }
        ValidationErrorKind::MultipleOf { multiple_of } => {
            format!("must be a multiple of {multiple_of}")
        }
        ValidationErrorKind::Pattern { pattern } => format!("must match the pattern {pattern}"),
        ValidationErrorKind::Type {
            kind: TypeKind::Single(expected),
        } => {
            format!("must be of type {expected}")
        }
        ValidationErrorKind::Type {
            kind: TypeKind::Multiple(_),
        } => "has a type that is not allowed".to_owned(),
        ValidationErrorKind::UniqueItems => "must not have duplicate items".to_owned(),
        other => format!("violates the rule {} of its schema", other.keyword()),
    }
}

/// Converts a JSON Pointer to a path with dots.
fn dotted(pointer: &str) -> String {
    let segments = pointer.split('/').skip(1);
    let names: Vec<String> = segments
        .map(|segment| segment.replace("~1", "/").replace("~0", "~"))
        .collect();
    names.join(".")
}

fn listed(options: &Value) -> String {
    let options: Vec<String> = options
        .as_array()
        .into_iter()
        .flatten()
        .map(Value::to_string)
        .collect();
    options.join(", ")
}
