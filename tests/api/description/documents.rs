//! GET /openapi.json and GET /docs

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use std::fs;

use keywright_harness::{Options, Server, workspace};
use reqwest::Method;
use serde_json::{Value, json};

const PATHS: [&str; 2] = ["/openapi.json", "/docs"];

#[tokio::test]
async fn the_description_needs_no_token_and_is_the_golden_file() {
    let server = Server::start().await;
    let golden = fs::read_to_string(workspace().join("host/api/openapi.json")).unwrap();
    let answer = server
        .send(server.request(Method::GET, "/openapi.json"))
        .await;
    let answer = answer.expect(200);
    assert_eq!(
        answer.header("content-type"),
        Some("application/json;charset=UTF-8")
    );
    let golden: Value = serde_json::from_str(&golden).unwrap();
    assert!(answer.json() == golden);
}

#[tokio::test]
async fn the_documents_do_not_depend_on_the_configuration() {
    let bare = Server::start_with(&Options::default().without_plugins()).await;
    let full = Server::start().await;
    for path in PATHS {
        let one = bare.send(bare.request(Method::GET, path)).await.expect(200);
        let other = full.send(full.request(Method::GET, path)).await.expect(200);
        assert!(one.body == other.body, "{path}");
    }
}

#[tokio::test]
async fn the_page_loads_no_scripts_or_external_resources() {
    let server = Server::start().await;
    let answer = server
        .send(server.request(Method::GET, "/docs/"))
        .await
        .expect(200);
    assert_eq!(
        answer.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    let policy = answer.header("content-security-policy").unwrap().to_owned();
    let (before, after) = policy.split_once("style-src 'sha256-").unwrap();
    assert_eq!(before, "default-src 'none'; ");
    assert!(
        !policy.contains("unsafe") && !policy.contains('*'),
        "{policy}"
    );
    // The page's style is the one that its policy allows.
    let style = answer.body.split("<style>").nth(1).unwrap();
    let style = style.split("</style>").next().unwrap();
    let (hash, _) = after.split_once('\'').unwrap();
    assert_eq!(hash, sha256(style));
    assert!(answer.body.starts_with("<!DOCTYPE html>"));
    assert!(answer.body.contains("Sets a credential"));
    assert!(!answer.body.contains("<script"));
}

#[tokio::test]
async fn documents_are_served_in_read_only_mode_and_not_audited() {
    let server = Server::start().await;
    let on = json!({"read_only_mode": true});
    server.post("/management", on).await.expect(200);
    let before = server.audit_trail();
    for path in PATHS {
        server.get(path).await.expect(200);
    }
    assert_eq!(server.audit_trail(), before);
}

#[tokio::test]
async fn documents_support_get_and_head_only() {
    let server = Server::start().await;
    for path in PATHS {
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            let answer = server.send(server.authorized(method, path)).await;
            assert_eq!(answer.expect(404).body, "");
        }
        let head = server.send(server.request(Method::HEAD, path)).await;
        assert_eq!(head.expect(200).body, "");
    }
}

#[tokio::test]
async fn described_types_have_the_schemas_of_their_plugins() {
    let server = Server::start().await;
    let description = server.get("/openapi.json").await.expect(200).json();
    let types = server.get("/api/v1/types").await.expect(200).json();
    for listed in types["types"].as_array().unwrap() {
        let name = listed["name"].as_str().unwrap();
        let (first, rest) = name.split_at(1);
        let schema = |what: &str| {
            let name = format!("{}{rest}{what}", first.to_ascii_uppercase());
            &description["components"]["schemas"][name]
        };
        assert_eq!(names(schema("Value")), names(&listed["value"]), "{name}");
        assert_eq!(schema("Value")["type"], listed["value"]["type"], "{name}");
        assert_eq!(
            names(schema("Parameters")),
            names(&listed["parameters"]),
            "{name}"
        );
    }
}

/// The names of the fields that callers may send or read.
fn names(schema: &Value) -> Vec<String> {
    let properties = schema["properties"].as_object();
    let open = properties.into_iter().flatten();
    let open = open.filter(|(_, property)| property["readOnly"] != true);
    open.map(|(name, _)| name.clone()).collect()
}

fn sha256(text: &str) -> String {
    let output = keywright_harness::Program::run("openssl", &["dgst", "-sha256", "-hex"], text);
    let hex = output.expect_success();
    let hex = hex.trim().rsplit(' ').next().unwrap();
    let bytes: Vec<u8> = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect();
    base64::Engine::encode(&base64::prelude::BASE64_STANDARD, bytes)
}

#[tokio::test]
async fn permission_paths_are_accepted_up_to_the_described_length() {
    let server = Server::start().await;
    let document = server.get("/openapi.json").await.expect(200).json();
    let schema = document
        .pointer("/components/schemas/PermissionPath")
        .unwrap();
    let limit = |pointer: &str| schema.pointer(pointer).and_then(Value::as_u64).unwrap();
    for (start, characters_max) in [("/", limit("/maxLength")), ("", limit("/then/maxLength"))] {
        for (end, excess, status) in [("/*", 0, 201), ("/*", 1, 400), ("", 0, 201), ("", 1, 400)] {
            let characters = usize::try_from(characters_max).unwrap() + excess;
            let middle = "a".repeat(characters - start.len() - end.len());
            let actor = format!("uaa-client:{}", start.len());
            let permission = json!({
                "path": format!("{start}{middle}{end}"), "actor": actor, "operations": ["read"]
            });
            let answer = server.post("/api/v2/permissions", permission).await;
            answer.expect(status);
        }
    }
}
