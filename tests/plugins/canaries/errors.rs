//! Rejected input is repeated neither to the caller nor in the log.

use keywright_harness::Server;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Canaries, traces::assert_left_nowhere};

/// Sends bodies that must be rejected with a 4xx status, and searches each response for the canaries.
async fn assert_refused_in_silence(
    method: Method,
    path: &str,
    bodies: impl Fn(&str) -> Vec<Value>,
) {
    let server = Server::start().await;
    server
        .set("/marker/value", "value", json!("v"))
        .await
        .expect(200);
    let mut canaries = Canaries::default();
    let canary = canaries.plant("a refused request");
    for body in bodies(&canary) {
        let text = match &body {
            Value::String(malformed) => malformed.clone(),
            other => other.to_string(),
        };
        let request = server.authorized(method.clone(), path).body(text);
        let answer = server.send(request).await;
        assert!(
            (400..500).contains(&answer.status),
            "{body}: {} {}",
            answer.status,
            answer.body
        );
        canaries.assert_absent(&format!("the answer to {body}"), &answer.error());
    }
    assert_left_nowhere(server, &canaries, "/marker/value").await;
}

#[tokio::test]
async fn rejected_set_repeats_no_secret() {
    assert_refused_in_silence(Method::PUT, "/api/v1/data", |canary| {
        let long = canary.repeat(2_000);
        let set = |credential_type: &str, value: Value| {
            json!({"name": "/a", "type": credential_type, "value": value})
        };
        vec![
            json!(format!("{{\"name\":\"/a\",\"type\":\"password\",\"value\":\"{canary}")),
            json!(format!("{{\"name\":\"/a\",\"value\":\"{canary}\",\"value\":1}}")),
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
    assert_refused_in_silence(Method::POST, "/api/v1/data", |canary| {
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
    assert_refused_in_silence(Method::POST, "/api/v1/regenerate", |canary| {
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
    assert_refused_in_silence(Method::POST, "/api/v1/interpolate", |canary| {
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
