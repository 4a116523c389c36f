//! GET /api/v1/key-usage

use keywright_harness::{Options, Server};
use reqwest::Method;
use serde_json::{Value, json};

use crate::given;

/// Test keys in base64, each in an environment variable of the server.
const KEYS: [(&str, &str); 3] = [
    ("KEY_A", "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="),
    ("KEY_B", "QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI="),
    ("KEY_C", "Q0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0M="),
];

/// A server that encrypts with the first of these keys, and only decrypts with the others.
fn with_keys(names: &[&str]) -> Options {
    let section = |(position, name): (usize, &&str)| {
        let is_active = position == 0;
        format!(
            "[[encryption.keys]]\nprovider = \"raw\"\nenvironment = \"{name}\"\nactive = {is_active}\n"
        )
    };
    let sections: String = names.iter().enumerate().map(section).collect();
    let sections = format!("{sections}[encryption.rotation]\nenabled = false\n");
    KEYS.iter().fold(
        Options::default().encryption(&sections).without_plugins(),
        |options, (name, key)| options.environment(name, key),
    )
}

async fn usage(server: &Server) -> Value {
    server.get("/api/v1/key-usage").await.expect(200).json()
}

fn expected(active: u64, inactive: u64, unknown: u64) -> Value {
    json!({"active_key": active, "inactive_keys": inactive, "unknown_keys": unknown})
}

#[tokio::test]
async fn an_empty_store_uses_no_key() {
    let server = Server::start().await;
    let answer = server.get("/api/v1/key-usage").await.expect(200);
    assert_eq!(
        answer.body,
        r#"{"active_key":0,"inactive_keys":0,"unknown_keys":0}"#
    );
}

#[tokio::test]
async fn every_version_of_every_type_counts_until_it_is_deleted() {
    let server = Server::start().await;
    given::set_value(&server, "/v", "1").await;
    given::set_value(&server, "/v", "2").await;
    given::generate_certificate(&server, "/c", json!({"self_sign": true})).await;
    // A value without a private key is encrypted too.
    given::set(&server, "/r", "rsa", json!({"public_key": "p"})).await;
    given::generate(&server, "/u", "user", json!({})).await;
    assert_eq!(usage(&server).await, expected(5, 0, 0));
    server.delete("/api/v1/data?name=/v").await.expect(204);
    assert_eq!(usage(&server).await, expected(3, 0, 0));
}

#[tokio::test]
async fn versions_count_by_the_current_state_of_their_key() {
    let server = Server::start_with(&with_keys(&["KEY_A"])).await;
    for text in ["1", "2", "3"] {
        given::set_value(&server, "/a", text).await;
    }
    assert_eq!(usage(&server).await, expected(3, 0, 0));

    // A new key is active; the old one is still configured.
    let server = Server::start_in(server.stop().await, &with_keys(&["KEY_B", "KEY_A"])).await;
    assert_eq!(usage(&server).await, expected(0, 3, 0));
    given::set_value(&server, "/a", "4").await;
    given::set_value(&server, "/b", "1").await;
    assert_eq!(usage(&server).await, expected(2, 3, 0));

    // The old key is no longer configured, and a never active one is.
    let server = Server::start_in(server.stop().await, &with_keys(&["KEY_B", "KEY_C"])).await;
    assert_eq!(usage(&server).await, expected(2, 0, 3));

    // A third key is active, and both others count as inactive.
    let all = with_keys(&["KEY_C", "KEY_A", "KEY_B"]);
    let server = Server::start_in(server.stop().await, &all).await;
    assert_eq!(usage(&server).await, expected(0, 5, 0));
    given::set_value(&server, "/c", "1").await;
    assert_eq!(usage(&server).await, expected(1, 5, 0));
}

#[tokio::test]
async fn it_needs_a_token_and_has_no_other_method() {
    let server = Server::start().await;
    let path = "/api/v1/key-usage";
    let answer = server.send(server.request(Method::GET, path)).await;
    assert_eq!(answer.expect(401).error(), "access_denied");
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
        let answer = server.send(server.authorized(method, path)).await;
        assert_eq!(answer.expect(404).body, "");
    }
}
