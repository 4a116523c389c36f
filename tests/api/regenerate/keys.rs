//! RSA and SSH keys.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::Server;
use serde_json::{Value, json};

use crate::keys::public_key_bits;

async fn regenerated(server: &Server, name: &str) -> Value {
    server.regenerate(name).await.expect(200).json()["value"].clone()
}

/// The length of the base64 part of an SSH public key, which grows with the key.
fn blob_length(key: &Value) -> usize {
    key["public_key"]
        .as_str()
        .unwrap()
        .split(' ')
        .nth(1)
        .unwrap()
        .len()
}

#[tokio::test]
async fn generated_and_set_keys_keep_their_length() {
    let server = Server::start().await;
    for key_length in [2048, 3072] {
        let name = format!("/{key_length}");
        let parameters = json!({"key_length": key_length});
        let made = server
            .generate(&name, "rsa", parameters)
            .await
            .expect(200)
            .json();
        let key = regenerated(&server, &name).await;
        assert_eq!(
            public_key_bits(key["public_key"].as_str().unwrap()),
            key_length
        );

        let name = format!("/set/{key_length}");
        server
            .set(&name, "rsa", made["value"].clone())
            .await
            .expect(200);
        let key = regenerated(&server, &name).await;
        assert_eq!(
            public_key_bits(key["public_key"].as_str().unwrap()),
            key_length
        );
    }
}

#[tokio::test]
async fn an_ssh_key_keeps_its_length_and_its_comment() {
    let server = Server::start().await;
    for (name, parameters, comment) in [
        (
            "/a",
            json!({"key_length": 3072, "ssh_comment": "ada on host"}),
            Some("ada on host"),
        ),
        ("/b", json!({"key_length": 2048}), None),
    ] {
        let made = server
            .generate(name, "ssh", parameters)
            .await
            .expect(200)
            .json();
        let set_name = format!("/set{name}");
        server
            .set(&set_name, "ssh", made["value"].clone())
            .await
            .expect(200);
        for name in [name, &set_name] {
            let key = regenerated(&server, name).await;
            assert_eq!(blob_length(&key), blob_length(&made["value"]));
            let line = key["public_key"].as_str().unwrap();
            assert_eq!(line.splitn(3, ' ').nth(2), comment);
            assert!(key["public_key_fingerprint"].is_string());
        }
    }
}

#[tokio::test]
async fn an_unreadable_key_is_regenerated_with_defaults() {
    let server = Server::start().await;
    for (credential_type, value) in [
        ("rsa", json!({"private_key": "private"})),
        ("rsa", json!({"public_key": "no key"})),
        ("ssh", json!({"private_key": "private"})),
        ("ssh", json!({"public_key": "no key"})),
    ] {
        let name = format!("/{credential_type}");
        server.set(&name, credential_type, value).await.expect(200);
        let key = regenerated(&server, &name).await;
        if credential_type == "rsa" {
            assert_eq!(public_key_bits(key["public_key"].as_str().unwrap()), 2048);
        } else {
            assert_eq!(blob_length(&key), 372);
        }
    }
}
