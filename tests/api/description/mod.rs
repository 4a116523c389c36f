//! The API's description, and conformance to it.

use std::{fs, process::Stdio};

use keywright_harness::{Options, Scrape, Server, key_file, python_program, workspace};
use reqwest::Method;
use serde_json::{Value, json};

// GET /openapi.json and GET /docs

const PATHS: [&str; 3] = ["/openapi.json", "/docs", "/docs/index.html"];

#[tokio::test]
async fn the_description_needs_no_token_and_equals_the_golden_file() {
    let server = Server::reused().await;
    let golden = fs::read_to_string(workspace().join("host/api/openapi.json")).unwrap();
    let response = server
        .send(server.request(Method::GET, "/openapi.json"))
        .await;
    let response = response.expect(200);
    let actual = response.header("content-type");
    assert_eq!(actual, Some("application/json;charset=UTF-8"));
    let golden: Value = serde_json::from_str(&golden).unwrap();
    assert!(response.json() == golden);
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
    let server = Server::reused().await;
    let response = server
        .send(server.request(Method::GET, "/docs/"))
        .await
        .expect(200);
    let actual = response.header("content-type");
    assert_eq!(actual, Some("text/html; charset=utf-8"));
    assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(response.header("referrer-policy"), Some("no-referrer"));
    let policy = response
        .header("content-security-policy")
        .unwrap()
        .to_owned();
    let (before, after) = policy.split_once("style-src 'sha256-").unwrap();
    assert_eq!(before, "default-src 'none'; ");
    assert!(
        !policy.contains("unsafe") && !policy.contains('*'),
        "{policy}"
    );
    // The policy contains the hash of the page's style.
    let style = response.body.split("<style>").nth(1).unwrap();
    let style = style.split("</style>").next().unwrap();
    let (hash, _) = after.split_once('\'').unwrap();
    assert_eq!(hash, sha256(style));
    assert!(response.body.starts_with("<!DOCTYPE html>"));
    response.assert_contains("Sets a credential");
    response.assert_lacks("<script");
}

#[tokio::test]
async fn described_types_have_the_schemas_of_their_plugins() {
    let server = Server::reused().await;
    let description = server.get_json("/openapi.json").await;
    let types = server.get_json("/api/v1/types").await;
    for listed in types["types"].as_array().unwrap() {
        let name = listed["name"].as_str().unwrap();
        let (first, rest) = name.split_at(1);
        let schema = |what: &str| {
            let name = format!("{}{rest}{what}", first.to_ascii_uppercase());
            &description["components"]["schemas"][name]
        };
        assert_eq!(names(schema("Value")), names(&listed["value"]), "{name}");
        assert_eq!(schema("Value")["type"], listed["value"]["type"], "{name}");
        let actual = names(schema("Parameters"));
        assert_eq!(actual, names(&listed["parameters"]), "{name}");
    }
}

/// Returns the names of the fields that callers may send or read.
fn names(schema: &Value) -> Vec<String> {
    let properties = schema["properties"].as_object();
    let open = properties.into_iter().flatten();
    let open = open.filter(|(_, property)| property["readOnly"] != true);
    open.map(|(name, _)| name.clone()).collect()
}

fn sha256(text: &str) -> String {
    let output = keywright_harness::Commanded::run("openssl", &["dgst", "-sha256", "-hex"], text);
    let hex = output.expect(0).output;
    let hex = hex.trim().rsplit(' ').next().unwrap();
    let bytes: Vec<u8> = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect();
    base64::Engine::encode(&base64::prelude::BASE64_STANDARD, bytes)
}

// The example requests of the description.

/// The operations with a request body, in an order that creates their preconditions.
const ORDER: [(&str, &str); 13] = [
    ("put", "/api/v1/data"),
    ("post", "/api/v1/data"),
    ("post", "/api/v1/regenerate"),
    ("post", "/api/v1/bulk-regenerate"),
    ("post", "/api/v1/interpolate"),
    ("post", "/api/v1/certificates/{certificate_id}/regenerate"),
    (
        "put",
        "/api/v1/certificates/{certificate_id}/update_transitional_version",
    ),
    ("post", "/api/v1/certificates/{certificate_id}/versions"),
    ("post", "/api/v2/permissions"),
    ("put", "/api/v2/permissions/{permission_id}"),
    ("patch", "/api/v2/permissions/{permission_id}"),
    ("post", "/api/v1/permissions"),
    ("post", "/management"),
];

#[tokio::test]
async fn every_example_request_succeeds() {
    let server = Server::reused().await;
    let description = server.get_json("/openapi.json").await;
    let mut sent = 0;
    for (method, path) in ORDER {
        let operation = &description["paths"][path][method];
        let examples =
            operation["requestBody"]["content"]["application/json"]["examples"].as_object();
        for (name, example) in examples.into_iter().flatten() {
            let target = target(&server, path).await;
            let body = with_existing_ids(&server, path, &example["value"]).await;
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let request = server.authorized(method, &target).body(body.to_string());
            let response = server.send(request).await;
            let status = response.status.to_string();
            assert!(status.starts_with('2'), "{path} {name}: {response:?}");
            assert!(
                operation["responses"].get(&status).is_some(),
                "{path} {name}: {status}"
            );
            sent += 1;
        }
    }
    assert_eq!(sent, examples_of_requests(&description));
}

