//! Regenerating through the data endpoint: `{"name": …, "regenerate": true}`.

use keywright_harness::Server;
use serde_json::{Value, json};

#[tokio::test]
async fn it_works_like_the_regenerate_endpoint() {
    let server = Server::start().await;
    let parameters = json!({"length": 12, "include_special": true});
    let made = server
        .generate("/Path/A", "password", parameters)
        .await
        .expect(200)
        .json();
    for name in ["/Path/A", "path/a"] {
        for regenerate in [json!(true), json!("true")] {
            let body = json!({"name": name, "regenerate": regenerate});
            let answer = server.post("/api/v1/data", body).await.expect(200).json();
            assert_eq!(answer["name"], "/Path/A");
            assert_eq!(answer["value"].as_str().unwrap().len(), 12);
            assert_ne!(answer["id"], made["id"]);
            assert_eq!(server.versions("/path/a").await[0], answer);
        }
    }
    assert_eq!(server.versions("/path/a").await.len(), 5);
}

#[tokio::test]
async fn metadata_comes_from_the_request_only() {
    let server = Server::start().await;
    let body = json!({"name": "/a", "type": "password", "metadata": {"n": 1}});
    server.post("/api/v1/data", body).await.expect(200);
    let body = json!({"name": "/a", "regenerate": true});
    let without = server.post("/api/v1/data", body).await.expect(200).json();
    assert_eq!(without.get("metadata"), Some(&Value::Null));
    let body = json!({"name": "/a", "regenerate": true, "metadata": {"n": 2}});
    let with = server.post("/api/v1/data", body).await.expect(200).json();
    assert_eq!(with["metadata"], json!({"n": 2}));
}

#[tokio::test]
async fn a_type_next_to_regenerate_is_ignored() {
    let server = Server::start().await;
    server
        .generate("/a", "password", json!({}))
        .await
        .expect(200);
    for credential_type in ["password", "certificate", "nonsense"] {
        let body = json!({"name": "/a", "regenerate": true, "type": credential_type});
        let answer = server.post("/api/v1/data", body).await.expect(200).json();
        assert_eq!(answer["type"], "password");
    }
}

#[tokio::test]
async fn other_fields_are_400_and_named() {
    let server = Server::start().await;
    server
        .generate("/a", "password", json!({}))
        .await
        .expect(200);
    for field in ["mode", "overwrite", "parameters", "value", "colour"] {
        let mut body = json!({"name": "/a", "regenerate": true});
        body[field] = json!("overwrite");
        let error = server.post("/api/v1/data", body).await.expect(400).error();
        assert!(error.contains(field), "{error}");
    }
}

#[tokio::test]
async fn false_is_an_unknown_field() {
    let server = Server::start().await;
    for regenerate in [json!(false), json!("false")] {
        let body = json!({"name": "/a", "type": "password", "regenerate": regenerate});
        let error = server.post("/api/v1/data", body).await.expect(400).error();
        assert!(error.contains("regenerate"), "{error}");
    }
}

#[tokio::test]
async fn an_unknown_name_is_404_and_a_malformed_one_400() {
    let server = Server::start().await;
    let body = json!({"name": "/nowhere", "regenerate": true});
    server.post("/api/v1/data", body).await.expect(404).error();
    for name in [
        json!(""),
        json!("/"),
        json!("a//b"),
        json!("a b"),
        Value::Null,
    ] {
        let body = json!({"name": name, "regenerate": true});
        server.post("/api/v1/data", body).await.expect(400).error();
    }
    server
        .post("/api/v1/data", json!({"regenerate": true}))
        .await
        .expect(400)
        .error();
}
