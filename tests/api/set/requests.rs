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
        (
            "rsa",
            json!({"public_key": "public", "private_key": "private"}),
        ),
        (
            "ssh",
            json!({"public_key": "public", "private_key": "private"}),
        ),
    ]
}

#[tokio::test]
async fn setting_always_adds_a_version_even_for_the_same_value() {
    let server = Server::reused().await;
    for (credential_type, value) in settable() {
        let name = format!("/{credential_type}");
        let first = given::set(&server, &name, credential_type, value.clone()).await;
        let second = given::set(&server, &name, credential_type, value).await;
        assert_ne!(first["id"], second["id"], "{credential_type}");
        let ids: Vec<Value> = server
            .versions(&name)
            .await
            .iter()
            .map(|version| version["id"].clone())
            .collect();
        assert_eq!(
            ids,
            [second["id"].clone(), first["id"].clone()],
            "{credential_type}"
        );
    }
}

#[tokio::test]
async fn the_response_equals_a_later_get() {
    let server = Server::reused().await;
    for (credential_type, value) in settable() {
        let set = given::set(&server, "/a", credential_type, value).await;
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
    for body in [
        json!({"name": "/a", "value": "v"}),
        json!({"name": "/a", "value": "v", "type": null}),
        json!({"name": "/a", "value": "v", "type": ""}),
        json!({"name": "/a", "value": "v", "type": "secret"}),
        json!({"name": "/a", "value": "v", "type": "values"}),
    ] {
        let response = server.put("/api/v1/data", body.clone()).await;
        let error = response.expect(422).error();
        for known in [
            "value",
            "json",
            "password",
            "user",
            "certificate",
            "rsa",
            "ssh",
        ] {
            error.assert_contains(known);
        }
    }
}

#[tokio::test]
async fn a_missing_or_null_value_is_400_for_every_type() {
    let server = Server::reused().await;
    for credential_type in [
        "value",
        "password",
        "json",
        "user",
        "certificate",
        "rsa",
        "ssh",
    ] {
        for body in [
            json!({"name": "/a", "type": credential_type}),
            json!({"name": "/a", "type": credential_type, "value": null}),
        ] {
            let response = server.put("/api/v1/data", body).await;
            response.expect_error(400, "value");
        }
    }
}

#[tokio::test]
async fn a_value_of_another_json_type_is_400() {
    let server = Server::reused().await;
    for (credential_type, accepted) in settable() {
        let is_object = accepted.is_object();
        let other = if is_object {
            json!("{}")
        } else {
            json!({"a": "text"})
        };
        let scalars = [json!(1), json!(true), json!(false)];
        let arrays = [json!([]), json!(["a"]), json!([{"a": 1}])];
        for value in [&scalars[..], &arrays, &[other]].concat() {
            let response = server.set("/a", credential_type, value).await;
            response.expect(400).error();
        }
    }
    let response = server.set("/a", "certificate", json!("text")).await;
    response.expect(400).error();
    assert!(server.versions("/a").await.is_empty());
}

// Metadata of set versions.

/// The maximum number of characters in metadata as JSON text.
const METADATA_CHARACTERS_MAX: usize = 7_000;

async fn set_with(server: &Server, metadata: Value) -> keywright_harness::Response {
    let body = json!({"name": "/a", "type": "value", "value": "v", "metadata": metadata});
    server.put("/api/v1/data", body).await
}

#[tokio::test]
async fn numbers_keep_all_digits_and_fields_their_order() {
    let server = Server::reused().await;
    let metadata = r#"{"z":123456789012345678901234567890,"a":[1.10,-0.0,1e2],"ä":null}"#;
    let body = format!(r#"{{"name":"/a","type":"value","value":"v","metadata":{metadata}}}"#);
    let request = server.authorized(Method::PUT, "/api/v1/data");
    let response = server.send(request.body(body)).await.expect(200);
    let shown = format!(r#""metadata":{metadata},"#);
    assert!(response.body.contains(&shown), "{}", response.body);
    let read = server.get("/api/v1/data?name=/a").await.expect(200);
    assert!(read.body.contains(&shown), "{}", read.body);
}

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
    response
        .body
        .assert_contains(&format!(r#""value":{value}"#));
    response
        .body
        .assert_contains(&format!(r#""metadata":{metadata}"#));
}

#[tokio::test]
async fn metadata_over_7000_characters_is_400() {
    let server = Server::reused().await;
    let frame_characters = json!({"a": ""}).to_string().len();
    let longest = "ä".repeat(METADATA_CHARACTERS_MAX - frame_characters);
    set_with(&server, json!({"a": longest})).await.expect(200);
    let response = set_with(&server, json!({"a": format!("{longest}x")})).await;
    response.expect_error(400, "metadata");
}
