//! Values of plugins, and their declared schema, which marks secret parts.

use std::collections::{BTreeMap, BTreeSet};

use keywright_core::{Secret, ports::Violation};
use keywright_json::JsonError;
use serde_json::Value;
use zeroize::Zeroize;

use super::{BrokenRule, Checker, SchemaError, compile, known_fields};

pub(crate) struct ValueSchema {
    checker: Checker,
    known_fields: Option<BTreeSet<String>>,
    pub(crate) secrecy: Secrecy,
    /// The first property that the schema annotates as a certificate chain.
    pub(crate) certificate_field: Option<String>,
}

impl ValueSchema {
    pub(crate) fn parse(text: &str) -> Result<Self, SchemaError> {
        let (schema, checker) = compile(text)?;
        let secrecy = Secrecy::of(&schema)?;
        Ok(Self {
            checker,
            known_fields: known_fields(&schema),
            secrecy,
            certificate_field: certificate_field(&schema),
        })
    }

    pub(crate) fn is_valid(&self, value: &Value) -> bool {
        self.checker.is_valid(value)
    }

    /// Returns the first violated rule, or `None` if the value is valid.
    pub(crate) fn broken_rule(&self, value: &Value) -> Option<BrokenRule> {
        let mut broken = self.checker.broken_rule(value)?;
        if broken.violation.rule == NOT_AN_OBJECT
            && let Some(known) = self.known_fields.as_ref().filter(|_| !value.is_object())
        {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let rule = format!("{NOT_AN_OBJECT} with the fields {}", known.join(", "));
            broken.violation = Violation::new(None, &rule);
        }
        Some(broken)
    }

    /// Returns a field that the schema does not list, if the schema allows only listed fields.
    pub(crate) fn unknown_field<'v>(&self, value: &'v Value) -> Option<&'v str> {
        let known = self.known_fields.as_ref()?;
        let mut names = value.as_object()?.keys();
        names
            .find(|name| !known.contains(name.as_str()))
            .map(String::as_str)
    }
}

fn certificate_field(schema: &Value) -> Option<String> {
    let mut properties = schema.get("properties")?.as_object()?.iter();
    properties
        .find(|(_, property)| {
            property.get("contentMediaType").and_then(Value::as_str) == Some(CERTIFICATE_CHAIN)
        })
        .map(|(name, _)| name.clone())
}

/// The media type of PEM certificates that begin with the end-entity certificate (RFC 8555, section 9.1).
const CERTIFICATE_CHAIN: &str = "application/pem-certificate-chain";

/// The violated rule of a value that is not an object.
const NOT_AN_OBJECT: &str = "must be an object";

/// The annotation of a secret part.
const WRITE_ONLY: &str = "writeOnly";

/// The parts of a value that its schema marks as secret.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Secrecy {
    /// No part.
    Open,
    /// These fields of an object, completely or in part.
    Fields(BTreeMap<String, Secrecy>),
    /// The whole value.
    Whole,
}

impl Secrecy {
    /// Reads the annotations of a schema.
    ///
    /// # Errors
    /// [`SchemaError::WriteOnlyMisplaced`] if the part of a value that an annotation refers to can't be determined.
    pub(crate) fn of(schema: &Value) -> Result<Self, SchemaError> {
        let Value::Object(keywords) = schema else {
            return Ok(Self::Open);
        };
        let mut secret_fields = BTreeMap::new();
        for (keyword, argument) in keywords {
            match (keyword.as_str(), argument) {
                (WRITE_ONLY, _) => {}
                ("properties", Value::Object(properties)) => {
                    for (name, property) in properties {
                        let secrecy = Self::of(property)?;
                        if secrecy != Self::Open {
                            secret_fields.insert(name.clone(), secrecy);
                        }
                    }
                }
                _ if mentions_write_only(argument) => {
                    return Err(SchemaError::WriteOnlyMisplaced);
                }
                _ => {}
            }
        }
        if keywords.get(WRITE_ONLY) == Some(&Value::Bool(true)) {
            return Ok(Self::Whole);
        }
        Ok(if secret_fields.is_empty() {
            Self::Open
        } else {
            Self::Fields(secret_fields)
        })
    }

    /// Returns whether a part that is secret according to an earlier schema is no longer secret.
    pub(crate) fn exposes(&self, earlier: &Self) -> bool {
        match (earlier, self) {
            (Self::Open, _) | (_, Self::Whole) => false,
            (Self::Fields(earlier), Self::Fields(fields)) => earlier
                .iter()
                .any(|(name, earlier)| fields.get(name).unwrap_or(&Self::Open).exposes(earlier)),
            _ => true,
        }
    }

