//! The JSON Schemas of a plugin's parameters, values and settings.

mod bounds;
mod parameters;
mod settings;
mod value;

use std::collections::BTreeSet;

use jsonschema::{
    Draft, JsonType, ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind},
};
use keywright_core::{ports::Violation, text::for_log};
use keywright_json::{
    is_control_or_invisible,
    pointer::{dotted, escaped, unescaped},
};
use serde_json::Value;

pub use bounds::SchemaError;
use bounds::{
    PATTERN_BYTES_MAX, PATTERN_WORK_MAX, PROPERTY_BYTES_MAX, SCHEMA_BYTES_MAX, SchemaSize,
    UNIQUE_WORK_MAX, pattern_options,
};
pub(crate) use parameters::ParametersSchema;
pub(crate) use settings::SettingsSchema;
pub(crate) use value::{Secrecy, SensitiveJson, ValueSchema};

/// The maximum work for finding the rule that a value breaks, in parts of the schema times parts of the value. The validator
/// may have to record every violation, which takes memory.
const EXPLANATION_WORK_MAX: u64 = 250_000;

/// A validator of values. The time of a check is at most proportional to the size of the value times
/// [`bounds::SCHEMA_PARTS_MAX`], plus [`PATTERN_WORK_MAX`] and [`UNIQUE_WORK_MAX`].
struct Checker {
    validator: Validator,
    size: SchemaSize,
    /// The names of all fields in the schema. Other names in a value may be secret.
    declared: BTreeSet<String>,
}

/// A rule of a schema that a value breaks.
pub(crate) struct BrokenRule {
    /// The rule, for the caller who sent the value.
    pub(crate) violation: Violation,
    /// The JSON Pointer to the part of the value that breaks the rule, if the rule could be determined.
    pointer: Option<String>,
    /// The keyword and a JSON Pointer without undeclared names, for the author of a plugin that returned the value. Never contains
    /// a part of the value.
    pub(crate) description: String,
}

impl BrokenRule {
    /// Returns whether the part of `returned` that breaks the rule equals that part of `given`.
    pub(crate) fn is_unchanged(&self, given: &Value, returned: &Value) -> bool {
        let at = |value| {
            self.pointer
                .as_ref()
                .and_then(|pointer| Value::pointer(value, pointer))
        };
        at(given).is_some_and(|part| at(returned) == Some(part))
    }
}

impl Checker {
    fn is_valid(&self, value: &Value) -> bool {
        self.exceeded_limit(value).is_none() && self.validator.is_valid(value)
    }

