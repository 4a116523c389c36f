//! Thousands of requests that Schemathesis generates from the description, each response checked against it.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use std::{fs, process::Stdio};

use keywright_harness::{Options, Scrape, Server, key_file, python_program, workspace};
use serde_json::{Value, json};

use crate::given;

/// The output contains each failure with a command that repeats the request.
#[tokio::test]
async fn every_response_matches_the_description() {
    if python_program(PROGRAM).is_none() {
        return;
    }
    let server = Server::start_with(&Options::default().watched()).await;
    let mut description = closed(server.get("/openapi.json").await.expect(200).json());
    tell_ids(&mut description, &server).await;
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
        let expected = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{expected}\n{errors}");
        assert!(requests(&expected) >= least(selection), "{expected}");
    }
    server.get("/health").await.expect(200);
    let scrape = server.scrape().await;
    for method in ["GET", "PUT", "POST", "DELETE"] {
        let done = done(&scrape, method);
        assert!(done >= DONE_MIN, "{method}: {done}\n{}", scrape.text());
    }
}

/// The number of successful requests of a method.
fn done(scrape: &Scrape, method: &str) -> f64 {
    let done = ["200", "201", "204"].iter().filter_map(|status| {
        let labels = [("method", method), ("status", *status)];
        scrape.sum("keywright_http_requests_total", &labels)
    });
    done.sum()
}

/// The minimum number of requests in a run.
fn least(selection: [&str; 2]) -> u64 {
    if selection[0] == "--exclude-path" {
        2_000
    } else {
        20
    }
}

/// The number of requests in a run, from its output.
fn requests(expected: &str) -> u64 {
    let line = expected.lines().find(|line| line.contains(" generated, "));
    let mut words = line.unwrap_or_default().split_whitespace();
    words
        .find_map(|word| word.replace(',', "").parse().ok())
        .unwrap_or_default()
}

/// The description without permission for additional fields in responses.
fn closed(mut description: Value) -> Value {
    for part in ["schemas", "responses"] {
        close(&mut description["components"][part]);
    }
    description
}

fn close(part: &mut Value) {
    match part {
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Object(members) => {
            let is_open =
                members.contains_key("type") && !members.contains_key("additionalProperties");
            if is_open && members.contains_key("properties") {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
            members.values_mut().for_each(close);
        }
        _ => {}
    }
}

/// Adds the ids of existing resources as examples, so that requests with ids succeed.
async fn tell_ids(description: &mut Value, server: &Server) {
    let certificate = json!({"common_name": "c", "is_ca": true});
    let version = given::generate_certificate(server, "/certificate", certificate).await;
    let listed = server.get("/api/v1/certificates?name=/certificate").await;
    let grant = json!({"path": "/granted", "actor": "someone", "operations": ["read"]});
    let permission = server
        .post("/api/v2/permissions", grant)
        .await
        .expect(201)
        .json();
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
const DONE_MIN: f64 = 10.0;

const PROGRAM: &str = "schemathesis";