    /// Removes the secret parts of a value: secret fields are removed, and a completely secret value becomes null.
    ///
    /// A value that should be an object with secret fields, but is not an object, also becomes null: it may have been stored
    /// under an earlier schema.
    pub(crate) fn withhold_from(&self, value: &mut Value) {
        match self {
            Self::Open => {}
            Self::Whole => remove(value),
            Self::Fields(secret_fields) => {
                let Value::Object(fields) = value else {
                    return remove(value);
                };
                for (name, secrecy) in secret_fields {
                    if *secrecy == Self::Whole {
                        if let Some(mut removed) = fields.shift_remove(name) {
                            zero(&mut removed);
                        }
                    } else if let Some(field) = fields.get_mut(name) {
                        secrecy.withhold_from(field);
                    }
                }
            }
        }
    }

    /// Returns the secret parts of a value with their paths, field names joined by dots. If the value is secret as a whole, or
    /// has no secret part, returns the whole value with the empty path.
    pub(crate) fn parts<'v>(&self, value: &'v Value) -> Vec<(String, &'v Value)> {
        let mut parts = Vec::new();
        match self {
            Self::Open | Self::Whole => parts.push((String::new(), value)),
            Self::Fields(secret_fields) => add_parts(secret_fields, "", value, &mut parts),
        }
        parts
    }

    /// Replaces each secret part with [`REDACTED`]. As in [`Self::withhold_from`], a value that is not an object is secret as a
    /// whole if fields of an object would be.
    pub(crate) fn redact(&self, value: &mut Value) {
        match (self, value) {
            (Self::Open, _) => {}
            (Self::Fields(secret_fields), Value::Object(fields)) => {
                for (name, secrecy) in secret_fields {
                    if let Some(field) = fields.get_mut(name) {
                        secrecy.redact(field);
                    }
                }
            }
            (Self::Fields(_) | Self::Whole, value) => {
                zero(value);
                *value = Value::String(REDACTED.to_owned());
            }
        }
    }
}

/// The replacement for secrets.
const REDACTED: &str = "[redacted]";

fn add_parts<'v>(
    secret_fields: &BTreeMap<String, Secrecy>,
    within: &str,
    value: &'v Value,
    parts: &mut Vec<(String, &'v Value)>,
) {
    for (name, secrecy) in secret_fields {
        let Some(field) = value.get(name) else {
            continue;
        };
        let path = format!("{within}{name}");
        match secrecy {
            Secrecy::Fields(inner) => add_parts(inner, &format!("{path}."), field, parts),
            Secrecy::Open | Secrecy::Whole => parts.push((path, field)),
        }
    }
}

fn remove(value: &mut Value) {
    zero(value);
    *value = Value::Null;
}

fn mentions_write_only(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .any(|(keyword, argument)| keyword == WRITE_ONLY || mentions_write_only(argument)),
        Value::Array(items) => items.iter().any(mentions_write_only),
        _ => false,
    }
}

/// A JSON value whose strings are zeroed on drop.
pub(crate) struct SensitiveJson(Value);

impl SensitiveJson {
    pub(crate) fn parse(text: &Secret) -> Result<Self, JsonError> {
        keywright_json::read(text.expose()).map(Self)
    }

    pub(crate) fn value(&self) -> &Value {
        &self.0
    }

    pub(crate) fn value_mut(&mut self) -> &mut Value {
        &mut self.0
    }
}

impl Drop for SensitiveJson {
    fn drop(&mut self) {
        zero(&mut self.0);
    }
}

