//! Ids, paths and methods of requests below a certificate's path.

use keywright_harness::Server;
use serde_json::json;

use super::{Certificate, ids, requests};
use crate::{audit::events, given};

// Unknown ids of certificates, paths and methods.

#[tokio::test]
async fn an_unknown_certificate_id_is_404() {
    let server = Server::reused().await;
    let certificate = Certificate::set_times(&server, "/a", 2).await;
    let before = certificate.versions().await;
    let version = ids(&before)[0].clone();
    let password = server.stored("/password", "password", json!("p")).await;
    let event = events(&server).pop().unwrap();
    let password_id = event["resource_id"].as_str().unwrap();
    for id in [
        password_id,
        "8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9",
        "00000000-0000-0000-0000-000000000000",
        "no-uuid",
        "%20",
        "%00",
        "%FF",
        "%2Fa",
        &"f".repeat(2_000),
        &version[..35],
        &version,
    ] {
        for (method, path, body) in requests(id, &version) {
            let response = given::send(&server, method, &path, &body).await;
            response.expect(404).error();
        }
    }
    assert_eq!(certificate.versions().await, before);
    assert_eq!(server.versions("/password").await, [password]);
}

#[tokio::test]
async fn a_recreated_credential_has_another_id() {
    let server = Server::reused().await;
    let old = Certificate::set_times(&server, "/a", 1).await;
    server.delete("/api/v1/data?name=/a").await.expect(204);
    let new = Certificate::set_times(&server, "/a", 2).await;
    assert_ne!(old.id, new.id);
    let before = new.versions().await;
    for (method, path, body) in requests(&old.id, &ids(&before)[0]) {
        let response = given::send(&server, method, &path, &body).await;
        response.expect(404);
    }
    assert_eq!(new.versions().await, before);
}
