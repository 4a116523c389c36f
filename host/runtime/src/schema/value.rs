//! Validating values against the schema that their plugin declared.

use std::collections::BTreeSet;

use keywright_core::ports::Violation;
use serde_json::Value;

use super::{Checker, SchemaMalformed, compile, secrecy::Secrecy};

/// The schema of a plugin's values.
pub(crate) struct ValueSchema {
    checker: Checker,
    known_members: Option<BTreeSet<String>>,
    secrecy: Secrecy,
}

impl ValueSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// If the schema is malformed or exceeds a limit.
    pub(crate) fn parse(text: &str) -> Result<Self, SchemaMalformed> {
        let (schema, checker) = compile(text)?;
        let secrecy = Secrecy::of(&schema)?;
        Ok(Self {
            checker,
            known_members: known_members(&schema),
            secrecy,
        })
    }

    /// Whether a value is valid.
    pub(crate) fn is_kept_by(&self, value: &Value) -> bool {
        self.checker.is_valid(value)
    }

    /// Returns the first violated rule, or `None` if the value is valid.
    pub(crate) fn violation(&self, value: &Value) -> Option<Violation> {
        self.checker.violation(value)
    }

    /// Returns a field that the schema does not list, if the schema allows only listed fields.
    pub(crate) fn unknown_member<'v>(&self, value: &'v Value) -> Option<&'v str> {
        let known = self.known_members.as_ref()?;
        let mut names = value.as_object()?.keys();
        names
            .find(|name| !known.contains(name.as_str()))
            .map(String::as_str)
    }

    /// Returns the secret parts of a value with their paths; the whole value if no part is marked as secret.
    pub(crate) fn secret_parts<'v>(&self, value: &'v Value) -> Vec<(String, &'v Value)> {
        self.secrecy.parts(value)
    }

    /// Replaces each secret part with a marker.
    pub(crate) fn redact(&self, value: &mut Value) {
        self.secrecy.redact(value);
    }

    /// Removes the secret parts of a value.
    pub(crate) fn withhold_secrets(&self, value: &mut Value) {
        self.secrecy.withhold_from(value);
    }
}

/// Returns the fields that an object may have, if the schema allows no others.
pub(super) fn known_members(schema: &Value) -> Option<BTreeSet<String>> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_are_found_only_if_no_others_are_allowed() {
        let value = json!({"a": 1, "b": 2});
        for (schema, unknown) in [
            (
                json!({"properties": {"a": {}}, "additionalProperties": false}),
                Some("b"),
            ),
            (json!({"properties": {"a": {}}}), None),
            (
                json!({"patternProperties": {"^b$": {}}, "additionalProperties": false}),
                None,
            ),
        ] {
            let schema = ValueSchema::parse(&schema.to_string()).unwrap();
            assert_eq!(schema.unknown_member(&value), unknown);
        }
    }

    #[test]
    fn a_violation_never_repeats_the_value() {
        let schema = json!({"type": "object", "properties": {"key": {"const": "k"}}});
        let schema = ValueSchema::parse(&schema.to_string()).unwrap();
        let violation = schema.violation(&json!({"key": "hunter2"})).unwrap();
        assert_eq!(violation.to_string(), r#"key: must be "k""#);
        assert!(schema.is_kept_by(&json!({"key": "k"})));
    }
}