/// Zeroes all strings in a JSON value.
fn zero(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(zero),
        Value::Object(fields) => fields.values_mut().for_each(zero),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn withheld(schema: &Value, mut value: Value) -> Value {
        Secrecy::of(schema).unwrap().withhold_from(&mut value);
        value
    }

    #[test]
    fn secret_fields_are_removed_at_any_depth() {
        let schema = json!({"properties": {
            "open": {"type": "string"},
            "secret": {"writeOnly": true},
            "peer": {"properties": {"key": {"writeOnly": true}, "name": {"writeOnly": false}}},
        }});
        let value = json!({"open": 1, "secret": 2, "peer": {"key": 3, "name": 4}});
        assert_eq!(
            withheld(&schema, value),
            json!({"open": 1, "peer": {"name": 4}})
        );
    }

    #[test]
    fn secret_parts_have_paths_and_can_be_redacted() {
        let schema = json!({"properties": {
            "open": {"type": "string"},
            "secret": {"writeOnly": true},
            "peer": {"properties": {"key": {"writeOnly": true}, "name": {}}},
        }});
        let secrecy = Secrecy::of(&schema).unwrap();
        let mut value = json!({"open": 1, "secret": {"a": 2}, "peer": {"key": 3, "name": 4}});
        let (key, secret) = (json!(3), json!({"a": 2}));
        let expected = [
            ("peer.key".to_owned(), &key),
            ("secret".to_owned(), &secret),
        ];
        assert_eq!(secrecy.parts(&value), expected);
        secrecy.redact(&mut value);
        let redacted = json!("[redacted]");
        assert_eq!(
            value,
            json!({"open": 1, "secret": redacted, "peer": {"key": redacted, "name": 4}})
        );
        let whole = Secrecy::of(&json!({"writeOnly": true})).unwrap();
        let value = json!("hunter2");
        assert_eq!(whole.parts(&value), [(String::new(), &value)]);
        for secrecy in [secrecy, whole] {
            let mut value = value.clone();
            secrecy.redact(&mut value);
            assert_eq!(value, redacted);
        }
    }

    #[test]
    fn a_completely_secret_value_becomes_null() {
        assert_eq!(
            withheld(&json!({"type": "string", "writeOnly": true}), json!("x")),
            json!(null)
        );
    }

    #[test]
    fn a_value_of_an_earlier_schema_is_withheld_completely() {
        let schema = json!({"properties": {"secret": {"writeOnly": true}}});
        assert_eq!(withheld(&schema, json!("hunter2")), json!(null));
    }

    #[test]
    fn annotations_that_the_host_could_miss_are_refused() {
        for schema in [
            json!({"$defs": {"key": {"writeOnly": true}}}),
            json!({"allOf": [{"properties": {"key": {"writeOnly": true}}}]}),
            json!({"items": {"writeOnly": true}}),
            json!({"properties": {"a": {"additionalProperties": {"writeOnly": true}}}}),
        ] {
            let refused = Secrecy::of(&schema);
            assert!(
                matches!(refused, Err(SchemaError::WriteOnlyMisplaced)),
                "{schema}"
            );
        }
    }

    #[test]
    fn the_first_property_annotated_as_a_certificate_chain_is_found() {
        let chain = json!({"contentMediaType": "application/pem-certificate-chain"});
        for (schema, field) in [
            (
                json!({"properties": {"a": {}, "c": chain, "b": chain}}),
                Some("c"),
            ),
            (
                json!({"properties": {"a": {"contentMediaType": "text/plain"}}}),
                None,
            ),
            (
                json!({"properties": {"a": {"properties": {"b": chain}}}}),
                None,
            ),
            (
                json!({"contentMediaType": "application/pem-certificate-chain"}),
                None,
            ),
            (json!(true), None),
        ] {
            let schema = ValueSchema::parse(&schema.to_string()).unwrap();
            assert_eq!(schema.certificate_field.as_deref(), field);
        }
    }

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
            assert_eq!(schema.unknown_field(&value), unknown);
        }
    }

    #[test]
    fn a_violation_never_repeats_the_value() {
        let schema = json!({"type": "object", "properties": {"key": {"const": "k"}}});
        let schema = ValueSchema::parse(&schema.to_string()).unwrap();
        let broken = schema.broken_rule(&json!({"key": "hunter2"})).unwrap();
        assert_eq!(broken.violation.to_string(), r#"key must be "k""#);
        assert!(schema.broken_rule(&json!({"key": "k"})).is_none());
    }

    #[test]
    fn a_broken_rule_omits_names_that_the_schema_does_not_declare() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a/b": {"items": {"$ref": "#/$defs/item"}},
                "none": false,
                "map": {"additionalProperties": {"type": "string"}},
            },
            "required": ["a/b"],
            "additionalProperties": false,
            "$defs": {"item": {"properties": {"key": {"pattern": "^k$", "type": "string"}}, "required": ["key"]}},
        });
        let schema = ValueSchema::parse(&schema.to_string()).unwrap();
        for (value, keyword, pointer) in [
            (json!("hunter2"), "type", ""),
            (json!({}), "required", "/a~1b"),
            (
                json!({"a/b": [{"key": "k"}, {"key": "hunter2"}]}),
                "pattern",
                "/a~1b/1/key",
            ),
            (json!({"a/b": [{"hunter2": 1}]}), "required", "/a~1b/0/key"),
            (json!({"a/b": [], "hunter2": 1}), "additionalProperties", ""),
            (json!({"a/b": [], "none": 1}), "false", "/none"),
            (json!({"a/b": [], "map": {"hunter2": 1}}), "type", "/map/*"),
        ] {
            let broken = schema.broken_rule(&value).unwrap().description;
            let expected =
                format!("violates {keyword:?} of its schema at the JSON Pointer {pointer:?}");
            assert_eq!(broken, expected, "{value}");
        }
    }

    #[test]
    fn a_violation_is_unchanged_if_the_plugin_returns_the_same_part() {
        let schema = json!({"properties": {"key": {"maxLength": 1}, "hash": {"type": "string"}}, "required": ["hash"]});
        let schema = ValueSchema::parse(&schema.to_string()).unwrap();
        let given = json!({"key": "kk"});
        for (returned, is_unchanged) in [
            (json!({"hash": "h", "key": "kk"}), true),
            (json!({"hash": "h", "key": "kkk"}), false),
            (json!({"hash": 1, "key": "k"}), false),
            (json!({"key": "k"}), false),
            (json!({"key": "kk"}), true),
        ] {
            let broken = schema.broken_rule(&returned).unwrap();
            assert_eq!(
                broken.is_unchanged(&given, &returned),
                is_unchanged,
                "{returned}"
            );
        }
    }
}
