//! How much is taken, and one past it.

use keywright_harness::{Options, Server};
use reqwest::Method;
use serde_json::{Value, json};

use crate::given;

#[tokio::test]
async fn a_value_of_64_kib_is_stored_and_one_byte_more_is_413() {
    let server = Server::start().await;
    let longest = "v".repeat(VALUE_BYTES_MAX);
    let longest_of_two_byte_characters = "ä".repeat(VALUE_BYTES_MAX / 2);
    let object_frame = json!({"k": ""}).to_string().len();
    let longest_member = "v".repeat(VALUE_BYTES_MAX - object_frame);
    for (credential_type, value, too_large) in [
        ("value", json!(longest), json!(format!("{longest}v"))),
        ("password", json!(longest), json!(format!("{longest}v"))),
        (
            "value",
            json!(longest_of_two_byte_characters),
            json!(format!("{longest_of_two_byte_characters}v")),
        ),
        (
            "json",
            json!({"k": longest_member}),
            json!({"k": format!("{longest_member}v")}),
        ),
    ] {
        let name = format!("/{credential_type}");
        let version = given::set(&server, &name, credential_type, value.clone()).await;
        let read = server
            .get(&format!("/api/v1/data/{}", given::id(&version)))
            .await
            .expect(200);
        assert!(
            read.json()["value"] == value,
            "{credential_type} was not stored as it was sent"
        );
        expect_status_of_set(&server, credential_type, too_large, 413).await;
    }
}

#[tokio::test]
async fn the_members_of_a_value_count_together() {
    let server = Server::start().await;
    let long = "v".repeat(60_000);
    let too_long = "v".repeat(VALUE_BYTES_MAX);
    for credential_type in ["rsa", "ssh"] {
        let with = |private_key: &str| json!({"private_key": private_key});
        expect_status_of_set(&server, credential_type, with(&long), 200).await;
        expect_status_of_set(&server, credential_type, with(&too_long), 413).await;
    }
    let half = "v".repeat(VALUE_BYTES_MAX / 2);
    expect_status_of_set(&server, "json", json!({"a": half, "b": half}), 413).await;
}

#[tokio::test]
async fn a_users_password_has_at_most_4096_bytes_because_hashing_it_takes_long() {
    let server = Server::start().await;
    let longest = "ä".repeat(USER_PASSWORD_BYTES_MAX / 2);
    expect_status_of_set(&server, "user", json!({"password": longest}), 200).await;
    let too_long = format!("{longest}p");
    expect_status_of_set(&server, "user", json!({"password": too_long}), 400).await;
}

#[tokio::test]
async fn what_is_too_large_is_not_stored() {
    let server = Server::start().await;
    let too_large = json!("v".repeat(VALUE_BYTES_MAX + 1));
    expect_status_of_set(&server, "value", too_large, 413).await;
    assert!(given::found(&server, "path=").await.is_empty());
}

#[tokio::test]
async fn a_public_key_or_username_has_at_most_7000_characters() {
    let server = Server::start().await;
    let longest = "ä".repeat(LONG_MEMBER_CHARACTERS_MAX);
    let too_long = format!("{longest}x");
    for (credential_type, value) in [
        ("rsa", json!({"private_key": "k"})),
        ("ssh", json!({"private_key": "k"})),
        ("user", json!({"password": "p"})),
    ] {
        let member = if credential_type == "user" {
            "username"
        } else {
            "public_key"
        };
        let with = |text: &str| {
            let mut value = value.clone();
            value[member] = json!(text);
            value
        };
        expect_status_of_set(&server, credential_type, with(&longest), 200).await;
        expect_status_of_set(&server, credential_type, with(&too_long), 413).await;
    }
}

#[tokio::test]
async fn metadata_has_at_most_7000_characters_on_set() {
    let server = Server::start().await;
    for (metadata, status) in [(longest_metadata(), 200), (too_long_metadata(), 400)] {
        let body = json!({"name": "/a", "type": "value", "value": "v", "metadata": metadata});
        server.put("/api/v1/data", body).await.expect(status);
    }
}

