//! Metadata of set versions.

use keywright_harness::Server;
use reqwest::Method;
use serde_json::{Value, json};

/// The maximum number of characters in metadata as JSON text.
const METADATA_CHARACTERS_MAX: usize = 7_000;

async fn set_with(server: &Server, metadata: Value) -> keywright_harness::Answer {
    let body = json!({"name": "/a", "type": "value", "value": "v", "metadata": metadata});
    server.put("/api/v1/data", body).await
}

#[tokio::test]
async fn any_json_metadata_is_kept_with_its_version() {
    let server = Server::start().await;
    for metadata in [
        json!({"owner": "ops", "nested": {"list": [1, null, "ä"]}}),
        json!({}),
        json!([1, 2]),
        json!("text"),
        json!(7),
        json!(false),
    ] {
        let answer = set_with(&server, metadata.clone()).await.expect(200).json();
        assert_eq!(answer["metadata"], metadata);
        assert_eq!(server.versions("/a").await[0]["metadata"], metadata);
    }
}

#[tokio::test]
async fn numbers_keep_all_digits_and_fields_their_order() {
    let server = Server::start().await;
    let metadata = r#"{"z":123456789012345678901234567890,"a":[1.10,-0.0,1e2],"\u00e4":null}"#;
    let body = format!(r#"{{"name":"/a","type":"value","value":"v","metadata":{metadata}}}"#);
    let request = server.authorized(Method::PUT, "/api/v1/data");
    let answer = server.send(request.body(body)).await.expect(200);
    let shown = format!(r#""metadata":{metadata},"#);
    assert!(answer.body.contains(&shown), "{}", answer.body);
    let read = server.get("/api/v1/data?name=/a").await.expect(200);
    assert!(read.body.contains(&shown), "{}", read.body);
}

#[tokio::test]
async fn absent_metadata_is_null_and_never_inherited() {
    let server = Server::start().await;
    set_with(&server, json!({"owner": "ops"})).await.expect(200);
    let next = server
        .set("/a", "value", json!("v"))
        .await
        .expect(200)
        .json();
    assert_eq!(next.get("metadata"), Some(&Value::Null));
    let explicit = set_with(&server, Value::Null).await.expect(200).json();
    assert_eq!(explicit.get("metadata"), Some(&Value::Null));
    assert_eq!(
        server.versions("/a").await[2]["metadata"],
        json!({"owner": "ops"})
    );
}

#[tokio::test]
async fn metadata_over_7000_characters_is_400() {
    let server = Server::start().await;
    let frame_characters = json!({"a": ""}).to_string().len();
    let longest = "ä".repeat(METADATA_CHARACTERS_MAX - frame_characters);
    set_with(&server, json!({"a": longest})).await.expect(200);
    let error = set_with(&server, json!({"a": format!("{longest}x")}))
        .await
        .expect(400)
        .error();
    assert!(error.contains("metadata"), "{error}");
}

#[tokio::test]
async fn a_certificate_has_metadata_too() {
    let server = Server::start().await;
    let certificate = crate::made_elsewhere::authority("root").certificate;
    let metadata = json!({"owner": "ops"});
    let body = json!({
        "name": "/a", "type": "certificate", "value": {"certificate": certificate},
        "metadata": metadata,
    });
    let answer = server.put("/api/v1/data", body).await.expect(200).json();
    assert_eq!(answer["metadata"], metadata);
    assert_eq!(server.versions("/a").await[0]["metadata"], metadata);
}
