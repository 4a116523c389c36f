//! The type user.

use keywright_harness::Server;
use serde_json::{Value, json};

#[tokio::test]
async fn a_user_gets_the_hash_of_its_password() {
    let server = Server::start().await;
    let value = json!({"username": "ada", "password": "pässword"});
    let user = server.set("/a", "user", value).await.expect(200).json()["value"].clone();
    assert_eq!(user["username"], "ada");
    assert_eq!(user["password"], "pässword");
    let hash = user["password_hash"].as_str().unwrap();
    let parts: Vec<&str> = hash.split('$').collect();
    assert_eq!((parts[0], parts[1]), ("", "6"));
    assert_eq!((parts[2].len(), parts[3].len()), (8, 86));
    assert_eq!(user.as_object().unwrap().len(), 3);
}

#[tokio::test]
async fn the_hash_is_stable_across_reads_and_differs_by_version() {
    let server = Server::start().await;
    let value = json!({"username": "ada", "password": "p"});
    let first = server
        .set("/a", "user", value.clone())
        .await
        .expect(200)
        .json();
    let second = server.set("/a", "user", value).await.expect(200).json();
    assert_ne!(
        first["value"]["password_hash"],
        second["value"]["password_hash"]
    );
    for _ in 0..3 {
        let versions = server.versions("/a").await;
        assert_eq!(versions[0]["value"], second["value"]);
        assert_eq!(versions[1]["value"], first["value"]);
    }
}

#[tokio::test]
async fn a_user_without_a_name_has_a_null_name() {
    let server = Server::start().await;
    for value in [
        json!({"password": "p"}),
        json!({"password": "p", "username": null}),
        json!({"password": "p", "username": ""}),
    ] {
        let answer = server.set("/a", "user", value).await.expect(200).json();
        assert_eq!(answer["value"].get("username"), Some(&Value::Null));
    }
}

#[tokio::test]
async fn a_sent_hash_is_ignored() {
    let server = Server::start().await;
    for sent in [json!("$6$saltsalt$forged"), json!(""), json!(null)] {
        let value = json!({"username": "ada", "password": "p", "password_hash": sent});
        let answer = server.set("/a", "user", value).await.expect(200).json();
        let hash = answer["value"]["password_hash"].as_str().unwrap();
        assert!(
            hash.starts_with("$6$") && !hash.contains("forged"),
            "{hash}"
        );
    }
}

#[tokio::test]
async fn a_missing_or_empty_password_is_400_and_named() {
    let server = Server::start().await;
    for value in [
        json!({}),
        json!({"username": "ada"}),
        json!({"username": "ada", "password": ""}),
        json!({"username": "ada", "password": null}),
    ] {
        let error = server.set("/a", "user", value).await.expect(400).error();
        assert!(error.contains("password"), "{error}");
    }
}

#[tokio::test]
async fn a_name_that_is_not_text_is_400() {
    let server = Server::start().await;
    for username in [json!(1), json!(["ada"]), json!({"first": "ada"})] {
        let value = json!({"username": username, "password": "p"});
        let error = server.set("/a", "user", value).await.expect(400).error();
        assert!(error.contains("username"), "{error}");
    }
}
