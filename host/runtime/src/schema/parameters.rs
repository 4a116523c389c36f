//! Reads the parameters of plugins in the types that the schema declares. For plugins without a normalizer, fills in defaults
//! and validates.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use keywright_core::{
    credential::{Parameters, RequestedParameters},
    ports::Violation,
};
use keywright_json::{Checked, JsonError};
use serde_json::{Map, Value};

use super::{Checker, SchemaError, compile, is_of_objects, known_fields};

/// The annotation of a parameter that callers can't send: the plugin sets it when it recovers parameters.
const READ_ONLY: &str = "readOnly";

pub(crate) struct ParametersSchema {
    checker: Checker,
    declared: Declared,
    /// The names of its properties, if it allows no others.
    known: Option<BTreeSet<String>>,
    /// The names of its properties, if it lists any.
    properties: Option<HashSet<String>>,
    defaults: Map<String, Value>,
    /// The names of the parameters that the plugin sets itself.
    pub(crate) read_only: Vec<String>,
    example: Map<String, Value>,
}

impl ParametersSchema {
    /// Compiles a schema of JSON objects.
    pub(crate) fn parse(text: &str) -> Result<Self, SchemaError> {
        let (schema, checker) = compile(text)?;
        if !is_of_objects(&schema) {
            return Err(SchemaError::NotOfObjects);
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let is_read_only = |property: &Value| property.get(READ_ONLY) == Some(&Value::Bool(true));
        let defaults = properties
            .into_iter()
            .flatten()
            .filter(|(_, property)| !is_read_only(property))
            .filter_map(|(name, property)| Some((name.clone(), property.get("default")?.clone())))
            .collect();
        let read_only = properties
            .into_iter()
            .flatten()
            .filter(|(_, property)| is_read_only(property))
            .map(|(name, _)| name.clone())
            .collect();
        let examples = schema.get("examples").and_then(Value::as_array);
        let example = examples.and_then(|examples| examples.first()?.as_object());
        let names = properties.map(|properties| properties.keys().cloned().collect());
        Ok(Self {
            checker,
            declared: Declared::of(&schema),
            known: known_fields(&schema),
            properties: names,
            defaults,
            read_only,
            example: example.cloned().unwrap_or_default(),
        })
    }

    /// Reads the parameters of a request, with scalars in the types that the schema declares, except in the parameters named by
    /// `unconverted`.
    ///
    /// # Errors
    /// If a parameter is unknown and the schema allows no additional parameters, or if a parameter is not JSON.
    pub(crate) fn requested(
        &self,
        parameters: &RequestedParameters,
        unconverted: &[String],
    ) -> Result<Parameters, Violation> {
        let read = parameters.iter().map(|(name, json)| {
            if let Some(known) = self.known.as_ref().filter(|known| !known.contains(name)) {
                return Err(Violation::new(Some(name), &self.unknown_rule(known)));
            }
            let value = keywright_json::check(json)
                .and_then(|json| {
                    if unconverted.iter().any(|other| other == name) {
                        json.read()
                    } else {
                        self.declared.read_property(name, json)
                    }
                })
                .map_err(|_| Violation::new(Some(name), "must be JSON"))?;
            Ok((name.to_owned(), value))
        });
        read.collect::<Result<_, _>>().map(Parameters::new)
    }

    /// Returns the rule that an unknown parameter breaks. Lists the parameters that callers can send.
    fn unknown_rule(&self, known: &BTreeSet<String>) -> String {
        let read_only: HashSet<&String> = self.read_only.iter().collect();
        let allowed: Vec<&str> = known
            .iter()
            .filter(|name| !read_only.contains(name))
            .map(String::as_str)
            .collect();
        if allowed.is_empty() {
            "is unknown; this type has no parameters".to_owned()
        } else {
            format!("is unknown; the parameters are {}", allowed.join(", "))
        }
    }

    /// Returns example parameters: the first of the schema's `examples`, or no parameters.
    pub(crate) fn example(&self) -> Parameters {
        Parameters::new(self.example.clone())
    }

    /// Returns the parameters that the schema's `properties` contain, or all parameters if the schema has no `properties`.
    pub(crate) fn known(&self, parameters: Parameters) -> Parameters {
        match &self.properties {
            Some(properties) => parameters.retain(|name| properties.contains(name)),
            None => parameters,
        }
    }

    /// Returns whether `after` has no read-only parameter that `before` lacks.
    pub(crate) fn adds_no_read_only(&self, before: &Parameters, after: &Parameters) -> bool {
        self.read_only
            .iter()
            .all(|name| after.field(name).is_none() || before.field(name).is_some())
    }

    /// Fills in defaults, except for read-only parameters, and validates the result against the schema.
    pub(crate) fn complete(&self, mut fields: Map<String, Value>) -> Result<Parameters, Violation> {
        for (name, default) in &self.defaults {
            if !fields.contains_key(name) {
                fields.insert(name.clone(), default.clone());
            }
        }
        let mut parameters = Value::Object(fields);
        if let Some(violation) = self
            .checker
            .broken_rule(&parameters)
            .map(|broken| broken.violation)
        {
            return Err(violation);
        }
        Ok(Parameters::new(
            parameters
                .as_object_mut()
                .map(std::mem::take)
                .unwrap_or_default(),
        ))
    }
}

/// The types that a schema declares for a value and its parts.
#[derive(Default)]
struct Declared {
    types: BTreeSet<String>,
    properties: BTreeMap<String, Declared>,
    items: Option<Box<Declared>>,
}

impl Declared {
    /// Reads the types from a schema, whose depth must be bounded.
    fn of(schema: &Value) -> Self {
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

    fn read_property(&self, name: &str, json: Checked<'_>) -> Result<Value, JsonError> {
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

    fn schema() -> ParametersSchema {
        let schema = json!({
            "type": "object",
            "properties": {
                "length": {"type": "integer", "minimum": 4, "maximum": 200, "default": 30},
                "seed": {"type": "string", "pattern": "^[a-z]+$"},
                "case": {"enum": ["upper", "lower"]},
                "labels": {"type": "array", "items": {"type": "string", "maxLength": 3}},
                "kept": {"type": "string", "readOnly": true, "default": "x"},
            },
            "additionalProperties": false,
        });
        ParametersSchema::parse(&schema.to_string()).unwrap()
    }

    fn complete(fields: Value) -> Result<String, Violation> {
        let Value::Object(fields) = fields else {
            panic!("not an object")
        };
        schema()
            .complete(fields)
            .map(|parameters| parameters.to_json())
    }

    #[test]
    fn read_only_parameters_are_kept_and_get_no_default() {
        assert_eq!(
            complete(json!({"kept": "y", "length": 8})).unwrap(),
            r#"{"kept":"y","length":8}"#
        );
    }

    #[test]
    fn read_only_parameters_come_only_from_earlier_parameters() {
        let with = |kept: Value| {
            let Value::Object(fields) = kept else {
                panic!("not an object")
            };
            Parameters::new(fields)
        };
        let (none, kept) = (with(json!({})), with(json!({"kept": "x"})));
        for (before, after, expected) in [
            (&none, &none, true),
            (&kept, &kept, true),
            (&kept, &none, true),
            (&none, &kept, false),
        ] {
            assert_eq!(schema().adds_no_read_only(before, after), expected);
        }
    }

    #[test]
    fn violations_name_the_field_and_the_rule_and_never_the_value() {
        for (fields, field, rule) in [
            (json!({"lenght": 8}), Some("lenght"), "is unknown"),
            (json!({"length": 3}), Some("length"), "must be at least 4"),
            (
                json!({"length": 201}),
                Some("length"),
                "must be at most 200",
            ),
            (
                json!({"length": "hunter2"}),
                Some("length"),
                "must be a whole number",
            ),
            (
                json!({"seed": "hunter2"}),
                Some("seed"),
                "must match the pattern ^[a-z]+$",
            ),
            (
                json!({"case": "hunter2"}),
                Some("case"),
                r#"must be one of "upper", "lower""#,
            ),
            (
                json!({"labels": ["hunter2"]}),
                Some("labels.0"),
                "must have at most 3 characters",
            ),
        ] {
            let violation = complete(fields).unwrap_err();
            assert_eq!(
                (violation.field.as_deref(), violation.rule.as_str()),
                (field, rule)
            );
        }
    }

    #[test]
    fn unknown_fields_are_named_even_if_a_schema_has_no_properties() {
        let nothing = json!({"type": "object", "additionalProperties": false});
        let within = json!({"type": "object", "properties": {"a/b": nothing}});
        for (schema, fields, field) in [
            (&nothing, json!({"length": 8}), "length"),
            (&within, json!({"a/b": {"length": 8}}), "a/b.length"),
        ] {
            let schema = ParametersSchema::parse(&schema.to_string()).unwrap();
            let Value::Object(fields) = fields else {
                panic!("not an object")
            };
            let violation = schema.complete(fields).unwrap_err();
            assert_eq!(violation.field.as_deref(), Some(field));
            assert_eq!(violation.rule, "is unknown");
        }
    }

    #[test]
    fn the_error_for_an_unknown_parameter_lists_the_parameters() {
        let nothing = json!({"type": "object", "additionalProperties": false});
        let nothing = ParametersSchema::parse(&nothing.to_string()).unwrap();
        for (schema, refused) in [
            (
                schema(),
                "lenght is unknown; the parameters are case, labels, length, seed",
            ),
            (nothing, "lenght is unknown; this type has no parameters"),
        ] {
            let requested = RequestedParameters::from_iter([("lenght".to_owned(), "8".to_owned())]);
            let violation = schema.requested(&requested, &[]).unwrap_err();
            assert_eq!(violation.to_string(), refused);
        }
    }

    #[test]
    fn scalars_are_not_converted_where_they_name_inputs() {
        let requested = RequestedParameters::from_iter([("seed".to_owned(), "5".to_owned())]);
        for (inputs, expected) in [(vec![], json!("5")), (vec!["seed".to_owned()], json!(5))] {
            let read = schema().requested(&requested, &inputs).unwrap();
            assert_eq!(read.field("seed"), Some(&expected));
        }
    }

    #[test]
    fn the_example_is_the_first_of_examples_or_empty() {
        let schema = json!({"type": "object", "examples": [{"a": 1}, {"a": 2}]});
        let example = |schema: Value| {
            let schema = ParametersSchema::parse(&schema.to_string()).unwrap();
            schema.example().to_json()
        };
        assert_eq!(example(schema), r#"{"a":1}"#);
        assert_eq!(example(json!({"type": "object"})), "{}");
    }

    #[test]
    fn properties_marked_read_only_are_listed() {
        assert_eq!(schema().read_only, ["kept"]);
    }

    #[test]
    fn unusable_schemas_of_parameters_are_refused() {
        for (text, expected) in [
            (r#"{"type":"string"}"#, "is not of type object"),
            ("{", "is not JSON"),
            (
                r#"{"type":"object","properties":{"a":{"type":7}}}"#,
                "is not a JSON Schema",
            ),
            (
                r#"{"type":"object","$ref":"https://example.org/s.json"}"#,
                "has an unsupported reference",
            ),
            (
                r#"{"type":"object","properties":{"a":{"pattern":"(?=a)"}}}"#,
                "is not a JSON Schema",
            ),
        ] {
            let Err(malformed) = ParametersSchema::parse(text) else {
                panic!("{text} was accepted")
            };
            assert!(
                malformed.to_string().starts_with(expected),
                "{text}: {malformed}"
            );
        }
    }

    /// Reads a value whose schema has these types.
    fn read(types: &Value, text: &str) -> Value {
        let declared = Declared::of(&json!({"type": types}));
        declared.read(keywright_json::check(text).unwrap()).unwrap()
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
    fn among_several_types_the_most_exact_conversion_is_chosen() {
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
