//! DELETE /api/v1/data?name=

use keywright_harness::Server;
use serde_json::json;

use crate::given;

#[tokio::test]
async fn a_delete_responds_204_with_an_empty_body() {
    let server = Server::start().await;
    given::set_value(&server, "/a", "v").await;
    let answer = server.delete("/api/v1/data?name=/a").await.expect(204);
    assert_eq!(answer.body, "");
}

#[tokio::test]
async fn deleting_removes_all_versions() {
    let server = Server::start().await;
    let mut ids = Vec::new();
    for text in ["one", "two", "three"] {
        ids.push(given::id(&given::set_value(&server, "/a", text).await));
    }
    server.delete("/api/v1/data?name=/a").await.expect(204);
    server.get("/api/v1/data?name=/a").await.expect(404);
    server
        .get("/api/v1/data?name=/a&current=true")
        .await
        .expect(404);
    for id in ids {
        server.get(&format!("/api/v1/data/{id}")).await.expect(404);
    }
    assert!(given::found(&server, "path=").await.is_empty());
}

#[tokio::test]
async fn deleting_an_absent_credential_is_404() {
    let server = Server::start().await;
    given::set_value(&server, "/a/b", "v").await;
    for name in ["/absent", "/a", "/a/", "/a/b/c", "/a/_", "/a/%25", "%2A"] {
        let answer = server.delete(&format!("/api/v1/data?name={name}")).await;
        assert_eq!(answer.status, 404, "{name}: {answer:?}");
        assert!(!answer.error().is_empty());
    }
    server.delete("/api/v1/data?name=/a/b").await.expect(204);
    server.delete("/api/v1/data?name=/a/b").await.expect(404);
}

#[tokio::test]
async fn no_other_credential_is_deleted() {
    let server = Server::start().await;
    for name in ["/a", "/a/b", "/ab", "/b/a"] {
        given::set_value(&server, name, "v").await;
    }
    server.delete("/api/v1/data?name=/a").await.expect(204);
    assert_eq!(
        given::found(&server, "path=").await,
        ["/b/a", "/ab", "/a/b"]
    );
}

#[tokio::test]
async fn an_issuer_can_be_deleted_and_its_certificates_stay() {
    let server = Server::start().await;
    let root = json!({"common_name": "root", "is_ca": true});
    given::generate(&server, "/root", "certificate", root).await;
    let leaf = json!({"common_name": "leaf", "ca": "/root"});
    let leaf = given::generate(&server, "/leaf", "certificate", leaf).await;
    server.delete("/api/v1/data?name=/root").await.expect(204);
    assert_eq!(
        given::versions(&server, "/leaf").await[0]["value"],
        leaf["value"]
    );
    let regenerate = server
        .post("/api/v1/regenerate", json!({"name": "/leaf"}))
        .await;
    assert_eq!(regenerate.status, 404, "{regenerate:?}");
}

#[tokio::test]
async fn the_other_searches_do_not_delete() {
    let server = Server::start().await;
    given::set_value(&server, "/a/b", "v").await;
    for query in ["path=/a", "name-like=a", "path="] {
        server
            .delete(&format!("/api/v1/data?{query}"))
            .await
            .expect(400);
    }
    assert_eq!(given::versions(&server, "/a/b").await.len(), 1);
}