/// Returns the number of example requests.
fn examples_of_requests(description: &Value) -> usize {
    let paths = description["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|path| path.as_object().unwrap().values());
    let examples = operations.map(|operation| {
        operation["requestBody"]["content"]["application/json"]["examples"].as_object()
    });
    examples.flatten().map(serde_json::Map::len).sum()
}

/// Returns a path with the ids of resources that the examples created.
async fn target(server: &Server, path: &str) -> String {
    if path.contains("{certificate_id}") {
        return path.replace("{certificate_id}", &certificate(server).await);
    }
    if path.contains("{permission_id}") {
        let found = "/api/v2/permissions?path=/demo/*&actor=uaa-client:app";
        let found = server.get_json(found).await;
        return path.replace("{permission_id}", found["uuid"].as_str().unwrap());
    }
    path.to_owned()
}

async fn certificate(server: &Server) -> String {
    let listed = server
        .get_json("/api/v1/certificates?name=/demo/root")
        .await;
    listed["certificates"][0]["id"].as_str().unwrap().to_owned()
}

/// Returns the body of an example, with ids of this server.
async fn with_existing_ids(server: &Server, path: &str, example: &Value) -> Value {
    let mut body = example.clone();
    if path.ends_with("update_transitional_version") && body["version"].is_string() {
        let versions = server.versions("/demo/root").await;
        body["version"] = json!(versions.last().unwrap()["id"]);
    }
    body
}

// Thousands of requests that Schemathesis generates from the description, each response checked against it.

/// The output contains each failure with a command that repeats the request.
#[tokio::test]
async fn every_response_matches_the_description() {
    if python_program(PROGRAM).is_none() {
        return;
    }
    let server = Server::start_with(&Options::default().watched()).await;
    let mut description = closed(server.get_json("/openapi.json").await);
    add_ids(&mut description, &server).await;
    let file = server.directory().join("openapi.json");
    fs::write(&file, description.to_string()).unwrap();
    // Read-only mode would cause all other writes to be refused, so it is tested separately, and last.
    for selection in [
        ["--exclude-path", "/management"],
        ["--include-path", "/management"],
    ] {
        let mut command = python_program(PROGRAM).unwrap();
        command
            .arg("--no-color")
            .arg("--config-file")
            .arg(workspace().join("tests/api/description/schemathesis.toml"))
            .arg("run")
            .arg(&file)
            .args(["--url", server.base_url()])
            .arg("--tls-verify")
            .arg(key_file("ca.pem"))
            .args([
                "--header",
                &format!("Authorization: Bearer {}", server.token()),
            ])
            .args(selection)
            .current_dir(server.directory())
            .stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap();
        let report = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{report}\n{errors}");
        assert!(requests(&report) >= requests_min(selection), "{report}");
    }
    server.get("/health").await.expect(200);
    let scrape = server.scrape().await;
    for method in ["GET", "PUT", "POST", "DELETE"] {
        let succeeded = succeeded(&scrape, method);
        assert!(
            succeeded >= SUCCEEDED_MIN,
            "{method}: {succeeded}\n{}",
            scrape.text()
        );
    }
}

/// Returns the number of successful requests of a method.
fn succeeded(scrape: &Scrape, method: &str) -> f64 {
    let succeeded = ["200", "201", "204"].iter().filter_map(|status| {
        let labels = [("method", method), ("status", *status)];
        scrape.sum("keywright_http_requests_total", &labels)
    });
    succeeded.sum()
}

/// Returns the minimum number of requests in a run.
fn requests_min(selection: [&str; 2]) -> u64 {
    if selection[0] == "--exclude-path" {
        2_000
    } else {
        20
    }
}

/// Returns the number of requests in a run, from its output.
fn requests(report: &str) -> u64 {
    let line = report.lines().find(|line| line.contains(" generated, "));
    let mut words = line.unwrap_or_default().split_whitespace();
    words
        .find_map(|word| word.replace(',', "").parse().ok())
        .unwrap_or_default()
}

/// Returns the description, changed so that responses must not contain additional fields.
fn closed(mut description: Value) -> Value {
    for part in ["schemas", "responses"] {
        close(&mut description["components"][part]);
    }
    description
}

fn close(part: &mut Value) {
    match part {
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Object(fields) => {
            let is_open =
                fields.contains_key("type") && !fields.contains_key("additionalProperties");
            if is_open && fields.contains_key("properties") {
                fields.insert("additionalProperties".to_owned(), json!(false));
            }
            fields.values_mut().for_each(close);
        }
        _ => {}
    }
}

/// Adds the ids of existing resources as examples, so that requests with ids succeed.
async fn add_ids(description: &mut Value, server: &Server) {
    let certificate = json!({"common_name": "c", "is_ca": true});
    let version = server.issued("/certificate", certificate).await;
    let listed = server.get("/api/v1/certificates?name=/certificate").await;
    let grant = json!({"path": "/granted", "actor": "someone", "operations": ["read"]});
    let response = server.post("/api/v2/permissions", grant).await;
    let permission = response.expect(201).json();
    let ids = json!({
        "certificate_id": listed.expect(200).json()["certificates"][0]["id"],
        "id": version["id"],
        "permission_id": permission["uuid"],
        "version_id": version["id"],
    });
    for operations in description["paths"].as_object_mut().unwrap().values_mut() {
        for operation in operations.as_object_mut().unwrap().values_mut() {
            let parameters = operation
                .get_mut("parameters")
                .and_then(Value::as_array_mut);
            for parameter in parameters.into_iter().flatten() {
                let id = parameter["name"].as_str().and_then(|name| ids.get(name));
                if let Some(id) = id.filter(|_| parameter["in"] == "path") {
                    parameter["example"] = id.clone();
                }
            }
        }
    }
}

/// The minimum number of successful requests per method; refusals alone prove little.
const SUCCEEDED_MIN: f64 = 10.0;

const PROGRAM: &str = "schemathesis";