    /// Returns the rule that a value breaks if the work of searching its texts or comparing its items exceeds a limit.
    fn exceeded_limit(&self, value: &Value) -> Option<&'static str> {
        let SchemaSize {
            pattern_bytes,
            unique,
            ..
        } = self.size;
        if pattern_bytes > 0
            && bounds::text_bytes(value).saturating_mul(pattern_bytes) > PATTERN_WORK_MAX
        {
            return Some("is too long for the patterns in the schema of its type");
        }
        if unique > 0 {
            let parts = bounds::value_parts(value, UNIQUE_WORK_MAX.isqrt());
            if (parts * parts).saturating_mul(unique) > UNIQUE_WORK_MAX {
                return Some("is too large for the uniqueItems in the schema of its type");
            }
        }
        None
    }

    /// Returns the first rule that a value breaks, or `None` if it is valid.
    fn broken_rule(&self, value: &Value) -> Option<BrokenRule> {
        if self.is_valid(value) {
            return None;
        }
        if let Some(rule) = self.exceeded_limit(value) {
            return Some(BrokenRule {
                violation: Violation::new(None, rule),
                pointer: None,
                description: rule.to_owned(),
            });
        }
        let unexplained = || BrokenRule {
            violation: Violation::new(None, "does not match the schema of its type"),
            pointer: None,
            description: "violates its schema".to_owned(),
        };
        let value_parts = bounds::value_parts(value, EXPLANATION_WORK_MAX);
        if value_parts.saturating_mul(self.size.parts) > EXPLANATION_WORK_MAX {
            return Some(unexplained());
        }
        let broken = self.validator.validate(value).err();
        Some(broken.map_or_else(unexplained, |broken| BrokenRule {
            violation: violation_of(&broken, value),
            pointer: Some(broken.instance_path().as_str().to_owned()),
            description: self.description(&broken),
        }))
    }

    /// Names the violated keyword and the position in the value.
    fn description(&self, broken: &ValidationError<'_>) -> String {
        let keyword = match broken.kind() {
            ValidationErrorKind::FalseSchema if is_of_fields(broken) => "additionalProperties",
            ValidationErrorKind::FalseSchema => "false",
            kind => kind.keyword(),
        };
        let mut pointer = self.declared_pointer(broken.instance_path().as_str());
        if let ValidationErrorKind::Required { property } = broken.kind()
            && let Some(name) = property.as_str()
        {
            pointer.push('/');
            pointer.push_str(&escaped(name));
        }
        format!("violates {keyword:?} of its schema at the JSON Pointer {pointer:?}")
    }

    /// Replaces each name that the schema does not declare with `*`.
    fn declared_pointer(&self, pointer: &str) -> String {
        let segments = pointer.split('/').skip(1);
        let shown = segments.map(|segment| {
            let is_index = segment.bytes().all(|byte| byte.is_ascii_digit());
            let is_shown = is_index || self.declared.contains(&unescaped(segment));
            format!("/{}", if is_shown { segment } else { "*" })
        });
        shown.collect()
    }
}

/// Parses and compiles a schema. The text must be JSON by the rules of [`keywright_json::check`].
fn compile(text: &str) -> Result<(Value, Checker), SchemaError> {
    if text.len() > SCHEMA_BYTES_MAX {
        return Err(SchemaError::TooLong);
    }
    let schema: Value = keywright_json::read(text).map_err(SchemaError::NotJson)?;
    let size = bounds::check(&schema)?;
    let validator = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(pattern_options(PATTERN_BYTES_MAX))
        .offline()
        .build(&schema)
        .map_err(|cause| SchemaError::NotASchema(for_log(&cause.to_string())))?;
    let mut declared = BTreeSet::new();
    collect_declared(&schema, &mut declared);
    if declared
        .iter()
        .any(|name| name.contains(is_control_or_invisible))
    {
        return Err(SchemaError::PropertyNotPrintable);
    }
    if declared.iter().any(|name| name.len() > PROPERTY_BYTES_MAX) {
        return Err(SchemaError::PropertyTooLong);
    }
    let checker = Checker {
        validator,
        size,
        declared,
    };
    Ok((schema, checker))
}

/// Removes control and invisible characters, except newlines, from the titles and descriptions of a schema. A schema without such
/// characters stays unchanged, because [`Value`] rounds long numbers.
pub(crate) fn with_printable_texts(schema: &str) -> String {
    let mut printable: Value = keywright_json::read(schema).unwrap_or_default();
    if remove_invisible(&mut printable) {
        printable.to_string()
    } else {
        schema.to_owned()
    }
}

/// Returns whether it removed a character.
fn remove_invisible(schema: &mut Value) -> bool {
    let is_removed = |character| character != '\n' && is_control_or_invisible(character);
    match schema {
        Value::Object(keywords) => {
            let mut has_removed = false;
            for (keyword, argument) in keywords {
                has_removed |= match argument {
                    Value::String(text) if matches!(keyword.as_str(), "description" | "title") => {
                        let bytes = text.len();
                        text.retain(|character| !is_removed(character));
                        text.len() < bytes
                    }
                    argument => remove_invisible(argument),
                };
            }
            has_removed
        }
        Value::Array(items) => items.iter_mut().fold(false, |has_removed, item| {
            remove_invisible(item) | has_removed
        }),
        _ => false,
    }
}

