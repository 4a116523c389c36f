//! Describes JSON Schemas in a few words.

use serde_json::Value;

/// Returns the parameters that callers can pass, each with a description, in the order of the schema.
pub(super) fn parameters(schema: &Value) -> Vec<(&str, String)> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|one| one == name));
    properties
        .iter()
        .filter(|(_, property)| !is_true(property, "readOnly"))
        .map(|(name, property)| {
            let mut text = described(property);
            if is_required(name) {
                text = format!("required, {text}");
            }
            (name.as_str(), text)
        })
        .collect()
}

/// Describes a schema by its kind, bounds, default and description.
pub(super) fn described(schema: &Value) -> String {
    let mut text = kind(schema);
    if let Some(bounds) = bounds(schema) {
        text = format!("{text}, {bounds}");
    }
    if let Some(default) = schema.get("default") {
        text = format!("{text}, default {}", plain(default));
    }
    match schema.get("description").and_then(Value::as_str) {
        Some(description) => format!("{text}. {description}"),
        None => text,
    }
}

fn kind(schema: &Value) -> String {
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array) {
        return allowed.iter().map(plain).collect::<Vec<_>>().join(" | ");
    }
    if let Some(constant) = schema.get("const") {
        return plain(constant);
    }
    let kinds = match schema.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            let kinds: Vec<_> = kinds.filter(|kind| *kind != "null").collect();
            kinds.join(" or ")
        }
        _ => "any".to_owned(),
    };
    match (kinds.as_str(), schema.get("items")) {
        ("array", Some(items)) => format!("array of {}", kind(items)),
        ("object", _) => match fields(schema) {
            Some(fields) => format!("object of {fields}"),
            None => kinds,
        },
        _ => kinds,
    }
}

fn fields(schema: &Value) -> Option<String> {
    let properties = schema.get("properties")?.as_object()?;
    let names: Vec<_> = properties.keys().map(String::as_str).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn bounds(schema: &Value) -> Option<String> {
    let range = |least: &str, most: &str, unit: &str| {
        let bound = |name| schema.get(name).filter(|bound| bound.is_number());
        match (bound(least), bound(most)) {
            (Some(least), Some(most)) => Some(format!("{least} to {most}{unit}")),
            (Some(least), None) => Some(format!("at least {least}{unit}")),
            (None, Some(most)) => Some(format!("at most {most}{unit}")),
            (None, None) => None,
        }
    };
    range("minimum", "maximum", "").or_else(|| range("minLength", "maxLength", " characters"))
}

fn is_true(schema: &Value, annotation: &str) -> bool {
    schema.get(annotation).and_then(Value::as_bool) == Some(true)
}

/// Returns a string as is, and anything else as JSON.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_are_described_by_kind_bounds_and_default() {
        for (schema, expected) in [
            (
                json!({"type": "boolean", "default": false}),
                "boolean, default false",
            ),
            (
                json!({"type": "integer", "minimum": 1, "maximum": 9, "default": 3, "description": "How many."}),
                "integer, 1 to 9, default 3. How many.",
            ),
            (
                json!({"type": ["string", "null"], "maxLength": 64}),
                "string, at most 64 characters",
            ),
            (
                json!({"type": "number", "minimum": 0}),
                "number, at least 0",
            ),
            (
                json!({"enum": ["rsa", "ed25519"], "default": "rsa"}),
                "rsa | ed25519, default rsa",
            ),
            (
                json!({"type": "integer", "enum": [2048, 3072]}),
                "2048 | 3072",
            ),
            (json!({"const": "x"}), "x"),
            (
                json!({"type": "array", "items": {"enum": ["a", "b"]}}),
                "array of a | b",
            ),
            (
                json!({"type": "object", "properties": {"a": {}, "b": {}}}),
                "object of a, b",
            ),
            (json!({"type": "object"}), "object"),
            (json!({}), "any"),
            (json!(true), "any"),
        ] {
            assert_eq!(described(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn read_only_parameters_are_omitted_and_required_ones_marked() {
        let schema = json!({
            "properties": {
                "z": {"type": "string"},
                "a": {"type": "boolean"},
                "kept": {"type": "object", "readOnly": true},
            },
            "required": ["a"],
        });
        let expected = [
            ("z", "string".to_owned()),
            ("a", "required, boolean".to_owned()),
        ];
        assert_eq!(parameters(&schema), expected);
        assert_eq!(parameters(&Value::Null), []);
    }
}
