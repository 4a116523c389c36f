//! The types that a schema declares for the parameters of requests.
//!
//! Callers write YAML in which `organization: 2024` is a number, and send booleans as `"True"` or 0. Scalars are therefore
//! converted to the type that the schema declares with `type`, below `properties` and `items`. References and combinations of
//! schemas are not followed.

use std::collections::{BTreeMap, BTreeSet};

use keywright_json::{Checked, JsonError};
use serde_json::Value;

/// The types that a schema declares for a value and its parts.
#[derive(Default)]
pub(super) struct Declared {
    types: BTreeSet<String>,
    properties: BTreeMap<String, Declared>,
    items: Option<Box<Declared>>,
}

impl Declared {
    /// Reads the types from a schema, whose depth must be bounded.
    pub(super) fn of(schema: &Value) -> Self {
        let types = match schema.get("type") {
            Some(Value::String(name)) => BTreeSet::from([name.clone()]),
            Some(Value::Array(names)) => names
                .iter()
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect(),
            _ => BTreeSet::new(),
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.into_iter().flatten();
        Self {
            types,
            properties: properties
                .map(|(name, property)| (name.clone(), Self::of(property)))
                .collect(),
            items: schema.get("items").map(|items| Box::new(Self::of(items))),
        }
    }

    /// Reads the value of a property.
    ///
    /// # Errors
    /// If its JSON can't be read.
    pub(super) fn read_property(&self, name: &str, json: Checked<'_>) -> Result<Value, JsonError> {
        match self.properties.get(name) {
            Some(property) => property.read(json),
            None => json.read(),
        }
    }

    fn read(&self, json: Checked<'_>) -> Result<Value, JsonError> {
        if let Some(items) = self.items.as_ref().filter(|_| json.is_array()) {
            return json
                .items()?
                .into_iter()
                .map(|item| items.read(item))
                .collect();
        }
        if json.is_object() {
            let fields = json.fields()?.into_iter();
            let read = fields.map(|(name, value)| {
                let value = self.read_property(&name, value)?;
                Ok((name, value))
            });
            return read.collect();
        }
        let value = json.read()?;
        Ok(self.converted(json, &value).unwrap_or(value))
    }

    /// Converts a scalar to a declared type; `None` if it already has one, or if every conversion would lose information.
    fn converted(&self, json: Checked<'_>, value: &Value) -> Option<Value> {
        let own = match value {
            Value::Bool(_) => BOOLEAN,
            Value::Number(_) => NUMBER,
            Value::String(_) => STRING,
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        if self.declares(own) {
            return None;
        }
        let integer = || self.declares(INTEGER).then(|| json.whole_number())?;
        let boolean = || self.declares(BOOLEAN).then(|| json.boolean())?;
        let text = || self.declares(STRING).then(|| json.text().trim().to_owned());
        integer()
            .map(Value::from)
            .or_else(|| text().map(Value::from))
            .or_else(|| boolean().map(Value::from))
    }

    fn declares(&self, name: &str) -> bool {
        self.types.contains(name)
    }
}

const BOOLEAN: &str = "boolean";
const INTEGER: &str = "integer";
const NUMBER: &str = "number";
const STRING: &str = "string";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Reads a value whose schema has these types.
    fn read(types: &Value, text: &str) -> Value {
        let declared = Declared::of(&json!({"type": types}));
        declared.read(keywright_json::check(text).unwrap()).unwrap()
    }

    #[test]
    fn numbers_and_booleans_become_their_literal_text() {
        for text in [
            "2024",
            "1.50",
            "1e3",
            "-0",
            "12345678901234567890123",
            "true",
            "false",
        ] {
            for types in [json!("string"), json!(["string", "null"])] {
                assert_eq!(read(&types, text), json!(text), "{types}");
            }
        }
        assert_eq!(read(&json!("string"), " 1.50 "), json!("1.50"));
    }

    #[test]
    fn booleans_and_integers_are_read_from_other_forms() {
        for (types, text, expected) in [
            (json!("boolean"), r#""True""#, json!(true)),
            (json!("boolean"), "0", json!(false)),
            (json!(["null", "boolean"]), "1", json!(true)),
            (json!("integer"), "20.0", json!(20)),
            (json!("integer"), r#""20""#, json!(20)),
        ] {
            assert_eq!(read(&types, text), expected, "{types} {text}");
        }
    }

    #[test]
    fn values_of_declared_or_incompatible_types_are_unchanged() {
        for (types, text) in [
            (json!(["string", "number"]), "1.50"),
            (json!(["string", "boolean"]), "true"),
            (json!(["string", "integer"]), r#""20""#),
            (json!(["string", "boolean"]), r#""true""#),
            (json!("number"), r#""1.5""#),
            (json!("integer"), "20.5"),
            (json!("integer"), "true"),
            (json!("boolean"), "2"),
            (json!("string"), "null"),
            (json!("string"), "[1]"),
            (json!("object"), "1"),
            (json!(null), "1"),
        ] {
            let unchanged: Value = serde_json::from_str(text).unwrap();
            assert_eq!(read(&types, text), unchanged, "{types} {text}");
        }
    }

    #[test]
    fn among_several_types_the_most_faithful_is_chosen() {
        assert_eq!(read(&json!(["integer", "string"]), "20.0"), json!(20));
        assert_eq!(read(&json!(["integer", "string"]), "20.5"), json!("20.5"));
        assert_eq!(read(&json!(["boolean", "string"]), "1"), json!("1"));
    }

    #[test]
    fn items_and_nested_properties_are_converted_too() {
        let schema = json!({"properties": {
            "names": {"type": "array", "items": {"type": "string"}},
            "inner": {"type": "object", "properties": {"flag": {"type": "boolean"}}},
            "any": {"anyOf": [{"type": "string"}]},
        }});
        let text = r#"{"names": [5, "a", null], "inner": {"flag": "TRUE", "more": 1}, "any": 5, "unknown": 5}"#;
        let checked = keywright_json::check(text).unwrap();
        assert_eq!(
            Declared::of(&schema).read(checked).unwrap(),
            json!({"names": ["5", "a", null], "inner": {"flag": true, "more": 1}, "any": 5, "unknown": 5})
        );
    }
}
