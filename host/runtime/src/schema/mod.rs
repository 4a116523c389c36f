//! The schemas by which a plugin describes its parameters and its values.

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

/// The most memory that a compiled pattern may need, in bytes: a search takes time in proportion to it in the worst case.
const PATTERN_BYTES_MAX: usize = 256 * 1_024;
/// The most work that is done to say which rule a value breaks, in parts of the schema times parts of the value. Every way of
/// breaking it may have to be noted, which takes memory.
const EXPLANATION_WORK_MAX: u64 = 250_000;

/// Why a text is no schema that the host can use. The words complete the sentence "its value schema …".
#[derive(Debug, thiserror::Error)]
pub enum SchemaMalformed {
    /// It is not JSON by the rules of [`keywright_json::check`].
    #[error("is not JSON")]
    NotJson(#[source] JsonError),
    /// It is JSON, but no schema of draft 2020-12 on its own.
    #[error(
        "is not a JSON Schema of draft 2020-12 that refers to no other document, with patterns without look-around of \
         {PATTERN_BYTES_MAX} bytes each when compiled: {0}"
    )]
    NotASchema(String),
    /// A schema of parameters that is not of type `object`.
    #[error("is not of type object")]
    NotOfObjects,
    /// A `$ref` leads back to itself.
    #[error("is recursive: a $ref must not lead back to a schema around it")]
    Recursive,
    /// It refers to a schema in another way than by `$ref` and a JSON Pointer.
    #[error(
        "refers to a schema otherwise than by $ref and a JSON Pointer to a place within it, such as #/$defs/name, without \
         percent-encoding, $dynamicRef or an $id below the top"
    )]
    ReferenceNotAPointer,
    /// It is nested too deeply.
    #[error("is nested more than {SCHEMA_DEPTH_MAX} levels deep, references followed")]
    TooDeep,
    /// It is too long.
    #[error("is longer than {SCHEMA_BYTES_MAX} bytes")]
    TooLong,
    /// It has too many parts.
    #[error(
        "has more than {SCHEMA_PARTS_MAX} parts, with everything in the place of each reference to it"
    )]
    TooManyParts,
    /// It has too many patterns.
    #[error(
        "has more than {SCHEMA_PATTERNS_MAX} patterns, with everything in the place of each reference to it"
    )]
    TooManyPatterns,
    /// A member is marked as secret where the host can't find it.
    #[error("has a writeOnly elsewhere than on itself or on members that `properties` name")]
    WriteOnlyMisplaced,
}

/// What checks values against a schema. The time of a check is at most proportional to the size of the value times
/// [`SCHEMA_PARTS_MAX`].
struct Checker {
    validator: Validator,
    schema_parts: u64,
}

impl Checker {
    fn is_valid(&self, value: &Value) -> bool {
        self.validator.is_valid(value)
    }

    /// The first rule that a value breaks, if there is one.
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

/// A schema with what checks values against it. The text is JSON by the rules of [`keywright_json::check`].
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
    fn a_schema_is_json_of_bounded_depth_without_reserved_keys() {
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