fn is_of_objects(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

/// Collects the names below each `properties`, at any depth.
fn collect_declared(schema: &Value, declared: &mut BTreeSet<String>) {
    match schema {
        Value::Object(keywords) => {
            let properties = keywords.get("properties").and_then(Value::as_object);
            declared.extend(
                properties
                    .into_iter()
                    .flat_map(|fields| fields.keys().cloned()),
            );
            for argument in keywords.values() {
                collect_declared(argument, declared);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_declared(item, declared);
            }
        }
        _ => {}
    }
}

/// Returns the fields that an object may have, if the schema allows no others.
fn known_fields(schema: &Value) -> Option<BTreeSet<String>> {
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
        && schema.get("patternProperties").is_none();
    let properties = schema.get("properties").and_then(Value::as_object);
    is_closed.then(|| {
        properties
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect()
    })
}

/// Returns the field that violates a rule of its schema, and the rule. Only field names are taken from the value.
fn violation_of(broken: &ValidationError<'_>, value: &Value) -> Violation {
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
            "is unknown".to_owned()
        }
        // For `"additionalProperties": false` in a schema without properties, the error refers to the object, not to its field.
        ValidationErrorKind::FalseSchema if is_of_fields(broken) => {
            let object = value.pointer(broken.instance_path().as_str());
            if let Some(name) = object.and_then(|object| object.as_object()?.keys().next()) {
                within(name);
            }
            "is unknown".to_owned()
        }
        ValidationErrorKind::Required { property } => {
            if let Some(name) = property.as_str() {
                within(name);
            }
            "is required".to_owned()
        }
        kind => plain_rule(kind),
    };
    Violation::new(Some(path.as_str()).filter(|path| !path.is_empty()), &rule)
}

fn is_of_fields(broken: &ValidationError<'_>) -> bool {
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
        ValidationErrorKind::MaxItems { limit } => {
            format!("must have at most {}", counted(*limit, "item"))
        }
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::MaxLength { limit } => {
            format!("must have at most {}", counted(*limit, "character"))
        }
        ValidationErrorKind::MaxProperties { limit } => {
            format!("must have at most {}", counted(*limit, "field"))
        }
        ValidationErrorKind::MinItems { limit } => {
            format!("must have at least {}", counted(*limit, "item"))
        }
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::MinLength { limit } => {
            format!("must have at least {}", counted(*limit, "character"))
        }
        ValidationErrorKind::MinProperties { limit } => {
            format!("must have at least {}", counted(*limit, "field"))
        }
        ValidationErrorKind::MultipleOf { multiple_of } => {
            format!("must be a multiple of {multiple_of}")
        }
        ValidationErrorKind::Pattern { pattern } => format!("must match the pattern {pattern}"),
        ValidationErrorKind::PropertyNames { error } => {
            let key = error
                .instance()
                .as_str()
                .map_or("", keywright_json::shown_key);
            format!(
                "has the key {key}, which is not allowed: each key {}",
                plain_rule(error.kind())
            )
        }
        ValidationErrorKind::Type {
            kind: TypeKind::Single(expected),
        } => format!("must be {}", type_name(*expected)),
        ValidationErrorKind::Type {
            kind: TypeKind::Multiple(expected),
        } => {
            let names: Vec<&str> = expected.iter().map(type_name).collect();
            format!("must be {}", names.join(" or "))
        }
        ValidationErrorKind::UniqueItems => "must not have duplicate items".to_owned(),
        other => format!("violates the rule {} of its schema", other.keyword()),
    }
}

fn counted(count: u64, unit: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

fn type_name(expected: JsonType) -> &'static str {
    match expected {
        JsonType::Array => "an array",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_deep_json_and_reserved_or_duplicate_keys_are_rejected() {
        let deep = format!(
            r#"{{"const":{}{}}}"#,
            "[".repeat(10_000),
            "]".repeat(10_000)
        );
        let magic = r#"{"properties":{"$serde_json::private::RawValue":"{}"}}"#;
        for text in [&deep, magic, r#"{"type":"object","type":"string"}"#] {
            assert!(matches!(compile(text), Err(SchemaError::NotJson(_))));
        }
    }
}
