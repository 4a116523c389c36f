//! Limits on the size of values.

use keywright_harness::Server;
use serde_json::json;

/// The maximum size of a value in bytes.
const VALUE_BYTES_MAX: usize = 65_536;

/// The maximum size of a user's password in bytes: hashing a longer one takes too long.
const USER_PASSWORD_BYTES_MAX: usize = 4_096;

/// The maximum number of characters in a public key or a username.
const LONG_MEMBER_CHARACTERS_MAX: usize = 7_000;

#[tokio::test]
async fn a_text_over_64_kib_is_413() {
    let server = Server::start().await;
    for credential_type in ["value", "password"] {
        let name = format!("/{credential_type}");
        let longest = "x".repeat(VALUE_BYTES_MAX);
        let answer = server
            .set(&name, credential_type, json!(longest))
            .await
            .expect(200)
            .json();
        assert_eq!(answer["value"], longest);
        for too_long in [format!("{longest}x"), "x".repeat(2 * VALUE_BYTES_MAX)] {
            server
                .set(&name, credential_type, json!(too_long))
                .await
                .expect(413)
                .error();
        }
        let two_byte_characters = "ä".repeat(VALUE_BYTES_MAX / 2 + 1);
        server
            .set(&name, credential_type, json!(two_byte_characters))
            .await
            .expect(413)
            .error();
        assert_eq!(server.versions(&name).await.len(), 1);
    }
}

#[tokio::test]
async fn an_object_over_64_kib_is_413() {
    let server = Server::start().await;
    let frame_bytes = json!({"a": ""}).to_string().len();
    let object = |bytes: usize| json!({"a": "x".repeat(bytes - frame_bytes)});
    server
        .set("/a", "json", object(VALUE_BYTES_MAX))
        .await
        .expect(200);
    server
        .set("/a", "json", object(VALUE_BYTES_MAX + 1))
        .await
        .expect(413)
        .error();
}

#[tokio::test]
async fn a_private_key_larger_than_a_value_is_413() {
    let server = Server::start().await;
    for credential_type in ["rsa", "ssh"] {
        for bytes in [VALUE_BYTES_MAX, 3 * VALUE_BYTES_MAX] {
            let value = json!({"private_key": "x".repeat(bytes)});
            server
                .set("/a", credential_type, value)
                .await
                .expect(413)
                .error();
        }
    }
}

#[tokio::test]
async fn a_public_key_or_username_over_7000_characters_is_413() {
    let server = Server::start().await;
    let longest = "ä".repeat(LONG_MEMBER_CHARACTERS_MAX);
    let too_long = format!("{longest}x");
    for (credential_type, member) in [
        ("rsa", "public_key"),
        ("ssh", "public_key"),
        ("user", "username"),
    ] {
        let name = format!("/{credential_type}");
        let value = |text: &str| match credential_type {
            "user" => json!({member: text, "password": "p"}),
            _ => json!({member: text}),
        };
        server
            .set(&name, credential_type, value(&longest))
            .await
            .expect(200);
        server
            .set(&name, credential_type, value(&too_long))
            .await
            .expect(413)
            .error();
        assert_eq!(server.versions(&name).await.len(), 1);
    }
}

#[tokio::test]
async fn a_users_password_over_4096_bytes_is_400() {
    let server = Server::start().await;
    let longest = "ä".repeat(USER_PASSWORD_BYTES_MAX / 2);
    let user = server
        .set("/a", "user", json!({"password": longest}))
        .await
        .expect(200)
        .json();
    assert_eq!(user["value"]["password"], longest);
    let too_long = json!({"password": format!("{longest}p")});
    let refused = server.set("/a", "user", too_long).await.expect(400).error();
    assert!(refused.contains("password"), "{refused}");
    assert_eq!(server.versions("/a").await.len(), 1);
}
