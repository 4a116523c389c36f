//! The modes of a generate for an existing credential, and metadata.

use std::collections::BTreeSet;

use keywright_harness::{Response, Server};
use serde_json::{Value, json};

use crate::given;

#[tokio::test]
async fn overwrite_always_adds_a_version() {
    let server = Server::reused().await;
    for (credential_type, parameters) in given::generatable() {
        let name = format!("/{credential_type}");
        let mut ids = BTreeSet::new();
        for _ in 0..2 {
            let response = server
                .generate_in_mode("overwrite", &name, credential_type, parameters.clone())
                .await
                .expect(200);
            ids.insert(response.json()["id"].to_string());
        }
        assert_eq!(ids.len(), 2, "{credential_type}");
        assert_eq!(server.versions(&name).await.len(), 2, "{credential_type}");
    }
}

#[tokio::test]
async fn no_overwrite_creates_absent_and_keeps_existing_credentials() {
    let server = Server::reused().await;
    let generate = async |name: &str, parameters: Value| {
        let response = server.generate_in_mode("no-overwrite", name, "password", parameters);
        response.await
    };
    let made = generate("/a", json!({})).await.expect(200).json();
    let kept = generate("/a", json!({"length": 99})).await.expect(200);
    assert_eq!(kept.json(), made);
    // Parameters are validated even if they are not used.
    generate("/a", json!({"length": 3})).await.expect(400);
    assert_eq!(server.versions("/a").await, [made]);

    let set = server.stored("/b", "password", json!("mine")).await;
    let kept = generate("/b", json!({})).await.expect(200);
    assert_eq!(kept.json(), set);
}

#[tokio::test]
async fn a_mode_other_than_the_three_exact_names_is_400() {
    let server = Server::reused().await;
    for mode in given::each(json!([
        "Overwrite",
        "CONVERGE",
        "no_overwrite",
        "NO-OVERWRITE",
        "nooverwrite",
        "",
        "always",
        1,
        true,
        ["overwrite"]
    ])) {
        let body = json!({"name": "/a", "type": "password", "parameters": {}, "mode": mode});
        server.post("/api/v1/data", body).await.expect(400).error();
    }
    assert!(server.versions("/a").await.is_empty());
}

#[tokio::test]
async fn the_legacy_overwrite_flag_selects_a_mode() {
    let server = Server::reused().await;
    let made = server.generated("/a", "password", json!({})).await;
    for (overwrite, parameters, adds) in [
        (json!(false), json!({"length": 99}), false),
        (json!("false"), json!({"length": 99}), false),
        (json!(true), json!({}), true),
        (json!("true"), json!({}), true),
    ] {
        let before = server.versions("/a").await.len();
        let body = json!({
            "name": "/a", "type": "password", "overwrite": overwrite, "parameters": parameters,
        });
        server.post("/api/v1/data", body).await.expect(200);
        let added = server.versions("/a").await.len() - before;
        assert_eq!(added, usize::from(adds), "{overwrite}");
    }
    assert_eq!(server.versions("/a").await[2], made);
}

#[tokio::test]
async fn the_mode_overrides_the_legacy_flag() {
    let server = Server::reused().await;
    for (mode, overwrite, adds) in [
        ("converge", false, true),
        ("converge", true, true),
        ("overwrite", false, true),
        ("no-overwrite", true, false),
    ] {
        server.stored("/a", "password", json!("mine")).await;
        let before = server.versions("/a").await.len();
        let body = json!({"name": "/a", "type": "password", "mode": mode, "overwrite": overwrite});
        server.post("/api/v1/data", body).await.expect(200);
        let added = server.versions("/a").await.len() - before;
        assert_eq!(added, usize::from(adds), "{mode} {overwrite}");
    }
}

// Metadata of generated versions.

async fn generate_with(server: &Server, mode: &str, metadata: Value) -> Response {
    let body = json!({"name": "/a", "type": "password", "mode": mode, "metadata": metadata});
    server.post("/api/v1/data", body).await
}

#[tokio::test]
async fn a_generate_that_keeps_the_version_keeps_its_metadata() {
    let server = Server::reused().await;
    let response = generate_with(&server, "converge", json!({"n": 1})).await;
    let made = response.expect(200).json();
    for mode in ["converge", "no-overwrite"] {
        let response = generate_with(&server, mode, json!({"n": 2})).await;
        let kept = response.expect(200).json();
        assert_eq!(kept, made, "{mode}");
    }
    assert_eq!(server.versions("/a").await, [made]);
}
