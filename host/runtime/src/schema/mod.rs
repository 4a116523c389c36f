//! The JSON Schemas of a plugin's parameters and values.

mod bounds;
mod declared;
mod parameters;
mod rule;
mod secrecy;
mod value;

pub(crate) use parameters::ParametersSchema;
pub(crate) use value::ValueSchema;

use jsonschema::{Draft, PatternOptions, Validator};
use keywright_core::ports::Violation;
use keywright_json::JsonError;
use serde_json::Value;

use crate::text::violation;
use bounds::{SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_PARTS_MAX, SCHEMA_PATTERNS_MAX};

/// The maximum memory of a compiled pattern, in bytes. The worst-case time of a search is proportional to it.
const PATTERN_BYTES_MAX: usize = 256 * 1_024;
/// The maximum work for finding the rule that a value breaks, in parts of the schema times parts of the value. The validator
/// may have to record every violation, which takes memory.
const EXPLANATION_WORK_MAX: u64 = 250_000;

/// The error for a schema that the host can't use. `Display` completes the sentence "its value schema …".
#[derive(Debug, thiserror::Error)]
pub enum SchemaMalformed {
    /// It is not JSON by the rules of [`keywright_json::check`].
    #[error("is not JSON")]
    NotJson(#[source] JsonError),
    /// It is JSON, but not a self-contained schema of draft 2020-12.
    #[error(
        "is not a JSON Schema of draft 2020-12 without references to other documents, and with patterns that have no \
         look-around and at most {PATTERN_BYTES_MAX} bytes each when compiled: {0}"
    )]
    NotASchema(String),
    /// It is a schema of parameters, but not of type `object`.
    #[error("is not of type object")]
    NotOfObjects,
    /// It is recursive.
    #[error("is recursive: a $ref must not refer to a schema that contains it")]
    Recursive,
    /// It has a reference other than a `$ref` with a JSON Pointer.
    #[error(
        "has an unsupported reference: use only $ref with a JSON Pointer to a schema in the document, such as \
         #/$defs/name, without percent-encoding, $dynamicRef or a nested $id"
    )]
    ReferenceNotAPointer,
    /// It is nested too deeply.
    #[error("is nested more than {SCHEMA_DEPTH_MAX} levels deep, after resolving references")]
    TooDeep,
    /// It is too long.
    #[error("is longer than {SCHEMA_BYTES_MAX} bytes")]
    TooLong,
    /// It has too many parts.
    #[error("has more than {SCHEMA_PARTS_MAX} parts, after resolving references")]
    TooManyParts,
    /// It has too many patterns.
    #[error("has more than {SCHEMA_PATTERNS_MAX} patterns, after resolving references")]
    TooManyPatterns,
    /// It marks a secret part where the host can't locate it.
    #[error(
        "has a misplaced writeOnly: it is only allowed at the top and on fields in `properties`"
    )]
    WriteOnlyMisplaced,
}

/// A validator of values. The time of a check is at most proportional to the size of the value times
/// [`SCHEMA_PARTS_MAX`].
struct Checker {
    validator: Validator,
    schema_parts: u64,
}

impl Checker {
    fn is_valid(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    /// Returns the first rule that a value breaks, or `None` if it is valid.
    fn violation(&self, value: &Value) -> Option<Violation> {
        if self.validator.is_valid(value) {
            return None;
        }
        let unexplained = || violation(None, "does not match the schema of its type");
        let value_parts = bounds::value_parts(value, EXPLANATION_WORK_MAX);
        if value_parts.saturating_mul(self.schema_parts) > EXPLANATION_WORK_MAX {
            return Some(unexplained());
        }
        let broken = self.validator.validate(value).err();
        Some(broken.map_or_else(unexplained, |broken| rule::broken_rule(&broken, value)))
    }
}

/// Parses and compiles a schema. The text must be JSON by the rules of [`keywright_json::check`].
fn compile(text: &str) -> Result<(Value, Checker), SchemaMalformed> {
    if text.len() > SCHEMA_BYTES_MAX {
        return Err(SchemaMalformed::TooLong);
    }
    let schema: Value = keywright_json::read(text).map_err(SchemaMalformed::NotJson)?;
    let schema_parts = bounds::check(&schema)?;
    let patterns = PatternOptions::regex()
        .size_limit(PATTERN_BYTES_MAX)
        .dfa_size_limit(PATTERN_BYTES_MAX);
    let validator = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(patterns)
        .offline()
        .build(&schema)
        .map_err(|cause| SchemaMalformed::NotASchema(crate::text::for_log(&cause.to_string())))?;
    let checker = Checker {
        validator,
        schema_parts,
    };
    Ok((schema, checker))
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
            assert!(matches!(compile(text), Err(SchemaMalformed::NotJson(_))));
        }
    }
}
