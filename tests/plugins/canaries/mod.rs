//! Secrets in any field of any type occur in no log line, audit event, error or database file. This module covers tokens,
//! metrics, and rejected input.

mod stored;

use std::{fs, path::Path};

use keywright_harness::{Options, Server, Text};
use reqwest::{Method, header};
use serde_json::{Value, json};
use uuid::Uuid;

/// Unique texts. Output can only contain them if the server repeats its input.
#[derive(Default)]
struct Canaries {
    planted: Vec<(String, String)>,
}

impl Canaries {
    /// Creates a text for this field.
    fn plant(&mut self, source: &str) -> String {
        let text = format!("canary{}", Uuid::new_v4().simple());
        self.watch(source, &text);
        text
    }

    /// Adds a secret that the server generated.
    fn watch(&mut self, source: &str, secret: &str) {
        self.planted.push((source.to_owned(), secret.to_owned()));
    }

    /// Adds all secrets in a generated value: passwords, hashes, and each line of a private key.
    fn watch_generated(&mut self, source: &str, value: &Value) {
        for field in ["password", "password_hash"] {
            if let Some(secret) = value.get(field).and_then(Value::as_str) {
                self.watch(&format!("{source}, {field}"), secret);
            }
        }
        if let Some(password) = value.as_str() {
            self.watch(source, password);
        }
        if let Some(key) = value.get("private_key").and_then(Value::as_str) {
            for line in key.lines().filter(|line| line.len() == 64) {
                self.watch(&format!("{source}, private key"), line);
            }
        }
    }

    /// Asserts that a text contains no canary, neither literally nor in hexadecimal.
    #[track_caller]
    fn assert_absent(&self, from: &str, text: &str) {
        for (source, secret) in &self.planted {
            let hexadecimal = hex::encode(secret.as_bytes());
            assert!(
                !text.contains(secret.as_str()),
                "the canary of {source} is in {from}"
            );
            assert!(
                !text.contains(&hexadecimal),
                "the canary of {source} is in {from}, encoded"
            );
        }
    }
}

/// Asserts that no canary is in the log, the audit trail or a database file, while the server runs and after it has
/// stopped. The trail and the files must contain this marker, which proves that the search works.
async fn assert_absent_from_files(server: Server, canaries: &Canaries, marker: &str) {
    assert!(
        database(server.directory()).contains(marker),
        "the search covers the wrong files"
    );
    assert!(server.log().contains("keywright"), "the log is empty");
    let trail = server.audit_trail();
    trail.assert_contains(marker);
    canaries.assert_absent("the audit trail", &trail);
    canaries.assert_absent("the log", &server.whole_log().await);
    canaries.assert_absent("the open database", &database(server.directory()));
    let folder = server.stop().await;
    canaries.assert_absent("the closed database", &database(folder.path()));
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    canaries.assert_absent("the complete log", &log);
}

/// Returns the contents of the database file and of the files that SQLite keeps next to it.
fn database(folder: &Path) -> String {
    let mut contents = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("keywright.db") {
            contents.push_str(&String::from_utf8_lossy(&fs::read(&path).unwrap()));
        }
    }
    contents
}

#[tokio::test]
async fn tokens_are_in_no_log_or_database_file() {
    let server = Server::start().await;
    let mut canaries = Canaries::default();
    for part in server.token().split('.').skip(1) {
        canaries.watch("the token", part);
    }
    server.stored("/marker/value", "value", json!("v")).await;
    let forged = canaries.plant("a forged token");
    let cut = server.token().split_once('.').unwrap().1;
    for value in [
        format!("Bearer {forged}"),
        format!("Bearer {}x", server.token()),
        format!("Bearer {cut}"),
        format!("Basic {forged}"),
        format!("bearer  {forged} {forged}"),
        forged.clone(),
    ] {
        let request = server.request(Method::GET, "/api/v1/data?name=/marker/value");
        let response = server
            .send(request.header(header::AUTHORIZATION, &value))
            .await;
        assert_eq!(response.status, 401, "{value}");
        canaries.assert_absent("a response", &response.body);
        for (name, text) in &response.headers {
            canaries.assert_absent(name, text);
        }
    }
    assert_absent_from_files(server, &canaries, "/marker/value").await;
}

