//! A type of a third party's plugin works like the shipped ones.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use base64::{Engine, prelude::BASE64_STANDARD};
use keywright_harness::{Options, Server, component};
use serde_json::{Value, json};

async fn server() -> Server {
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\"]",
        component("wireguard").display()
    );
    Server::start_with(&Options::default().generator("wireguard", &section)).await
}

async fn made(server: &Server, parameters: Value) -> Value {
    server
        .generate("/a", "wireguard", parameters)
        .await
        .expect(200)
        .json()
}

/// The 32 bytes of a key.
fn key(version: &Value, member: &str) -> Vec<u8> {
    let key = BASE64_STANDARD
        .decode(version["value"][member].as_str().unwrap())
        .unwrap();
    assert_eq!(key.len(), 32);
    key
}

#[tokio::test]
async fn keys_are_generated_and_converge() {
    let server = server().await;
    let first = made(&server, json!({})).await;
    assert_eq!(first["type"], "wireguard");
    assert_ne!(key(&first, "private_key"), key(&first, "public_key"));
    assert_eq!(first["value"].get("preshared_key"), None);
    for same in [json!({}), json!({"preshared_key": false})] {
        assert_eq!(made(&server, same).await["id"], first["id"]);
    }
    let other = made(&server, json!({"preshared_key": true})).await;
    assert_ne!(other["id"], first["id"]);
    key(&other, "preshared_key");
    let body = server
        .generate_in_mode("overwrite", "/a", "wireguard", json!({}))
        .await;
    assert_ne!(body.expect(200).json()["value"], first["value"]);
    let kept = server
        .generate_in_mode("no-overwrite", "/a", "wireguard", json!({}))
        .await;
    kept.expect(200);
    assert_eq!(server.versions("/a").await.len(), 3);
}

#[tokio::test]
async fn value_is_regenerated_with_its_parameters() {
    let server = server().await;
    let first = made(&server, json!({"preshared_key": true})).await;
    let second = server.regenerate("/a").await.expect(200).json();
    for member in ["private_key", "public_key", "preshared_key"] {
        assert_ne!(key(&second, member), key(&first, member), "{member}");
    }
    let body = json!({"name": "a", "regenerate": true});
    server.post("/api/v1/data", body).await.expect(200);
    assert_eq!(server.versions("/a").await.len(), 3);
}

#[tokio::test]
async fn invalid_parameters_are_400_and_named() {
    let server = server().await;
    for (parameters, named) in [
        (json!({"length": 5}), "length"),
        (json!({"preshared_key": "maybe"}), "preshared_key"),
    ] {
        let error = server
            .generate("/a", "wireguard", parameters)
            .await
            .expect(400)
            .error();
        assert!(error.contains(named), "{error}");
    }
}

#[tokio::test]
async fn set_values_are_validated_against_the_schema() {
    let server = server().await;
    let value = made(&server, json!({})).await["value"].clone();
    let set = server
        .set("/b", "wireguard", value.clone())
        .await
        .expect(200)
        .json();
    assert_eq!(set["value"]["private_key"], value["private_key"]);
    for wrong in [json!("key"), json!({"private_key": "short"}), json!({})] {
        server
            .set("/b", "wireguard", wrong)
            .await
            .expect(400)
            .error();
    }
    let mut unknown = value;
    unknown["endpoint"] = json!("10.0.0.1");
    let error = server
        .set("/b", "wireguard", unknown)
        .await
        .expect(422)
        .error();
    assert!(error.contains("endpoint"), "{error}");
}

#[tokio::test]
async fn value_is_read_found_and_deleted() {
    let server = server().await;
    let version = made(&server, json!({})).await;
    let id = version["id"].as_str().unwrap();
    assert_eq!(
        server
            .get(&format!("/api/v1/data/{id}"))
            .await
            .expect(200)
            .json(),
        version
    );
    let current = server
        .get("/api/v1/data?name=/a&current=true")
        .await
        .expect(200)
        .json();
    assert_eq!(current["data"], json!([version]));
    let found = server.get("/api/v1/data?path=/").await.expect(200).json();
    assert_eq!(found["credentials"][0]["name"], "/a");
    server
        .generate("/a", "password", json!({}))
        .await
        .expect(400)
        .error();
    server.delete("/api/v1/data?name=/a").await.expect(204);
    assert!(server.versions("/a").await.is_empty());
}

#[tokio::test]
async fn type_is_listed() {
    let server = server().await;
    for (answer, status) in [
        (server.set("/a", "nonsense", json!("v")).await, 422),
        (server.generate("/a", "nonsense", json!({})).await, 400),
    ] {
        assert_eq!(answer.status, status);
        for known in ["wireguard", "certificate", "value"] {
            assert!(answer.error().contains(known), "{}", answer.body);
        }
    }
}
