//! Renders the description as an HTML page.

#![expect(clippy::indexing_slicing, reason = "missing keys are null")]

use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, prelude::BASE64_STANDARD};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Map, Value};

pub(super) fn page(document: &Value) -> String {
    let info = &document["info"];
    let title = text(&info["title"]);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " API" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                nav { (contents(document)) }
                main {
                    h1 { (title) " API " small { (text(&info["version"])) } }
                    (paragraphs(&info["description"]))
                    p { "Source of this page: " a href="/openapi.json" { "/openapi.json" } " (OpenAPI 3.1)." }
                    (security(document))
                    @for tag in items(&document["tags"]) { (section(document, tag)) }
                    h2 id="schemas" { "Schemas" }
                    @for (name, schema) in fields(&document["components"]["schemas"]) { (component(name, schema)) }
                }
            }
        }
    }
    .into_string()
}

/// Returns the content security policy: browsers may only apply the page's own style.
pub(crate) fn content_security_policy() -> &'static str {
    static POLICY: LazyLock<String> = LazyLock::new(|| {
        let hash = BASE64_STANDARD.encode(digest(&SHA256, STYLE.as_bytes()));
        format!(
            "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
    });
    &POLICY
}

fn contents(document: &Value) -> Markup {
    html! {
        @for tag in items(&document["tags"]) {
            p { a href={ "#" (text(&tag["name"])) } { (text(&tag["name"])) } }
            ul {
                @for (path, method, operation) in operations(document, &tag["name"]) {
                    li { a href={ "#" (text(&operation["operationId"])) } { b { (method) } " " (path) } }
                }
            }
        }
        p { a href="#schemas" { "schemas" } }
    }
}

fn security(document: &Value) -> Markup {
    html! {
        h2 id="security" { "Authentication" }
        @for (name, scheme) in fields(&document["components"]["securitySchemes"]) {
            h3 { (name) }
            (paragraphs(&scheme["description"]))
        }
    }
}

fn section(document: &Value, tag: &Value) -> Markup {
    html! {
        h2 id=(text(&tag["name"])) { (text(&tag["name"])) }
        (paragraphs(&tag["description"]))
        @for (path, method, operation) in operations(document, &tag["name"]) {
            article id=(text(&operation["operationId"])) {
                h3 { b class=(method) { (method) } " " code { (path) } }
                p {
                    (text(&operation["summary"])) "."
                    @if operation["deprecated"] == Value::Bool(true) { " " em { "Deprecated." } }
                    @if operation.get("security").is_some() { " " em { "No authentication required." } }
                }
                (paragraphs(&operation["description"]))
                (parameters(operation))
                (request(operation))
                (responses(document, operation))
            }
        }
    }
}

fn parameters(operation: &Value) -> Markup {
    let parameters: Vec<_> = items(&operation["parameters"]).collect();
    html! {
        @if !parameters.is_empty() {
            table {
                tr { th { "Parameter" } th { "In" } th { "Type" } th { "Description" } }
                @for parameter in parameters {
                    tr {
                        td { code { (text(&parameter["name"])) } (required(parameter["required"] == Value::Bool(true))) }
                        td { (text(&parameter["in"])) }
                        td { (kind(&parameter["schema"])) }
                        td { (inline(text(&parameter["description"]))) }
                    }
                }
            }
        }
    }
}

fn request(operation: &Value) -> Markup {
    html! {
        @for (media_type, media) in fields(&operation["requestBody"]["content"]) {
            p {
                "Body, " code { (media_type) } ": " (kind(&media["schema"]))
                (required(operation["requestBody"]["required"] == Value::Bool(true)))
            }
            (examples(media))
        }
    }
}

fn responses(document: &Value, operation: &Value) -> Markup {
    let resolved = |response: &'_ Value| -> Value {
        let pointer = response.get("$ref").and_then(Value::as_str);
        let pointer = pointer.and_then(|reference| reference.strip_prefix('#'));
        let found = pointer.and_then(|pointer| document.pointer(pointer));
        found.unwrap_or(response).clone()
    };
    let responses =
        fields(&operation["responses"]).map(|(status, response)| (status, resolved(response)));
    html! {
        table {
            tr { th { "Status" } th { "When" } th { "Body" } }
            @for (status, response) in responses {
                tr {
                    td { code { (status) } }
                    td { (inline(text(&response["description"]))) }
                    td {
                        @for (media_type, media) in fields(&response["content"]) {
                            (kind(&media["schema"]))
                            @if media_type != "application/json" { ", " code { (media_type) } }
                            @if status.starts_with('2') { (examples(media)) }
                        }
                    }
                }
            }
        }
    }
}

