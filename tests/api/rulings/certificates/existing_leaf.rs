//! Row 6: the CA that a generate names for an existing leaf.

use keywright_harness::{Answer, Caller, Server};
use serde_json::{Value, json};

const MODES: [&str; 3] = ["no-overwrite", "converge", "overwrite"];

/// Starts a server with a CA and a leaf below it.
async fn server_with_leaf() -> Server {
    let server = Server::start().await;
    let root = json!({"common_name": "root", "is_ca": true, "key_type": "ed25519"});
    server
        .generate("/root", "certificate", root)
        .await
        .expect(200);
    generate(&server, "converge", "/root").await.expect(200);
    server
}

async fn generate(server: &Server, mode: &str, ca: &str) -> Answer {
    server
        .generate_in_mode(mode, "/leaf", "certificate", leaf(ca))
        .await
}

fn leaf(ca: &str) -> Value {
    json!({"common_name": "leaf", "ca": ca, "key_type": "ed25519"})
}

async fn assert_refused(server: &Server, ca: &str, status: u16, words: &str) {
    for mode in MODES {
        let error = generate(server, mode, ca).await.expect(status).error();
        assert!(error.contains(words), "{mode}: {error}");
    }
    assert_eq!(server.versions("/leaf").await.len(), 1);
}

#[tokio::test]
async fn row_06_a_deleted_ca_is_404_in_every_mode() {
    let server = server_with_leaf().await;
    server.delete("/api/v1/data?name=/root").await.expect(204);
    assert_refused(&server, "/root", 404, "certificate authority").await;
}

#[tokio::test]
async fn row_06_a_ca_that_never_existed_is_404_in_every_mode() {
    let server = server_with_leaf().await;
    assert_refused(&server, "/nowhere", 404, "certificate authority").await;
}

#[tokio::test]
async fn row_06_a_ca_of_another_type_is_404_in_every_mode() {
    let server = server_with_leaf().await;
    server.set("/text", "value", json!("v")).await.expect(200);
    assert_refused(&server, "/text", 404, "certificate authority").await;
}

#[tokio::test]
async fn row_06_an_unreadable_ca_is_404_in_every_mode() {
    let server = server_with_leaf().await;
    let caller = server.as_client("writer").await;
    server
        .grant("/leaf", caller.actor(), &["read", "write"])
        .await;
    for mode in MODES {
        let refused = generate_as(&caller, mode).await.expect(404).error();
        assert!(refused.contains("certificate authority"), "{refused}");
    }
    server.grant("/root", caller.actor(), &["read"]).await;
    for mode in MODES {
        generate_as(&caller, mode).await.expect(200);
    }
}

async fn generate_as(caller: &Caller, mode: &str) -> Answer {
    let body = json!({
        "name": "/leaf", "type": "certificate", "mode": mode, "parameters": leaf("/root"),
    });
    caller.post("/api/v1/data", body).await
}

#[tokio::test]
async fn row_06_a_non_ca_certificate_is_400_in_every_mode() {
    let server = server_with_leaf().await;
    let lone = json!({"common_name": "lone", "self_sign": true, "key_type": "ed25519"});
    server
        .generate("/lone", "certificate", lone)
        .await
        .expect(200);
    assert_refused(&server, "/lone", 400, "is not a certificate authority").await;

    let key = server.versions("/lone").await[0]["value"]["private_key"].clone();
    let without_certificate = json!({"private_key": key});
    server
        .set("/key", "certificate", without_certificate)
        .await
        .expect(200);
    assert_refused(&server, "/key", 400, "certificate is absent").await;
}

#[tokio::test]
async fn row_06_a_leaf_is_kept_while_its_ca_exists() {
    let server = server_with_leaf().await;
    for mode in ["no-overwrite", "converge"] {
        generate(&server, mode, "/root").await.expect(200);
    }
    assert_eq!(server.versions("/leaf").await.len(), 1);
    let without_key =
        json!({"certificate": server.versions("/root").await[0]["value"]["certificate"]});
    server
        .set("/root", "certificate", without_key)
        .await
        .expect(200);
    // Nothing is signed, so no key is needed.
    for mode in ["no-overwrite", "converge"] {
        generate(&server, mode, "/root").await.expect(200);
    }
    let error = generate(&server, "overwrite", "/root")
        .await
        .expect(400)
        .error();
    assert!(error.contains("private_key is absent"), "{error}");
}
