//! The requests for comparing two releases of a generator: examples, test vectors, and the bounds of each parameter.

use std::iter;

use serde_json::{Map, Value};

use super::description_changes::InspectedGenerator;

/// The maximum number of requests.
const REQUESTS_MAX: usize = 64;
/// The maximum length of a string that is derived from a bound, in characters.
const STRING_CHARACTERS_MAX: usize = 1_024;

/// Returns requests without parameters, with each example of the schema, with the `given` parameters, and with the first
/// example and one parameter at one of its bounds. The generator may refuse some of them.
pub(super) fn requests<'g>(
    generator: &InspectedGenerator,
    given: impl Iterator<Item = &'g Map<String, Value>>,
) -> Vec<Map<String, Value>> {
    let schema = &generator.parameters_schema;
    let examples: Vec<_> = listed(schema, "examples")
        .filter_map(Value::as_object)
        .collect();
    let base = examples
        .first()
        .map_or_else(Map::new, |first| (*first).clone());
    let properties = schema.get("properties").and_then(Value::as_object);
    let at_bounds = properties
        .into_iter()
        .flatten()
        .filter(|(_, property)| property.get("readOnly") != Some(&Value::Bool(true)))
        .flat_map(|(name, property)| bounds(property).into_iter().map(move |value| (name, value)))
        .map(|(name, value)| {
            let mut request = base.clone();
            request.insert(name.clone(), value);
            request
        });
    let mut requests = Vec::new();
    for request in iter::once(Map::new())
        .chain(examples.iter().map(|example| (*example).clone()))
        .chain(given.cloned())
        .chain(at_bounds)
    {
        if requests.len() < REQUESTS_MAX && !requests.contains(&request) {
            requests.push(request);
        }
    }
    requests
}

/// Returns values that a schema names, or that are at its bounds. Some may violate other rules of the schema.
fn bounds(schema: &Value) -> Vec<Value> {
    let declares = |name: &str| {
        let declared = schema.get("type");
        declared.is_some_and(|declared| declared == name)
            || listed(schema, "type").any(|declared| declared == name)
    };
    let mut values = Vec::new();
    for keyword in ["const", "default", "minimum", "maximum"] {
        values.extend(schema.get(keyword).cloned());
    }
    for keyword in ["enum", "examples"] {
        values.extend(listed(schema, keyword).cloned());
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        values.extend(listed(schema, keyword).flat_map(bounds));
    }
    if declares("boolean") {
        values.extend([Value::Bool(false), Value::Bool(true)]);
    }
    if declares("string") {
        let lengths = ["minLength", "maxLength"]
            .into_iter()
            .filter_map(|keyword| usize::try_from(schema.get(keyword)?.as_u64()?).ok())
            .filter(|length| *length <= STRING_CHARACTERS_MAX);
        values.extend(lengths.chain([1]).map(|length| "a".repeat(length).into()));
    }
    if let Some(items) = schema.get("items") {
        values.extend(
            bounds(items)
                .into_iter()
                .map(|item| Value::from(vec![item])),
        );
    }
    values
}

fn listed<'s>(schema: &'s Value, keyword: &str) -> impl Iterator<Item = &'s Value> {
    let items = schema.get(keyword).and_then(Value::as_array);
    items.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn generator(parameters_schema: Value) -> InspectedGenerator {
        InspectedGenerator {
            credential_type: "token".to_owned(),
            plugin_version: "1".to_owned(),
            summary: String::new(),
            entropy_bits_min: None,
            issuer_parameter: Some("ca".to_owned()),
            input_parameters: Vec::new(),
            parameters_schema,
            value_schema: json!({}),
        }
    }

    #[test]
    fn each_parameter_is_requested_at_its_bounds() {
        for (schema, expected) in [
            (
                json!({"type": "integer", "minimum": 1, "maximum": 9}),
                json!([1, 9]),
            ),
            (
                json!({"enum": ["x", "y"], "default": "y"}),
                json!(["y", "x", "y"]),
            ),
            (json!({"type": ["boolean", "null"]}), json!([false, true])),
            (
                json!({"type": "string", "minLength": 3}),
                json!(["aaa", "a"]),
            ),
            (
                json!({"anyOf": [{"const": 1}, {"const": null}]}),
                json!([1, null]),
            ),
            (json!({"items": {"enum": ["x"]}}), json!([["x"]])),
            (
                json!({"type": "string", "maxLength": 1_000_000}),
                json!(["a"]),
            ),
            (json!({}), json!([])),
        ] {
            assert_eq!(json!(bounds(&schema)), expected, "{schema}");
        }
    }

    #[test]
    fn requests_are_examples_vectors_and_bounds_each_once() {
        let generator = generator(json!({
            "type": "object",
            "properties": {
                "ca": {"type": "string"},
                "kept": {"type": "boolean", "readOnly": true},
                "length": {"minimum": 1, "default": 2, "maximum": 2},
            },
            "examples": [{"name": "a"}, {"length": 2}],
        }));
        let given = [json!({"length": 7}), json!({})];
        let given = given.iter().filter_map(Value::as_object);
        let expected = json!([
            {}, {"name": "a"}, {"length": 2}, {"length": 7}, {"name": "a", "ca": "a"},
            {"name": "a", "length": 2}, {"name": "a", "length": 1},
        ]);
        assert_eq!(json!(requests(&generator, given)), expected);
    }

    #[test]
    fn the_number_of_requests_is_limited() {
        let names: Vec<_> = (0..REQUESTS_MAX * 2).collect();
        let schema = json!({"properties": {"number": {"enum": names}}});
        let requests = requests(&generator(schema), iter::empty());
        assert_eq!(requests.len(), REQUESTS_MAX);
    }
}
