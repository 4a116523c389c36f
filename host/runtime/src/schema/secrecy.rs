//! The secret parts of values.

use std::collections::BTreeMap;

use serde_json::Value;

use super::SchemaMalformed;
use crate::json::zero;

/// The annotation of a secret part.
const WRITE_ONLY: &str = "writeOnly";

/// The parts of a value that its schema marks as secret.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Secrecy {
    /// None.
    Open,
    /// These fields of an object, completely or in part.
    Members(BTreeMap<String, Secrecy>),
    /// The whole value.
    Whole,
}

impl Secrecy {
    /// Reads the annotations of a schema.
    ///
    /// # Errors
    /// [`SchemaMalformed::WriteOnlyMisplaced`] if the part of a value that an annotation refers to can't be determined.
    pub(super) fn of(schema: &Value) -> Result<Self, SchemaMalformed> {
        let Value::Object(keywords) = schema else {
            return Ok(Self::Open);
        };
        let mut secret_members = BTreeMap::new();
        for (keyword, argument) in keywords {
            match (keyword.as_str(), argument) {
                (WRITE_ONLY, _) => {}
                ("properties", Value::Object(properties)) => {
                    for (name, property) in properties {
                        let secrecy = Self::of(property)?;
                        if secrecy != Self::Open {
                            secret_members.insert(name.clone(), secrecy);
                        }
                    }
                }
                _ if mentions_write_only(argument) => {
                    return Err(SchemaMalformed::WriteOnlyMisplaced);
                }
                _ => {}
            }
        }
        if keywords.get(WRITE_ONLY) == Some(&Value::Bool(true)) {
            return Ok(Self::Whole);
        }
        Ok(if secret_members.is_empty() {
            Self::Open
        } else {
            Self::Members(secret_members)
        })
    }

    /// Removes the secret parts of a value: secret fields are removed, and a completely secret value becomes null.
    ///
    /// A value that should be an object with secret fields, but is not an object, also becomes null: it may have been stored
    /// under an earlier schema.
    pub(super) fn withhold_from(&self, value: &mut Value) {
        match self {
            Self::Open => {}
            Self::Whole => remove(value),
            Self::Members(secret_members) => {
                let Value::Object(members) = value else {
                    return remove(value);
                };
                for (name, secrecy) in secret_members {
                    if *secrecy == Self::Whole {
                        if let Some(mut removed) = members.shift_remove(name) {
                            zero(&mut removed);
                        }
                    } else if let Some(member) = members.get_mut(name) {
                        secrecy.withhold_from(member);
                    }
                }
            }
        }
    }

    /// Returns the secret parts of a value with their paths, field names joined by dots. For a completely secret value or
    /// not secret at all, returns the value with the empty path.
    pub(super) fn parts<'v>(&self, value: &'v Value) -> Vec<(String, &'v Value)> {
        let mut parts = Vec::new();
        match self {
            Self::Open | Self::Whole => parts.push((String::new(), value)),
            Self::Members(secret_members) => add_parts(secret_members, "", value, &mut parts),
        }
        parts
    }

    /// Replaces each secret part with [`REDACTED`].
    pub(super) fn redact(&self, value: &mut Value) {
        match self {
            Self::Open => {}
            Self::Whole => {
                zero(value);
                *value = Value::String(REDACTED.to_owned());
            }
            Self::Members(secret_members) => {
                for (name, secrecy) in secret_members {
                    if let Some(member) = value.get_mut(name) {
                        secrecy.redact(member);
                    }
                }
            }
        }
    }
}

/// The replacement for secrets.
const REDACTED: &str = "[redacted]";

fn add_parts<'v>(
    secret_members: &BTreeMap<String, Secrecy>,
    within: &str,
    value: &'v Value,
    parts: &mut Vec<(String, &'v Value)>,
) {
    for (name, secrecy) in secret_members {
        let Some(member) = value.get(name) else {
            continue;
        };
        let place = format!("{within}{name}");
        match secrecy {
            Secrecy::Members(inner) => add_parts(inner, &format!("{place}."), member, parts),
            Secrecy::Open | Secrecy::Whole => parts.push((place, member)),
        }
    }
}

fn remove(value: &mut Value) {
    zero(value);
    *value = Value::Null;
}

fn mentions_write_only(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members
            .iter()
            .any(|(keyword, argument)| keyword == WRITE_ONLY || mentions_write_only(argument)),
        Value::Array(items) => items.iter().any(mentions_write_only),
        _ => false,
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
        let mut value = json!("hunter2");
        assert_eq!(whole.parts(&value), [(String::new(), &json!("hunter2"))]);
        whole.redact(&mut value);
        assert_eq!(value, redacted);
    }

    #[test]
    fn a_wholly_secret_value_becomes_null() {
        assert_eq!(
            withheld(&json!({"type": "string", "writeOnly": true}), json!("x")),
            json!(null)
        );
    }

    #[test]
    fn a_value_of_an_earlier_schema_is_wholly_withheld() {
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
                matches!(refused, Err(SchemaMalformed::WriteOnlyMisplaced)),
                "{schema}"
            );
        }
    }
}
