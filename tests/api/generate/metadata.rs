//! Metadata of generated versions.

use keywright_harness::{Answer, Server};
use serde_json::{Value, json};

async fn generate_with(server: &Server, mode: &str, metadata: Value) -> Answer {
    let body = json!({"name": "/a", "type": "password", "mode": mode, "metadata": metadata});
    server.post("/api/v1/data", body).await
}

#[tokio::test]
async fn metadata_belongs_to_one_generated_version() {
    let server = Server::start().await;
    let metadata = json!({"owner": "ops", "list": [1, null]});
    let made = generate_with(&server, "overwrite", metadata.clone())
        .await
        .expect(200)
        .json();
    assert_eq!(made["metadata"], metadata);
    let next = server
        .generate_in_mode("overwrite", "/a", "password", json!({}))
        .await;
    assert_eq!(next.expect(200).json().get("metadata"), Some(&Value::Null));
    assert_eq!(server.versions("/a").await[1]["metadata"], metadata);
}

#[tokio::test]
async fn a_generate_that_keeps_the_version_keeps_its_metadata() {
    let server = Server::start().await;
    let made = generate_with(&server, "converge", json!({"n": 1}))
        .await
        .expect(200)
        .json();
    for mode in ["converge", "no-overwrite"] {
        let kept = generate_with(&server, mode, json!({"n": 2}))
            .await
            .expect(200)
            .json();
        assert_eq!(kept, made, "{mode}");
    }
    assert_eq!(server.versions("/a").await, [made]);
}

#[tokio::test]
async fn metadata_over_7000_characters_is_400() {
    let server = Server::start().await;
    let frame_characters = json!({"a": ""}).to_string().len();
    let longest = "ä".repeat(7_000 - frame_characters);
    generate_with(&server, "overwrite", json!({"a": longest}))
        .await
        .expect(200);
    let too_long = json!({"a": format!("{longest}x")});
    let error = generate_with(&server, "overwrite", too_long)
        .await
        .expect(400)
        .error();
    assert!(error.contains("metadata"), "{error}");
}