#[tokio::test]
async fn login_secrets_are_in_no_log_or_database_file() {
    let mut canaries = Canaries::default();
    let client_secret = canaries.plant("a client");
    let password = canaries.plant("a user");
    let wrong = canaries.plant("a wrong secret");
    let identities = format!(
        r#"
[[development_identity_provider.clients]]
id = "tester"
secret = "{client_secret}"

[[development_identity_provider.users]]
id = "8f0b6a3c-5f0e-4a9b-9d0e-6d1c4a1f2b11"
name = "tester"
password = "{password}"
"#
    );
    let server = Server::start_with(&Options::default().extra(&identities)).await;
    server.stored("/marker/value", "value", json!("v")).await;
    let client = "client_id=tester";
    let user = "client_id=credhub_cli&client_secret=&grant_type=password&username=tester";
    for (form, status) in [
        (
            format!("grant_type=client_credentials&{client}&client_secret={client_secret}"),
            200,
        ),
        (format!("{user}&password={password}"), 200),
        (
            format!("grant_type=client_credentials&{client}&client_secret={wrong}"),
            401,
        ),
        (format!("{user}&password={wrong}"), 400),
        (
            format!("grant_type=refresh_token&{client}&client_secret={wrong}&refresh_token=x"),
            401,
        ),
        (
            format!("grant_type={wrong}&{client}&client_secret={client_secret}"),
            400,
        ),
    ] {
        let request = server
            .request(Method::POST, "/identity/oauth/token")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form.clone());
        let response = server.send(request).await;
        assert_eq!(response.status, status, "{form}: {}", response.body);
        if status == 200 {
            let tokens = response.json();
            for field in ["access_token", "refresh_token"] {
                if let Some(token) = tokens[field].as_str() {
                    canaries.watch(field, token);
                }
            }
        } else {
            canaries.assert_absent("a response", &response.body);
        }
    }
    assert_absent_from_files(server, &canaries, "/marker/value").await;
}

#[tokio::test]
async fn metrics_contain_no_secrets_names_or_actors() {
    let server = Server::start_with(&Options::default().watched()).await;
    let mut canaries = Canaries::default();
    let name = format!("/{}", canaries.plant("a credential's name"));
    let value = canaries.plant("a value");
    server.stored(&name, "value", json!(value)).await;
    let json_value = json!({canaries.plant("a json's key"): canaries.plant("a json's value")});
    server
        .stored(&format!("{name}/json"), "json", json_value)
        .await;
    let certificate = json!({
        "common_name": canaries.plant("a common name"),
        "alternative_names": [format!("{}.example", canaries.plant("an alternative name"))],
        "self_sign": true,
    });
    let certificate = server
        .generated(&format!("{name}/c"), "certificate", certificate)
        .await;
    canaries.watch_generated("a certificate", &certificate["value"]);
    let id = certificate["id"].as_str().unwrap_or_default().to_owned();
    canaries.watch("a version's id", &id);
    server.get(&format!("/api/v1/data/{id}")).await.expect(200);
    server
        .get(&format!("/api/v1/data?name={name}"))
        .await
        .expect(200);
    let password = server
        .generated(&format!("{name}/p"), "password", json!({"length": 40}))
        .await;
    canaries.watch_generated("a password", &password["value"]);
    for source in ["a path", "a query", "a refused token", "a method"] {
        let text = canaries.plant(source);
        let method = Method::from_bytes(text.to_uppercase().as_bytes()).unwrap_or_default();
        canaries.watch(source, method.as_str());
        let paths = [format!("/{text}"), format!("/api/v1/data?{text}={text}")];
        for path in paths {
            server.send(server.authorized(method.clone(), &path)).await;
            server.get(&path).await;
            let request = server.request(Method::GET, &path).bearer_auth(&text);
            server.send(request).await.expect(401);
        }
    }
    let body = json!({"name": name, "type": canaries.plant("an unknown type"), "value": "v"});
    server.put("/api/v1/data", body).await.expect(422);
    canaries.watch("the token", server.token());
    canaries.watch("the actor", "developer");

    let scrape = server.scrape().await;
    // These texts show that the search covers all metrics.
    for marker in [
        "unmatched",
        "keywright_certificates",
        r#"plugin="password""#,
    ] {
        assert!(scrape.text().contains(marker), "{marker}");
    }
    canaries.assert_absent("the measurements", scrape.text());
}

/// Sends bodies that must be rejected with a 4xx status, and searches each response for the canaries.
async fn assert_rejected_without_repeating(
    method: Method,
    path: &str,
    bodies: impl Fn(&str) -> Vec<Value>,
) {
    let server = Server::start().await;
    server.stored("/marker/value", "value", json!("v")).await;
    let mut canaries = Canaries::default();
    let canary = canaries.plant("a refused request");
    for body in bodies(&canary) {
        let text = match &body {
            Value::String(malformed) => malformed.clone(),
            other => other.to_string(),
        };
        let request = server.authorized(method.clone(), path).body(text);
        let response = server.send(request).await;
        assert!(
            (400..500).contains(&response.status),
            "{body}: {} {}",
            response.status,
            response.body
        );
        canaries.assert_absent(&format!("the response to {body}"), &response.error());
    }
    assert_absent_from_files(server, &canaries, "/marker/value").await;
}