#[tokio::test]
async fn metadata_has_at_most_7000_characters_on_generate() {
    let server = Server::start().await;
    for (metadata, status) in [(longest_metadata(), 200), (too_long_metadata(), 400)] {
        let body = json!({"name": "/a", "type": "password", "metadata": metadata});
        server.post("/api/v1/data", body).await.expect(status);
    }
}

#[tokio::test]
async fn metadata_has_at_most_7000_characters_on_regenerate() {
    let server = Server::start().await;
    given::generate(&server, "/a", "password", json!({})).await;
    for (metadata, status) in [(longest_metadata(), 200), (too_long_metadata(), 413)] {
        let body = json!({"name": "/a", "metadata": metadata});
        server.post("/api/v1/regenerate", body).await.expect(status);
        let body = json!({"name": "/a", "regenerate": true, "metadata": metadata});
        server.post("/api/v1/data", body).await.expect(status);
    }
    assert_eq!(given::versions(&server, "/a").await.len(), 3);
}

#[tokio::test]
async fn a_request_body_of_one_mib_is_taken_and_one_byte_more_is_413() {
    let server = Server::start().await;
    expect_body_limit(&server, 1024 * 1024).await;
}

#[tokio::test]
async fn the_limit_of_request_bodies_is_a_setting() {
    let options = Options::default().server_settings("request_bytes_max = 2048");
    let server = Server::start_with(&options).await;
    expect_body_limit(&server, 2048).await;
}

#[tokio::test]
async fn a_body_far_past_the_limit_is_413_on_every_endpoint() {
    let server = Server::start().await;
    let body = format!("{{{}}}", " ".repeat(8 * 1024 * 1024));
    for (method, path) in [
        (Method::PUT, "/api/v1/data"),
        (Method::POST, "/api/v1/data"),
        (Method::POST, "/api/v1/regenerate"),
        (Method::POST, "/api/v1/interpolate"),
    ] {
        let request = server.authorized(method.clone(), path).body(body.clone());
        let answer = server.send(request).await;
        assert_eq!(answer.status, 413, "{method} {path}: {answer:?}");
        assert!(!answer.error().is_empty());
    }
    server.get("/health").await.expect(200);
}

#[tokio::test]
async fn a_large_body_without_a_token_is_401() {
    let server = Server::start().await;
    let request = server
        .request(Method::PUT, "/api/v1/data")
        .body(" ".repeat(2 * 1024 * 1024));
    assert_eq!(
        server.send(request).await.expect(401).error(),
        "access_denied"
    );
}

async fn expect_status_of_set(server: &Server, credential_type: &str, value: Value, status: u16) {
    let name = format!("/{credential_type}");
    let body = json!({"name": name, "type": credential_type, "value": value});
    let answer = server.put("/api/v1/data", body).await;
    assert_eq!(answer.status, status, "{credential_type}");
    if status != 200 {
        assert!(!answer.error().is_empty());
    }
}

async fn expect_body_limit(server: &Server, bytes_max: usize) {
    for (bytes, status) in [(bytes_max, 200), (bytes_max + 1, 413)] {
        let body = format!("{{{}}}", " ".repeat(bytes - 2));
        let request = server
            .authorized(Method::POST, "/api/v1/interpolate")
            .body(body);
        let answer = server.send(request).await;
        assert_eq!(answer.status, status, "{bytes} bytes: {answer:?}");
    }
}

fn longest_metadata() -> Value {
    let frame = json!({"k": ""}).to_string().len();
    json!({"k": "ä".repeat(METADATA_CHARACTERS_MAX - frame)})
}

fn too_long_metadata() -> Value {
    let frame = json!({"k": ""}).to_string().len();
    json!({"k": "ä".repeat(METADATA_CHARACTERS_MAX - frame + 1)})
}

const VALUE_BYTES_MAX: usize = 65_536;
const USER_PASSWORD_BYTES_MAX: usize = 4_096;
const LONG_MEMBER_CHARACTERS_MAX: usize = 7_000;
const METADATA_CHARACTERS_MAX: usize = 7_000;
