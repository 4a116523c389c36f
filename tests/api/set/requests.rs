//! Properties of requests that are independent of the type, and metadata.

use keywright_harness::{Server, Text};
use reqwest::Method;
use serde_json::{Value, json};

use crate::given;

/// Returns a valid value for each type except certificate.
fn settable() -> [(&'static str, Value); 6] {
    [
        ("value", json!("v")),
        ("password", json!("p")),
        ("json", json!({"a": 1})),
        ("user", json!({"username": "ada", "password": "p"})),
        ("rsa", json!({"public_key": "k", "private_key": "p"})),
        ("ssh", json!({"public_key": "k", "private_key": "p"})),
    ]
}

#[tokio::test]
async fn setting_always_adds_a_version_even_for_the_same_value() {
    let server = Server::reused().await;
    for (credential_type, value) in settable() {
        let name = format!("/{credential_type}");
        let first = server.stored(&name, credential_type, value.clone()).await;
        let second = server.stored(&name, credential_type, value).await;
        assert_ne!(first["id"], second["id"], "{credential_type}");
        let ids = server.versions(&name).await.into_iter();
        let ids: Vec<_> = ids.map(|mut version| version["id"].take()).collect();
        let expected = [&second["id"], &first["id"]];
        let actual = ids.iter().collect::<Vec<_>>();
        assert_eq!(actual, expected, "{credential_type}");
    }
}

#[tokio::test]
async fn the_response_equals_a_later_get() {
    let server = Server::reused().await;
    for (credential_type, value) in settable() {
        let set = server.stored("/a", credential_type, value).await;
        assert_eq!(set["type"], credential_type);
        assert_eq!(set["name"], "/a");
        assert_eq!(set["metadata"], Value::Null);
        let id = set["id"].as_str().unwrap();
        let read = server.get_json(&format!("/api/v1/data/{id}")).await;
        assert_eq!(read, set, "{credential_type}");
        server.delete("/api/v1/data?name=/a").await.expect(204);
    }
}

#[tokio::test]
async fn an_unknown_or_missing_type_is_422_and_lists_the_types() {
    let server = Server::reused().await;
    for body in given::each(json!([
        {"name": "/a", "value": "v"},
        {"name": "/a", "value": "v", "type": null},
        {"name": "/a", "value": "v", "type": ""},
        {"name": "/a", "value": "v", "type": "secret"},
        {"name": "/a", "value": "v", "type": "values"},
    ])) {
        let error = server.put("/api/v1/data", body).await.expect(422).error();
        for known in given::TYPES {
            error.assert_contains(known);
        }
    }
}

#[tokio::test]
async fn a_missing_or_null_value_is_400_for_every_type() {
    let server = Server::reused().await;
    for credential_type in given::TYPES {
        for body in given::each(json!([
            {"name": "/a", "type": credential_type},
            {"name": "/a", "type": credential_type, "value": null},
        ])) {
            let response = server.put("/api/v1/data", body).await;
            response.expect_error(400, "value");
        }
    }
}

#[tokio::test]
async fn a_value_of_another_json_type_is_400() {
    let server = Server::reused().await;
    for (credential_type, accepted) in settable().into_iter().chain([("certificate", json!({}))]) {
        let mut others = given::each(json!([1, true, false, [], ["a"], [{"a": 1}], "{}"]));
        if !accepted.is_object() {
            others[6] = json!({"a": "text"});
        }
        for value in others {
            let response = server.set("/a", credential_type, value).await;
            response.expect(400).error();
        }
    }
    assert!(server.versions("/a").await.is_empty());
}

// Metadata.

/// The maximum number of characters in metadata as JSON text.
const METADATA_CHARACTERS_MAX: usize = 7_000;

/// Clients may escape characters that need no escape.
#[tokio::test]
async fn sizes_are_measured_without_escapes() {
    let server = Server::reused().await;
    let [value, metadata] =
        [30_000, 2_000].map(|count| format!(r#"{{"a":"{}"}}"#, "<".repeat(count)));
    let escaped = |json: &str| json.replace('<', r"\u003c");
    let body = format!(
        r#"{{"name":"/a","type":"json","value":{},"metadata":{}}}"#,
        escaped(&value),
        escaped(&metadata)
    );
    let request = server.authorized(Method::PUT, "/api/v1/data");
    let response = server.send(request.body(body)).await.expect(200);
    response.assert_contains(&format!(r#""value":{value}"#));
    response.assert_contains(&format!(r#""metadata":{metadata}"#));
}

#[tokio::test]
async fn metadata_over_7000_characters_is_refused() {
    let server = Server::reused().await;
    let frame_characters = json!({"a": ""}).to_string().len();
    let longest = "ä".repeat(METADATA_CHARACTERS_MAX - frame_characters);
    let set = json!({"name": "/value", "type": "value", "value": "v"});
    let generate = json!({"name": "/a", "type": "password", "mode": "overwrite"});
    let regenerate = json!({"name": "/a"});
    let through_data = json!({"name": "/a", "regenerate": true});
    for (method, path, mut body, status) in [
        (Method::PUT, "/api/v1/data", set, 400),
        (Method::POST, "/api/v1/data", generate, 400),
        (Method::POST, "/api/v1/regenerate", regenerate, 413),
        (Method::POST, "/api/v1/data", through_data, 413),
    ] {
        body["metadata"] = json!({"a": longest});
        let request = server.authorized(method.clone(), path);
        server
            .send(request.body(body.to_string()))
            .await
            .expect(200);
        body["metadata"] = json!({"a": format!("{longest}x")});
        let request = server.authorized(method, path).body(body.to_string());
        server.send(request).await.expect_error(status, "metadata");
    }
}
