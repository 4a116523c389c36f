//! The schemas by which a plugin describes its parameters and its values.

mod parameters;
mod rule;
mod secrecy;
mod value;

pub(crate) use parameters::ParametersSchema;
pub(crate) use value::ValueSchema;

use jsonschema::{Draft, PatternOptions, Validator};
use keywright_json::JsonError;
use serde_json::Value;

/// Why a text is no schema that the host can use. The words complete the sentence "its value schema …".
#[derive(Debug, thiserror::Error)]
pub enum SchemaMalformed {
    /// It is not JSON by the rules of [`keywright_json::check`].
    #[error("is not JSON")]
    NotJson(#[source] JsonError),
    /// It is JSON, but no schema of draft 2020-12 on its own.
    #[error(
        "is not a JSON Schema of draft 2020-12 that refers to no other document, with patterns without look-around: {0}"
    )]
    NotASchema(String),
    /// A schema of parameters that is not of type `object`.
    #[error("is not of type object")]
    NotOfObjects,
    /// A member is marked as secret where the host can't find it.
    #[error("has a writeOnly elsewhere than on itself or on members that `properties` name")]
    WriteOnlyMisplaced,
}

/// A schema with what checks values against it. The text is JSON by the rules of [`keywright_json::check`].
fn compile(text: &str) -> Result<(Value, Validator), SchemaMalformed> {
    let schema: Value = keywright_json::read(text).map_err(SchemaMalformed::NotJson)?;
    let validator = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex())
        .offline()
        .build(&schema)
        .map_err(|cause| SchemaMalformed::NotASchema(crate::text::for_log(&cause.to_string())))?;
    Ok((schema, validator))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_json_of_bounded_depth_without_reserved_keys() {
        let deep = format!(
            r#"{{"const":{}{}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        let magic = r#"{"properties":{"$serde_json::private::RawValue":"{}"}}"#;
        for text in [&deep, magic, r#"{"type":"object","type":"string"}"#] {
            assert!(matches!(compile(text), Err(SchemaMalformed::NotJson(_))));
        }
    }
}
