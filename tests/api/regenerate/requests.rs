//! The request, independent of the type.

use keywright_harness::Server;
use serde_json::{Value, json};

#[tokio::test]
async fn a_version_is_added_with_a_new_value() {
    let server = Server::start().await;
    for (credential_type, parameters) in [
        ("password", json!({})),
        ("user", json!({})),
        ("rsa", json!({})),
        ("ssh", json!({})),
        ("certificate", json!({"common_name": "root", "is_ca": true})),
    ] {
        let name = format!("/{credential_type}");
        let made = server
            .generate(&name, credential_type, parameters)
            .await
            .expect(200)
            .json();
        let regenerated = server.regenerate(&name).await.expect(200).json();
        assert_eq!(regenerated["type"], credential_type);
        assert_eq!(regenerated["name"], *name);
        assert_ne!(regenerated["id"], made["id"], "{credential_type}");
        assert_ne!(regenerated["value"], made["value"], "{credential_type}");
        let versions = server.versions(&name).await;
        assert_eq!(versions.len(), 2);
        assert_eq!(versions[0]["value"], regenerated["value"]);
        assert_eq!(versions[1]["value"], made["value"]);
    }
}

#[tokio::test]
async fn the_name_needs_no_slash_and_no_casing() {
    let server = Server::start().await;
    server
        .generate("/Path/A", "password", json!({}))
        .await
        .expect(200);
    for name in ["/Path/A", "Path/A", "path/a", "/PATH/A"] {
        let answer = server.regenerate(name).await.expect(200).json();
        assert_eq!(answer["name"], "/Path/A");
    }
}

#[tokio::test]
async fn an_unknown_name_is_404() {
    let server = Server::start().await;
    for name in ["/nowhere", "nowhere", "/not a name"] {
        server.regenerate(name).await.expect(404).error();
    }
}

#[tokio::test]
async fn a_missing_name_is_400() {
    let server = Server::start().await;
    for body in [
        json!({}),
        json!({"name": null}),
        json!({"name": ""}),
        json!({"name": 7}),
    ] {
        let error = server
            .post("/api/v1/regenerate", body)
            .await
            .expect(400)
            .error();
        assert!(error.contains("name"), "{error}");
    }
}

#[tokio::test]
async fn other_fields_are_422_and_named() {
    let server = Server::start().await;
    server
        .generate("/a", "password", json!({}))
        .await
        .expect(200);
    for field in [
        "type",
        "mode",
        "parameters",
        "regenerate",
        "set_as_transitional",
        "colour",
    ] {
        let mut body = json!({"name": "/a"});
        body[field] = json!(true);
        let error = server
            .post("/api/v1/regenerate", body)
            .await
            .expect(422)
            .error();
        assert!(error.contains(field), "{error}");
    }
    assert_eq!(server.versions("/a").await.len(), 1);
}

#[tokio::test]
async fn value_and_json_cannot_be_regenerated() {
    let server = Server::start().await;
    server.set("/value", "value", json!("v")).await.expect(200);
    server.set("/json", "json", json!({})).await.expect(200);
    for name in ["/value", "/json"] {
        server.regenerate(name).await.expect(400).error();
        assert_eq!(server.versions(name).await.len(), 1);
    }
}

#[tokio::test]
async fn metadata_comes_from_the_request_and_is_never_inherited() {
    let server = Server::start().await;
    let body = json!({"name": "/a", "type": "password", "metadata": {"n": 1}});
    server.post("/api/v1/data", body).await.expect(200);
    let without = server.regenerate("/a").await.expect(200).json();
    assert_eq!(without.get("metadata"), Some(&Value::Null));
    let body = json!({"name": "/a", "metadata": {"n": 2}});
    let with = server
        .post("/api/v1/regenerate", body)
        .await
        .expect(200)
        .json();
    assert_eq!(with["metadata"], json!({"n": 2}));
}

#[tokio::test]
async fn metadata_over_7000_characters_is_413() {
    let server = Server::start().await;
    server
        .generate("/a", "password", json!({}))
        .await
        .expect(200);
    let frame_characters = json!({"a": ""}).to_string().len();
    let longest = "ä".repeat(7_000 - frame_characters);
    let body = json!({"name": "/a", "metadata": {"a": longest}});
    server.post("/api/v1/regenerate", body).await.expect(200);
    let body = json!({"name": "/a", "metadata": {"a": format!("{longest}x")}});
    server
        .post("/api/v1/regenerate", body)
        .await
        .expect(413)
        .error();
}
