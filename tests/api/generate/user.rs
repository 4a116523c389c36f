//! The name and the hash of a user.

#![expect(
    clippy::indexing_slicing,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::Server;
use serde_json::{Value, json};

async fn made(server: &Server, body: Value) -> Value {
    let mut body = body;
    body["name"] = json!("/a");
    body["type"] = json!("user");
    body["mode"] = json!("overwrite");
    server.post("/api/v1/data", body).await.expect(200).json()["value"].clone()
}

#[tokio::test]
async fn without_a_name_20_letters_are_generated() {
    let server = Server::start().await;
    let mut names = std::collections::BTreeSet::new();
    for body in [
        json!({}),
        json!({"parameters": {"username": ""}}),
        json!({"parameters": {"username": null}}),
        json!({"value": {"username": ""}}),
        json!({"value": {"username": null}}),
        json!({"value": {}}),
        json!({"value": null}),
        json!({"parameters": {"username": ""}, "value": {"username": ""}}),
    ] {
        let user = made(&server, body).await;
        let name = user["username"].as_str().unwrap().to_owned();
        assert_eq!(name.len(), 20);
        assert!(
            name.chars().all(|letter| letter.is_ascii_alphabetic()),
            "{name}"
        );
        names.insert(name);
    }
    assert_eq!(names.len(), 8);
}

#[tokio::test]
async fn a_requested_name_is_used_and_that_in_the_value_wins() {
    let server = Server::start().await;
    for (body, name) in [
        (json!({"parameters": {"username": "ada"}}), "ada"),
        (json!({"value": {"username": "grace"}}), "grace"),
        (
            json!({"parameters": {"username": "ada"}, "value": {"username": "grace"}}),
            "grace",
        ),
        (
            json!({"parameters": {"username": "ada"}, "value": {"username": ""}}),
            "ada",
        ),
        (
            json!({"parameters": {"username": "Ada Lovelace, 密码"}}),
            "Ada Lovelace, 密码",
        ),
    ] {
        assert_eq!(made(&server, body).await["username"], name);
    }
}

#[tokio::test]
async fn a_name_that_is_not_text_is_400() {
    let server = Server::start().await;
    for body in [
        json!({"name": "/a", "type": "user", "parameters": {"username": [7]}}),
        json!({"name": "/a", "type": "user", "value": {"username": ["ada"]}}),
        json!({"name": "/a", "type": "user", "value": "ada"}),
    ] {
        server.post("/api/v1/data", body).await.expect(400).error();
    }
}

#[tokio::test]
async fn the_hash_is_stable_across_reads_and_differs_by_version() {
    let server = Server::start().await;
    let first = made(&server, json!({})).await;
    let second = made(&server, json!({})).await;
    assert_ne!(first["password_hash"], second["password_hash"]);
    for user in [&first, &second] {
        let hash = user["password_hash"].as_str().unwrap();
        let parts: Vec<&str> = hash.split('$').collect();
        assert_eq!(
            (parts[1], parts[2].len(), parts[3].len()),
            ("6", 8, 86),
            "{hash}"
        );
    }
    for _ in 0..3 {
        let versions = server.versions("/a").await;
        assert_eq!(versions[0]["value"], second);
        assert_eq!(versions[1]["value"], first);
    }
}

#[tokio::test]
async fn a_name_over_7000_characters_is_413() {
    let server = Server::start().await;
    let longest = "x".repeat(7_000);
    let user = made(&server, json!({"parameters": {"username": longest}})).await;
    assert_eq!(user["username"], longest);
    let parameters = json!({"username": format!("{longest}x")});
    server
        .generate("/b", "user", parameters)
        .await
        .expect(413)
        .error();
}
