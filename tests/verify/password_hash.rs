//! The hash of a user's password is crypt(3) with SHA-512, as OpenSSL computes it too.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Program, Server, is_available};
use serde_json::{Value, json};

/// Asserts that OpenSSL makes the same hash of the same password and salt.
fn assert_is_hashed(user: &Value) {
    let hash = user["password_hash"].as_str().unwrap();
    let salt = hash.split('$').nth(2).unwrap();
    let password = user["password"].as_str().unwrap();
    let arguments = ["passwd", "-6", "-salt", salt, "-stdin"];
    let computed = Program::run("openssl", &arguments, &format!("{password}\n")).expect_success();
    assert_eq!(computed.trim_end(), hash, "{password}");
}

#[tokio::test]
async fn openssl_computes_the_hash_of_users_that_were_set() {
    if !is_available("openssl") {
        return;
    }
    let server = Server::start().await;
    let long = "x".repeat(200);
    for password in [
        "p",
        "correct horse battery staple",
        "pässword 密码 🔑",
        "-n $6$ \\ '\"",
        &long,
    ] {
        let value = json!({"username": "ada", "password": password});
        let answer = server.set("/a", "user", value).await.expect(200).json();
        assert_is_hashed(&answer["value"]);
        assert_is_hashed(&server.versions("/a").await[0]["value"]);
    }
}

#[tokio::test]
async fn openssl_computes_the_hash_of_users_that_were_made() {
    if !is_available("openssl") {
        return;
    }
    let server = Server::start().await;
    for parameters in [json!({}), json!({"length": 200, "include_special": true})] {
        let answer = server
            .generate_in_mode("overwrite", "/a", "user", parameters)
            .await;
        assert_is_hashed(&answer.expect(200).json()["value"]);
        let regenerated = server.regenerate("/a").await.expect(200).json();
        assert_is_hashed(&regenerated["value"]);
    }
}
