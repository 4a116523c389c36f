//! The types rsa and ssh.

use keywright_harness::Server;
use serde_json::{Value, json};

const TYPES: [&str; 2] = ["rsa", "ssh"];

#[tokio::test]
async fn one_field_is_enough_and_the_other_is_null() {
    let server = Server::start().await;
    for credential_type in TYPES {
        for (given, absent) in [("public_key", "private_key"), ("private_key", "public_key")] {
            for empty in [None, Some(json!("")), Some(Value::Null)] {
                let mut value = json!({given: "some key"});
                if let Some(empty) = empty {
                    value[absent] = empty;
                }
                let name = format!("/{credential_type}");
                let answer = server
                    .set(&name, credential_type, value)
                    .await
                    .expect(200)
                    .json();
                assert_eq!(answer["value"][given], "some key");
                assert_eq!(answer["value"].get(absent), Some(&Value::Null));
            }
        }
    }
}

#[tokio::test]
async fn without_any_key_it_is_400() {
    let server = Server::start().await;
    for credential_type in TYPES {
        for value in [
            json!({}),
            json!({"public_key": "", "private_key": ""}),
            json!({"public_key": null, "private_key": ""}),
            json!({"public_key": 1}),
        ] {
            server
                .set("/a", credential_type, value)
                .await
                .expect(400)
                .error();
        }
    }
}

#[tokio::test]
async fn keys_are_kept_without_validation() {
    let server = Server::start().await;
    let value = json!({"public_key": "not a key", "private_key": "-----BEGIN NOTHING-----\n"});
    for credential_type in TYPES {
        let name = format!("/{credential_type}");
        let answer = server
            .set(&name, credential_type, value.clone())
            .await
            .expect(200)
            .json();
        for member in ["public_key", "private_key"] {
            assert_eq!(answer["value"][member], value[member]);
        }
    }
}

#[tokio::test]
async fn the_fingerprint_of_a_set_key_is_null() {
    let server = Server::start().await;
    let key = server
        .generate("/made", "ssh", json!({}))
        .await
        .expect(200)
        .json()["value"]
        .clone();
    for fingerprint in [
        json!("forged"),
        key["public_key_fingerprint"].clone(),
        Value::Null,
    ] {
        let mut value = key.clone();
        value["public_key_fingerprint"] = fingerprint;
        let answer = server.set("/a", "ssh", value).await.expect(200).json();
        assert_eq!(
            answer["value"].get("public_key_fingerprint"),
            Some(&Value::Null)
        );
        assert_eq!(answer["value"]["public_key"], key["public_key"]);
    }
}
