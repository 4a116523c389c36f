use std::time::Instant;

use serde_json::{Map, json};

use super::{super::compile, *};

/// Returns a schema of `length` definitions, each with two references to the previous one.
fn doubling(length: usize) -> Value {
    let mut definitions = Map::new();
    definitions.insert("d0".to_owned(), json!({"type": "object"}));
    for number in 1..length {
        let before = json!({"$ref": format!("#/$defs/d{}", number - 1)});
        definitions.insert(format!("d{number}"), json!({"allOf": [before, before]}));
    }
    let last = format!("#/$defs/d{}", length - 1);
    json!({"type": "object", "$defs": definitions, "allOf": [{"$ref": last}]})
}

/// Returns a schema nested to this depth with `not`.
fn nested(levels: usize) -> Value {
    (1..levels).fold(json!({}), |inner, _| json!({"not": inner}))
}

fn refused(schema: &Value) -> String {
    match compile(&schema.to_string()) {
        Ok(_) => String::new(),
        Err(malformed) => malformed.to_string(),
    }
}

#[test]
fn each_limit_is_allowed_and_one_past_it_is_refused() {
    let letters = |length: usize| json!({"title": "a".repeat(length)});
    let title_bytes = SCHEMA_BYTES_MAX - letters(0).to_string().len();
    // The schema, its keyword, and each option.
    let options = |count: u64| json!({"enum": (2..count).collect::<Vec<_>>()});
    let patterns = |count: u64| {
        let named = (0..count).map(|number| (number.to_string(), json!({"pattern": "a"})));
        json!({"properties": named.collect::<Map<_, _>>()})
    };
    for (schema, expected) in [
        (letters(title_bytes), ""),
        (letters(title_bytes + 1), "is longer than 65536 bytes"),
        (nested(SCHEMA_DEPTH_MAX), ""),
        (nested(SCHEMA_DEPTH_MAX + 1), "is nested more than 64"),
        (options(SCHEMA_PARTS_MAX), ""),
        (options(SCHEMA_PARTS_MAX + 1), "has more than 8192 parts"),
        (patterns(SCHEMA_PATTERNS_MAX), ""),
        (
            patterns(SCHEMA_PATTERNS_MAX + 1),
            "has more than 128 patterns",
        ),
        (json!({"pattern": "[a-z]{1,200}"}), ""),
        (
            json!({"pattern": "(\\w{100}){100}"}),
            "is not a JSON Schema",
        ),
    ] {
        let refused = refused(&schema);
        assert!(refused.starts_with(expected), "{expected}: {refused}");
        assert_eq!(refused.is_empty(), expected.is_empty(), "{refused}");
    }
}

#[test]
fn references_count_as_their_targets() {
    assert_eq!(refused(&doubling(8)), "");
    for (length, expected) in [
        (14, "has more than 8192 parts"),
        (60, "is nested more than 64"),
    ] {
        let refused = refused(&doubling(length));
        assert!(refused.starts_with(expected), "{refused}");
    }
    // Chained references have the same maximum depth as nested schemas.
    let chain = |length: usize| {
        let named = (1..length).map(|number| {
            let next = format!("#/$defs/{}", number + 1);
            (number.to_string(), json!({"$ref": next}))
        });
        let mut definitions: Map<_, _> = named.collect();
        definitions.insert(length.to_string(), json!({}));
        json!({"$defs": definitions})
    };
    assert_eq!(refused(&chain(20)), "");
    assert!(refused(&chain(200)).starts_with("is nested more than 64"));
}

#[test]
fn recursion_and_other_references_are_refused() {
    let by_id = json!({"$defs": {"a": {"$id": "https://a/b", "not": {"$ref": "#/not"}}}});
    for (schema, expected) in [
        (
            json!({"properties": {"child": {"$ref": "#"}}}),
            "is recursive",
        ),
        (json!({"$ref": "#"}), "is recursive"),
        (
            json!({"$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"items": {"$ref": "#/$defs/a"}}}}),
            "is recursive",
        ),
        (by_id, "has an unsupported reference"),
        (
            json!({"$ref": "#/%24defs/a", "$defs": {"a": {}}}),
            "has an unsupported reference",
        ),
        (
            json!({"$ref": "#a", "$defs": {"a": {"$anchor": "a"}}}),
            "has an unsupported reference",
        ),
        (json!({"$dynamicRef": "#a"}), "has an unsupported reference"),
        (
            json!({"$ref": "https://example.org/s.json"}),
            "has an unsupported reference",
        ),
        (
            json!({"$ref": "#/$defs/none"}),
            "has an unsupported reference",
        ),
        (
            json!({"$id": "https://a/b", "properties": {"$ref": {"type": "string"}}}),
            "",
        ),
        (
            json!({"default": {"$ref": "data"}, "enum": [{"$ref": "#"}]}),
            "",
        ),
    ] {
        let refused = refused(&schema);
        assert!(refused.starts_with(expected), "{schema}: {refused}");
        assert_eq!(refused.is_empty(), expected.is_empty(), "{refused}");
    }
}

#[test]
fn unevaluated_keywords_count_adjacent_schemas_again() {
    let closed = |levels: usize| {
        (0..levels).fold(
            json!({"properties": {"a": {}}}),
            |inner, _| json!({"allOf": [inner], "unevaluatedProperties": false}),
        )
    };
    assert_eq!(refused(&closed(3)), "");
    assert!(refused(&closed(15)).starts_with("has more than 8192 parts"));
}

/// The largest schemas of several kinds, each with its most expensive value within the default limit of 128 KiB.
#[test]
fn the_limits_bound_the_time_of_a_check() {
    let value_bytes = 128 * 1_024;
    let ones = Value::Array(vec![json!(1); value_bytes / 2]);
    let numbers = Value::Array((0..value_bytes / 7).map(Value::from).collect());
    let letters = json!("a".repeat(value_bytes));
    let types = vec![json!({"type": "number"}); 2_500];
    let pattern = json!({"pattern": "(a?){60}b"});
    for (name, schema, value) in [
        ("items", json!({"items": {"allOf": types}}), &ones),
        (
            "enum",
            json!({"items": {"enum": (2..8_000).collect::<Vec<_>>()}}),
            &ones,
        ),
        (
            "unique",
            json!({"uniqueItems": true, "allOf": vec![json!({"uniqueItems": true}); 500]}),
            &numbers,
        ),
        ("doubling", doubling(9), &ones),
        ("patterns", json!({"anyOf": vec![pattern; 100]}), &letters),
    ] {
        let begun = Instant::now();
        let (_, checker) = compile(&schema.to_string()).unwrap();
        let compiled = begun.elapsed();
        let begun = Instant::now();
        let violation = checker.violation(value);
        println!(
            "{name}: compiled in {compiled:?}, checked in {:?}",
            begun.elapsed()
        );
        let seconds = begun.elapsed().as_secs();
        assert!(seconds < 120, "{name} took {seconds} s: {violation:?}");
    }
}
