//! Invariants of the description.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use keywright_core::{
    credential::{CredentialName, CredentialType},
    permission::PermissionPath,
};
use serde_json::{Map, Value, json};

use super::*;
use crate::{Access, routes};

fn operations(document: &Value) -> BTreeMap<(String, String), Value> {
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, operations): (&String, &Value)| {
        let operations = operations.as_object().unwrap().clone();
        let path = path.clone();
        operations
            .into_iter()
            .map(move |(method, operation)| ((path.clone(), method), operation))
    };
    paths.iter().flat_map(of_path).collect()
}

fn below(value: &Value) -> Vec<&Value> {
    let within: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        _ => Box::new(std::iter::empty()),
    };
    std::iter::once(value)
        .chain(within.flat_map(below))
        .collect()
}

/// Resolves a reference, or returns the value itself.
fn referred_to<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let reference = value.get("$ref").and_then(Value::as_str);
    let pointer = reference.and_then(|reference| reference.strip_prefix('#'));
    pointer.map_or(value, |pointer| document.pointer(pointer).unwrap())
}

fn validator(document: &Value, schema: &Value) -> jsonschema::Validator {
    let mut whole = json!({"components": document["components"], "allOf": [schema]});
    whole["$schema"] = document["jsonSchemaDialect"].clone();
    jsonschema::options()
        .should_validate_formats(true)
        .build(&whole)
        .unwrap()
}

#[test]
fn the_golden_file_matches_the_code() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    if std::env::var_os("KEYWRIGHT_REFRESH_GOLDEN_FILES").is_some() {
        fs::write(&golden, format!("{:#}\n", document::document())).unwrap();
    }
    let stored = fs::read_to_string(&golden).unwrap();
    assert!(
        stored == format!("{:#}\n", document::document()),
        "host/api/openapi.json does not match the code; run `cargo xtask golden` and review the difference"
    );
}

#[test]
fn the_schemas_of_names_and_paths_match_the_parsers() {
    let document = document::document();
    let schema = |name: &str| {
        let reference = json!({"$ref": format!("#/components/schemas/{name}")});
        validator(&document, &reference)
    };
    let (name, path) = (schema("CredentialName"), schema("PermissionPath"));
    let mut accepted = 0;
    for text in strings_like_paths() {
        let as_name = CredentialName::parse(&text).is_ok();
        let as_path = PermissionPath::parse(&text).is_ok();
        assert_eq!(name.is_valid(&json!(text)), as_name, "{text}");
        assert_eq!(path.is_valid(&json!(text)), as_path, "{text}");
        accepted += u32::from(as_path && !as_name);
    }
    assert!(accepted > 0);
}

/// Returns all strings of up to five of these parts, and strings around the maximum length.
fn strings_like_paths() -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut longest = texts.clone();
    for _ in 0..5 {
        longest = longest
            .iter()
            .flat_map(|text| ["/", "*", "a", "[", " "].map(|part| format!("{text}{part}")))
            .collect();
        texts.extend(longest.iter().cloned());
    }
    for characters in 250..=256 {
        for (start, end) in [("", ""), ("/", ""), ("", "/*"), ("/", "/*")] {
            texts.push(format!("{start}{}{end}", "a".repeat(characters)));
        }
    }
    texts
}

#[test]
fn the_description_contains_exactly_the_routes() {
    let document = document::document();
    let described: BTreeSet<_> = operations(&document).into_keys().collect();
    let mounted: BTreeSet<_> = routes()
        .iter()
        .map(|route| {
            let method = route.method().as_str().to_ascii_lowercase();
            (route.path().to_owned(), method)
        })
        .collect();
    assert_eq!(described, mounted);
    let ids: BTreeSet<_> = operations(&document)
        .into_values()
        .map(|operation| operation["operationId"].to_string())
        .collect();
    assert_eq!(ids.len(), mounted.len());
}

#[test]
fn only_open_operations_need_no_authentication() {
    let document = document::document();
    let operations = operations(&document);
    for route in routes() {
        let method = route.method().as_str().to_ascii_lowercase();
        let operation = &operations[&(route.path().to_owned(), method)];
        let is_open = route.access() == Access::Open;
        assert_eq!(operation.get("security") == Some(&json!([])), is_open);
        assert_eq!(operation["responses"].get("401").is_none(), is_open);
    }
}

#[test]
fn every_response_has_a_body_and_a_request_id() {
    let document = document::document();
    for ((path, method), operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let name = format!("{method} {path}: {status}");
            let response = referred_to(&document, response);
            assert!(
                !response["description"].as_str().unwrap().is_empty(),
                "{name}"
            );
            let headers = response["headers"].as_object().unwrap();
            assert!(headers.contains_key("X-Request-Id"), "{name}");
            let is_empty = response.get("content").is_none();
            assert!(
                !is_empty || ["201", "204"].contains(&status.as_str()),
                "{name}"
            );
        }
    }
}

