//! Reading and deleting a credential by name, and reading a version by id.

use keywright_harness::{QUICK_KEY, Server};
use serde_json::json;

use crate::given;

// GET /api/v1/data?name=

#[tokio::test]
async fn the_newest_versions_up_to_the_requested_number_are_returned() {
    let server = Server::reused().await;
    let mut all = Vec::new();
    for number in 0..19 {
        all.insert(0, server.set_value("/a", &number.to_string()).await);
    }
    server.set_value("/b", "another").await;
    assert_eq!(server.versions("/a").await, all);
    let read = async |query: &str| server.get(&format!("/api/v1/data?name=/a&{query}")).await;
    for limit in [1, 2, 16, 17, 18, 19, 20, 2_147_483_647] {
        let newest = read(&format!("versions={limit}")).await.expect(200);
        assert_eq!(given::versions_in(&newest), all[..limit.min(19)], "{limit}");
    }
    for unlimited in ["current=false", &format!("versions={}", i64::MAX)] {
        assert_eq!(given::versions_in(&read(unlimited).await.expect(200)), all);
    }
    read("versions=0").await.expect(404);
}

#[tokio::test]
async fn the_current_version_is_the_newest_for_every_type() {
    let server = Server::reused().await;
    let certificate = json!({"common_name": "c", "self_sign": true, "key_type": QUICK_KEY});
    for (credential_type, parameters) in [
        ("password", json!({})),
        ("user", json!({})),
        ("ssh", json!({})),
        ("certificate", certificate),
    ] {
        let name = format!("/{credential_type}");
        let old = server.generated(&name, credential_type, parameters).await;
        let new = server.regenerated(&name).await;
        assert_ne!(old["id"], new["id"]);
        let current = server.current_versions(&name).await;
        assert_eq!(current.len(), 1, "{credential_type}");
        assert_eq!(current[0]["id"], new["id"], "{credential_type}");
    }
}

#[tokio::test]
async fn an_absent_name_is_404() {
    let server = Server::reused().await;
    server.set_value("/a/b", "v").await;
    for name in ["/a", "/a/b/c", "/b", "/a/bb", "/a_b", "a%25", "a/_"] {
        for suffix in ["", "&current=true", "&versions=1"] {
            let path = format!("/api/v1/data?name={name}{suffix}");
            server.get(&path).await.expect(404).error();
        }
    }
}

// GET /api/v1/data/{id}

#[tokio::test]
async fn replaced_versions_are_still_read_by_id() {
    let server = Server::reused().await;
    let mut versions = Vec::new();
    for text in ["one", "two", "three"] {
        versions.push(server.set_value("/a", text).await);
    }
    for version in versions {
        let path = format!("/api/v1/data/{}", given::id(&version));
        assert_eq!(server.get_json(&path).await, version);
    }
}

#[tokio::test]
async fn an_unknown_or_malformed_id_is_404() {
    let server = Server::reused().await;
    let version = server.set_value("/a", "v").await;
    let id = given::id(&version);
    let unknown = "8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9 00000000-0000-0000-0000-000000000000";
    let malformed = format!(
        "a 1 %2Fa no-uuid %00 {} {id}0 {}",
        &id[..35],
        "f".repeat(2_000)
    );
    for id in unknown.split(' ').chain(malformed.split(' ')) {
        let response = server.get(&format!("/api/v1/data/{id}")).await;
        response.expect(404).error();
    }
}

// DELETE /api/v1/data?name=

#[tokio::test]
async fn deleting_removes_all_versions() {
    let server = Server::reused().await;
    let mut ids = Vec::new();
    for text in ["one", "two", "three"] {
        ids.push(given::id(&server.set_value("/a", text).await));
    }
    server.delete("/api/v1/data?name=/a").await.expect(204);
    server.get("/api/v1/data?name=/a").await.expect(404);
    let response = server.get("/api/v1/data?name=/a&current=true").await;
    response.expect(404);
    for id in ids {
        server.get(&format!("/api/v1/data/{id}")).await.expect(404);
    }
    assert!(server.found_names("path=").await.is_empty());
}

#[tokio::test]
async fn deleting_an_absent_credential_is_404() {
    let server = Server::reused().await;
    server.set_value("/a/b", "v").await;
    for name in ["/absent", "/a", "/a/", "/a/b/c", "/a/_", "/a/%25", "%2A"] {
        let response = server.delete(&format!("/api/v1/data?name={name}")).await;
        response.expect(404).error();
    }
    server.delete("/api/v1/data?name=/a/b").await.expect(204);
    server.delete("/api/v1/data?name=/a/b").await.expect(404);
}

#[tokio::test]
async fn no_other_credential_is_deleted() {
    let server = Server::reused().await;
    for name in ["/a", "/a/b", "/ab", "/b/a"] {
        server.set_value(name, "v").await;
    }
    server.delete("/api/v1/data?name=/a").await.expect(204);
    let actual = server.found_names("path=").await;
    assert_eq!(actual, ["/b/a", "/ab", "/a/b"]);
}

#[tokio::test]
async fn an_issuer_can_be_deleted_and_its_certificates_stay() {
    let server = Server::reused().await;
    server.generate_authority("/root", None).await;
    let leaf = server.generate_leaf("/leaf", "/root").await;
    server.delete("/api/v1/data?name=/root").await.expect(204);
    assert_eq!(server.versions("/leaf").await[0]["value"], leaf["value"]);
    let body = json!({"name": "/leaf"});
    let regenerate = server.post("/api/v1/regenerate", body).await;
    assert_eq!(regenerate.status, 404, "{regenerate:?}");
}

#[tokio::test]
async fn a_delete_by_path_or_name_like_is_400() {
    let server = Server::reused().await;
    server.set_value("/a/b", "v").await;
    for query in ["path=/a", "name-like=a", "path="] {
        let response = server.delete(&format!("/api/v1/data?{query}")).await;
        response.expect(400);
    }
    assert_eq!(server.versions("/a/b").await.len(), 1);
}
