//! Failures of an interpolation.

use reqwest::Method;
use serde_json::json;

use super::{interpolate, one_binding, with_secret};

#[tokio::test]
async fn a_reference_to_an_absent_credential_is_404() {
    let (server, _) = with_secret().await;
    for reference in [
        "/nowhere",
        "((/nowhere))",
        "",
        "(())",
        "/",
        "not a name",
        "//",
        "*",
    ] {
        let document = one_binding(&json!({"store-ref": reference}));
        interpolate(&server, document).await.expect(404).error();
    }
}

#[tokio::test]
async fn a_credential_of_another_type_is_400_and_named() {
    let (server, _) = with_secret().await;
    for (credential_type, value) in [
        ("value", json!("v")),
        ("password", json!("p")),
        ("user", json!({"username": "ada", "password": "p"})),
        ("ssh", json!({"private_key": "private"})),
    ] {
        let name = format!("/Of/{credential_type}");
        server.set(&name, credential_type, value).await.expect(200);
        let document = one_binding(&json!({"store-ref": name.to_lowercase()}));
        let error = interpolate(&server, document).await.expect(400).error();
        assert!(
            error.to_lowercase().contains(&name.to_lowercase()),
            "{error}"
        );
    }
}

#[tokio::test]
async fn the_first_failure_ends_the_whole_call() {
    let (server, _) = with_secret().await;
    server.set("/text", "value", json!("v")).await.expect(200);
    for (references, status) in [
        (["/secret", "/nowhere", "/text"], 404),
        (["/secret", "/text", "/nowhere"], 400),
        (["/nowhere", "/secret", "/text"], 404),
        (["/text", "/text", "/secret"], 400),
    ] {
        let bindings = references.map(|name| json!({"credentials": {"store-ref": name}}));
        let document = json!({"service": bindings});
        let answer = interpolate(&server, document).await;
        assert_eq!(answer.status, status, "{references:?}: {}", answer.body);
        assert!(!answer.body.contains("nested"));
    }
}

#[tokio::test]
async fn a_document_that_is_not_a_json_object_is_400() {
    let (server, _) = with_secret().await;
    for body in [
        "",
        "[]",
        "null",
        "7",
        "\"text\"",
        "{",
        "{}{}",
        "{\"a\":1,\"a\":2}",
    ] {
        let request = server
            .authorized(Method::POST, "/api/v1/interpolate")
            .body(body);
        let answer = server.send(request).await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.body);
        answer.error();
    }
}

#[tokio::test]
async fn only_post_interpolates() {
    let (server, _) = with_secret().await;
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        let request = server.authorized(method, "/api/v1/interpolate").body("{}");
        let answer = server.send(request).await.expect(404);
        assert_eq!(answer.body, "");
    }
}

#[tokio::test]
async fn repeated_references_count_toward_the_size_limit() {
    let server = keywright_harness::Server::start().await;
    // With the data sealed alongside, a little more than 64,000 bytes.
    let value = json!({"text": "x".repeat(64_000 - r#"{"text":""}"#.len())});
    for name in ["/one", "/other"] {
        server.set(name, "json", value.clone()).await.expect(200);
    }
    for (references, status) in [(261, 200), (263, 413)] {
        let names = ["/one", "/other"].into_iter().cycle().take(references);
        let bindings = names.map(|name| json!({"credentials": {"store-ref": name}}));
        let document = json!({"service": bindings.collect::<Vec<_>>()});
        let answer = interpolate(&server, document).await;
        assert_eq!(answer.status, status, "{references}");
    }
}