#[test]
fn every_reference_resolves_and_every_schema_is_used() {
    let document = document::document();
    let references = below(&document)
        .into_iter()
        .filter_map(|value| value.get("$ref")?.as_str());
    let references: BTreeSet<_> = references.collect();
    for reference in &references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    for name in document["components"]["schemas"]
        .as_object()
        .unwrap()
        .keys()
    {
        let reference = format!("#/components/schemas/{name}");
        assert!(references.contains(reference.as_str()), "{name}");
        // schemars appends a number if two types have the same name.
        assert!(
            !name.ends_with(|last: char| last.is_ascii_digit()),
            "{name}"
        );
    }
}

#[test]
fn every_body_has_an_example_that_matches_its_schema() {
    let document = document::document();
    let mut count = 0;
    for media in below(&document) {
        let (Some(schema), Some(examples)) = (media.get("schema"), media.get("examples")) else {
            continue;
        };
        let validator = validator(&document, schema);
        for (name, example) in examples.as_object().unwrap() {
            let errors: Vec<_> = validator.iter_errors(&example["value"]).collect();
            assert!(errors.is_empty(), "{name}: {errors:?}");
            count += 1;
        }
    }
    assert!(count > 50, "{count}");
    for ((path, method), operation) in operations(&document) {
        let responses = operation["responses"].as_object().unwrap();
        let responses = responses
            .iter()
            .map(|(status, response)| (&**status, response));
        for (which, body) in responses.chain([("request", &operation["requestBody"])]) {
            let Some(media) = referred_to(&document, body)["content"].get("application/json")
            else {
                continue;
            };
            let is_the_description = path == "/openapi.json" && which == "200";
            assert!(
                is_the_description || media.get("examples").is_some(),
                "{method} {path}: {which}"
            );
        }
    }
}

#[test]
fn unknown_fields_and_wrong_types_violate_the_schemas() {
    let document = document::document();
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let set = validator(&document, &reference("SetRequest"));
    let version = validator(&document, &reference("CredentialVersion"));
    let good = json!({"name": "/a", "type": "user", "value": {"password": "p"}});
    assert!(set.is_valid(&good));
    for (field, value) in [
        ("mode", json!("overwrite")),
        ("name", json!("//")),
        ("type", json!("password")),
        ("value", json!({"password": "p", "other": 1})),
        ("value", json!({"username": "u"})),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert!(!set.is_valid(&bad), "{bad}");
    }
    assert!(version.is_valid(&example::user_version()));
    for (field, value) in [
        ("value", json!("text")),
        ("id", json!("1")),
        ("version_created_at", json!("2026-11-22")),
    ] {
        let mut bad = example::user_version();
        bad[field] = value;
        assert!(!version.is_valid(&bad), "{bad}");
    }
    let mut bare = example::certificate_version();
    bare.as_object_mut().unwrap().shift_remove("transitional");
    assert!(!version.is_valid(&bare));
}

#[test]
fn every_specified_type_has_its_schemas() {
    let document = document::document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in CredentialType::SPECIFIED {
        let (first, rest) = name.split_at(1);
        let name = format!("{}{rest}", first.to_ascii_uppercase());
        let value = &schemas[&format!("{name}Value")];
        assert!(value.get("type").is_some(), "{name}");
        assert!(!value.to_string().contains("writeOnly"), "{name}");
        let parameters = schemas.get(&format!("{name}Parameters"));
        assert_eq!(
            parameters.is_none(),
            ["Value", "Json"].contains(&name.as_str())
        );
        if let Some(parameters) = parameters {
            assert!(!parameters.to_string().contains("readOnly"), "{name}");
        }
    }
}

#[test]
fn the_page_shows_everything_and_has_no_external_links() {
    let document = document::document();
    let page = page();
    for operation in operations(&document).into_values() {
        let id = operation["operationId"].as_str().unwrap();
        assert!(page.contains(&format!("<article id=\"{id}\">")), "{id}");
    }
    for name in document["components"]["schemas"]
        .as_object()
        .unwrap()
        .keys()
    {
        assert!(
            page.contains(&format!("<article id=\"schema-{name}\">")),
            "{name}"
        );
    }
    let anchors = |before: &str| -> BTreeSet<String> {
        let pieces = page.split(before).skip(1);
        pieces
            .map(|piece| piece.split('"').next().unwrap().to_owned())
            .collect()
    };
    let ids = anchors("id=\"");
    for target in anchors("href=\"") {
        let is_known = target == "/openapi.json"
            || target.strip_prefix('#').is_some_and(|id| ids.contains(id));
        assert!(is_known, "{target}");
    }
    for unwanted in [
        "<script", "<link", "<img", "src=", "@import", "url(", "style=\"",
    ] {
        assert!(!page.contains(unwanted), "{unwanted}");
    }
}

#[test]
fn descriptions_are_escaped_on_the_page() {
    let document = json!({"info": {"title": "<script>", "description": "a & `b<`"}});
    let page = page::page(&document);
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script>"));
    assert!(page.contains("a &amp; <code>b&lt;</code>"));
    let empty: Map<String, Value> = Map::new();
    assert!(page::page(&Value::Object(empty)).contains("</html>"));
}
