//! Passwords and users.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::Server;
use serde_json::{Value, json};

#[tokio::test]
async fn a_password_keeps_its_length_and_its_character_sets() {
    let server = Server::start().await;
    let parameters = json!({
        "length": 42, "exclude_upper": true, "exclude_number": true, "include_special": true,
    });
    server
        .generate("/a", "password", parameters)
        .await
        .expect(200);
    for _ in 0..3 {
        let password = server.regenerate("/a").await.expect(200).json()["value"].clone();
        let password = password.as_str().unwrap();
        assert_eq!(password.len(), 42);
        assert!(password.contains(|character: char| character.is_ascii_punctuation()));
        assert!(password.contains(|character: char| character.is_ascii_lowercase()));
        let excluded = |character: char| character.is_ascii_uppercase() || character.is_numeric();
        assert!(!password.contains(excluded), "{password}");
    }
}

#[tokio::test]
async fn a_user_keeps_its_name_and_gets_a_new_password_and_hash() {
    let server = Server::start().await;
    for (name, parameters) in [
        ("/named", json!({"username": "ada", "length": 12})),
        ("/unnamed", json!({"length": 12})),
    ] {
        let made = server
            .generate(name, "user", parameters)
            .await
            .expect(200)
            .json();
        let mut previous = made["value"].clone();
        for _ in 0..2 {
            let user = server.regenerate(name).await.expect(200).json()["value"].clone();
            assert_eq!(user["username"], made["value"]["username"]);
            assert_eq!(user["password"].as_str().unwrap().len(), 12);
            for member in ["password", "password_hash"] {
                assert_ne!(user[member], previous[member], "{member}");
            }
            assert_ne!(salt(&user), salt(&previous));
            previous = user;
        }
    }
}

/// The salt in the hash of a user's password.
fn salt(user: &Value) -> &str {
    let hash = user["password_hash"].as_str().unwrap();
    hash.split('$').nth(2).unwrap()
}

#[tokio::test]
async fn set_values_cannot_be_regenerated() {
    let server = Server::start().await;
    server
        .set("/password", "password", json!("p"))
        .await
        .expect(200);
    server
        .set("/user", "user", json!({"username": "ada", "password": "p"}))
        .await
        .expect(200);
    for name in ["/password", "/user"] {
        server.regenerate(name).await.expect(400).error();
        assert_eq!(server.versions(name).await.len(), 1);
    }
}

#[tokio::test]
async fn only_the_newest_version_decides() {
    let server = Server::start().await;
    server
        .generate("/a", "password", json!({"length": 12}))
        .await
        .expect(200);
    server.set("/a", "password", json!("p")).await.expect(200);
    server.regenerate("/a").await.expect(400).error();
    server
        .generate("/a", "password", json!({"length": 13}))
        .await
        .expect(200);
    let regenerated = server.regenerate("/a").await.expect(200).json();
    assert_eq!(regenerated["value"].as_str().unwrap().len(), 13);
}