fn examples(media: &Value) -> Markup {
    html! {
        @for (name, example) in fields(&media["examples"]) {
            details { summary { "Example: " (name) } (json(&example["value"])) }
        }
    }
}

fn component(name: &str, schema: &Value) -> Markup {
    let properties: Vec<_> = fields(&schema["properties"]).collect();
    let required_names: Vec<_> = items(&schema["required"]).map(text).collect();
    html! {
        article id={ "schema-" (name) } {
            h3 { (name) }
            (paragraphs(&schema["description"]))
            @if properties.is_empty() { p { (kind(schema)) } } @else {
                table {
                    tr { th { "Field" } th { "Type" } th { "Description" } }
                    @for (field, property) in properties {
                        tr {
                            td { code { (field) } (required(required_names.contains(&field))) }
                            td { (kind(property)) }
                            td { (inline(text(&property["description"]))) }
                        }
                    }
                }
            }
            details { summary { "JSON Schema" } (json(schema)) }
        }
    }
}

/// Renders a schema briefly: a reference or a type.
fn kind(schema: &Value) -> Markup {
    let alternatives: Vec<_> = items(&schema["anyOf"]).collect();
    let reference = text(&schema["$ref"]);
    html! {
        @if let Some(name) = reference.rsplit('/').next().filter(|name| !name.is_empty()) {
            a href={ "#schema-" (name) } { (name) }
        } @else if !alternatives.is_empty() {
            @for (index, alternative) in alternatives.into_iter().enumerate() {
                @if index > 0 { " or " }
                @match alternative.get("title") {
                    Some(title) => (text(title)),
                    None => (kind(alternative)),
                }
            }
        } @else if let Some(constant) = schema.get("const") {
            code { (constant) }
        } @else if schema.get("enum").is_some() {
            @for (index, value) in items(&schema["enum"]).enumerate() {
                @if index > 0 { ", " }
                code { (value) }
            }
        } @else if schema["type"] == "array" {
            "array of " (kind(&schema["items"]))
        } @else {
            (types(&schema["type"]))
            @if let Some(format) = schema.get("format") { " (" (text(format)) ")" }
        }
        @if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
            ", default " code { (default) }
        }
    }
}

fn types(named: &Value) -> String {
    match named {
        Value::String(name) => name.clone(),
        Value::Array(several) => several.iter().map(text).collect::<Vec<_>>().join(" or "),
        _ => "any JSON".to_owned(),
    }
}

fn required(is_required: bool) -> Markup {
    html! { @if is_required { " " em { "required" } } }
}

fn operations<'a>(document: &'a Value, tag: &Value) -> Vec<(&'a str, String, &'a Value)> {
    let of_path = |(path, operations): (&'a str, &'a Value)| {
        fields(operations)
            .map(move |(method, operation)| (path, method.to_ascii_uppercase(), operation))
    };
    fields(&document["paths"])
        .flat_map(of_path)
        .filter(|(_, _, operation)| items(&operation["tags"]).any(|named| named == tag))
        .collect()
}

fn json(value: &Value) -> Markup {
    html! { pre { (format!("{value:#}")) } }
}

fn paragraphs(value: &Value) -> Markup {
    let paragraphs = text(value)
        .split("\n\n")
        .filter(|paragraph| !paragraph.is_empty());
    html! { @for paragraph in paragraphs { p { (inline(paragraph)) } } }
}

/// Renders text with code between backticks.
fn inline(text: &str) -> Markup {
    html! {
        @for (index, piece) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (piece) } } @else { (piece) }
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn fields(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let fields = value.as_object().into_iter().flat_map(Map::iter);
    fields.map(|(name, field)| (name.as_str(), field))
}

const STYLE: &str = include_str!("page.css");