#[tokio::test]
async fn rejected_set_repeats_no_secret() {
    assert_rejected_without_repeating(Method::PUT, "/api/v1/data", |canary| {
        let long = canary.repeat(2_000);
        let set = |credential_type: &str, value: Value| {
            json!({"name": "/a", "type": credential_type, "value": value})
        };
        vec![
            json!(format!("{{\"name\":\"/a\",\"type\":\"password\",\"value\":\"{canary}")),
            json!(format!("{{\"name\":\"/a\",\"value\":\"{canary}\",\"value\":1}}")),
            json!(format!("{{\"name\":\"/a\",\"{canary} \":1,\"{canary} \":1}}")),
            json!(format!("{{\"value\":{{\"$serde_json::private::RawValue\":\"{canary}\"}}}}")),
            json!([canary]),
            json!({"name": "/a", "type": "nonsense", "value": canary}),
            json!({"name": "/a", "type": {canary: canary}, "value": canary}),
            json!({"name": "/marker/value", "type": "password", "value": canary}),
            json!({"name": "/a b", "type": "password", "value": canary}),
            json!({"name": "/a", "type": "password", "value": canary, "mode": canary}),
            json!({"name": "/a", "type": "value", "value": "v", "metadata": long}),
            set("value", json!([canary])),
            set("value", json!(long)),
            set("password", json!({canary: canary})),
            set("password", json!(long)),
            set("json", json!(canary)),
            set("json", json!([{canary: canary}])),
            set("json", json!({canary: long})),
            set("user", json!(canary)),
            set("user", json!({"username": canary})),
            set("user", json!({"password": [canary]})),
            set("user", json!({"username": {canary: canary}, "password": canary})),
            set("user", json!({"username": long, "password": canary})),
            set("user", json!({"password": canary, "unknown": canary})),
            set("rsa", json!(canary)),
            set("rsa", json!({"private_key": [canary]})),
            set("rsa", json!({"private_key": canary, "unknown": canary})),
            set("rsa", json!({"public_key": long})),
            set("ssh", json!({"public_key": {canary: canary}})),
            set("ssh", json!({"private_key": long})),
            set("certificate", json!(canary)),
            set("certificate", json!({"certificate": canary})),
            set("certificate", json!({"ca": canary})),
            set("certificate", json!({"private_key": canary})),
            set("certificate", json!({"private_key": pem("RSA PRIVATE KEY", canary)})),
            set("certificate", json!({"private_key": pem("PRIVATE KEY", canary)})),
            set("certificate", json!({"certificate": pem("CERTIFICATE", canary)})),
            set("certificate", json!({"certificate": [canary], "private_key": canary})),
            set("certificate", json!({"private_key": canary, "unknown": canary})),
        ]
    })
    .await;
}

#[tokio::test]
async fn rejected_generate_repeats_no_secret() {
    assert_rejected_without_repeating(Method::POST, "/api/v1/data", |canary| {
        let long = canary.repeat(2_000);
        let with = |credential_type: &str, parameters: Value| {
            json!({"name": "/a", "type": credential_type, "parameters": parameters})
        };
        let certificate = |parameter: &str, value: Value| {
            with("certificate", json!({"common_name": "a", "is_ca": true, parameter: value}))
        };
        vec![
            json!(format!("{{\"name\":\"/a\",\"type\":\"user\",\"value\":{{\"username\":\"{canary}")),
            json!({"name": "/a", "type": "password", "parameters": canary}),
            json!({"name": "/a", "type": "password", "parameters": {}, "mode": canary}),
            json!({"name": "/a", "type": "password", "parameters": {}, "overwrite": canary}),
            json!({"name": "/a", "type": "password", "metadata": long}),
            json!({"name": "/a", "type": "json", "parameters": {"a": canary}}),
            json!({"name": "/a", "type": "user", "value": {"password": canary}}),
            json!({"name": "/a", "type": "user", "value": canary}),
            with("password", json!({"length": canary})),
            with("password", json!({"length": 3, "exclude_upper": canary})),
            with("password", json!({"unknown": canary})),
            with("user", json!({"username": [canary]})),
            with("user", json!({"username": long})),
            with("rsa", json!({"key_length": canary})),
            with("ssh", json!({"key_length": 1, "ssh_comment": canary})),
            with("ssh", json!({"ssh_comment": {canary: canary}})),
            with("ssh", json!({"ssh_comment": format!("{canary}\n{canary}")})),
            certificate("common_name", json!(long)),
            certificate("country", json!(canary)),
            certificate("duration", json!(canary)),
            certificate("key_length", json!(canary)),
            certificate("organization", json!([canary])),
            certificate("self_sign", json!(canary)),
        ]
    })
    .await;
}

#[tokio::test]
async fn rejected_regenerate_repeats_no_secret() {
    assert_rejected_without_repeating(Method::POST, "/api/v1/regenerate", |canary| {
        vec![
            json!(format!("{{\"name\":\"/a\",\"metadata\":\"{canary}")),
            json!({"name": "/nowhere", "metadata": canary}),
            json!({"name": "/marker/value", "metadata": {canary: canary}}),
            json!({"name": "/marker/value", "metadata": canary.repeat(2_000)}),
            json!({"name": "/a", "unknown": canary}),
            json!({"name": {canary: canary}}),
        ]
    })
    .await;
}

#[tokio::test]
async fn rejected_interpolate_repeats_no_secret() {
    assert_rejected_without_repeating(Method::POST, "/api/v1/interpolate", |canary| {
        let binding = |reference: &str| {
            json!({canary: [{canary: canary, "credentials": {"store-ref": reference, "b": canary}}]})
        };
        vec![
            json!(format!("{{\"a\":\"{canary}")),
            json!([canary]),
            binding("/nowhere"),
            binding("/marker/value"),
        ]
    })
    .await;
}

fn pem(label: &str, body: &str) -> String {
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}
