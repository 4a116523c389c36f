//! GET /api/v1/data/{id}

use keywright_harness::Server;
use serde_json::json;

use crate::given;

#[tokio::test]
async fn each_version_is_read_by_its_id_even_replaced_ones() {
    let server = Server::start().await;
    let mut versions = Vec::new();
    for text in ["one", "two", "three"] {
        versions.push(given::set_value(&server, "/a", text).await);
    }
    for version in versions {
        let answer = server
            .get(&format!("/api/v1/data/{}", given::id(&version)))
            .await;
        assert_eq!(answer.expect(200).json(), version);
    }
}

#[tokio::test]
async fn a_version_reads_the_same_by_id_and_by_name() {
    let server = Server::start().await;
    let certificate = json!({"common_name": "c", "self_sign": true});
    for (credential_type, parameters) in [
        ("password", json!({})),
        ("user", json!({})),
        ("rsa", json!({})),
        ("ssh", json!({})),
        ("certificate", certificate),
    ] {
        let name = format!("/{credential_type}");
        let made = given::generate(&server, &name, credential_type, parameters).await;
        let by_id = server
            .get(&format!("/api/v1/data/{}", given::id(&made)))
            .await
            .expect(200);
        assert_eq!(
            given::versions(&server, &name).await,
            [by_id.json()],
            "{credential_type}"
        );
        assert_eq!(by_id.json()["value"], made["value"], "{credential_type}");
    }
}

#[tokio::test]
async fn an_unknown_or_malformed_id_is_404() {
    let server = Server::start().await;
    let version = given::set_value(&server, "/a", "v").await;
    let id = given::id(&version);
    for unknown in [
        "8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9",
        "00000000-0000-0000-0000-000000000000",
        "a",
        "1",
        "%2Fa",
        "no-uuid",
        "%00",
        &id[..35],
        &format!("{id}0"),
        &"f".repeat(2_000),
    ] {
        let answer = server.get(&format!("/api/v1/data/{unknown}")).await;
        assert_eq!(answer.status, 404, "{unknown}: {answer:?}");
        assert!(!answer.error().is_empty());
    }
}

#[tokio::test]
async fn an_id_is_404_once_its_credential_is_deleted() {
    let server = Server::start().await;
    let old = given::set_value(&server, "/a", "old").await;
    server.delete("/api/v1/data?name=/a").await.expect(204);
    let new = given::set_value(&server, "/a", "new").await;
    server
        .get(&format!("/api/v1/data/{}", given::id(&old)))
        .await
        .expect(404);
    server
        .get(&format!("/api/v1/data/{}", given::id(&new)))
        .await
        .expect(200);
}
