//! Requests of Spring CredHub.

use keywright_harness::Server;
use serde_json::{Value, json};

use crate::given;

#[tokio::test]
async fn row_01_v1_entry_without_path_applies_to_credential_name() {
    let server = Server::start().await;
    for (name, path, actor) in [
        ("/a/b", "/a/b", "one"),
        ("a/b", "/a/b", "two"),
        ("/a/*", "/a/*", "three"),
    ] {
        let entry = json!({"actor": actor, "operations": ["read", "write"]});
        add(&server, name, entry, 201).await;
        assert_eq!(
            operations(&server, path, actor).await,
            json!(["read", "write"])
        );
    }
    let entry = json!({"path": null, "actor": "four", "operations": ["read"]});
    add(&server, "/a/b", entry, 201).await;
    assert_eq!(operations(&server, "/a/b", "four").await, json!(["read"]));
}

#[tokio::test]
async fn row_01_v1_entry_path_must_equal_credential_name() {
    let server = Server::start().await;
    for (name, path, status) in [
        ("/a/b", json!("/a/b"), 201),
        ("c", json!("/c"), 201),
        ("/d", json!("d"), 201),
        ("*", json!("/*"), 201),
        ("/e", json!(""), 400),
        ("/e", json!("/E"), 400),
        ("/e", json!("/f"), 400),
        ("/e", json!("/e/*"), 400),
        ("/e", json!("/*"), 400),
        ("/e", json!("/e/"), 400),
        ("/e", json!(7), 400),
    ] {
        let actor = format!("on-{name}");
        let entry = json!({"path": path, "actor": actor, "operations": ["read"]});
        add(&server, name, entry, status).await;
    }
    assert_eq!(operations(&server, "/e", "on-/e").await, Value::Null);
}

#[tokio::test]
async fn row_02_missing_transitional_version_clears_the_flag() {
    let server = Server::start().await;
    let parameters = json!({"common_name": "ca", "is_ca": true});
    given::generate_certificate(&server, "/ca", parameters).await;
    let listed = server.get("/api/v1/certificates?name=/ca").await;
    let listed = listed.expect(200).json();
    let certificate = given::id(&listed["certificates"][0]);
    let address = format!("/api/v1/certificates/{certificate}");
    let regenerate = format!("{address}/regenerate");
    let update = format!("{address}/update_transitional_version");
    let new = server.post(&regenerate, json!({"set_as_transitional": true}));
    let new = given::id(&new.await.expect(200).json());

    for unknown in ["8ffd2a43-0ba6-44cf-8b55-e2e9ba2cb9e9", "", "x"] {
        let body = json!({"version": unknown});
        server.put(&update, body).await.expect(400);
        assert_eq!(
            transitional(&server).await,
            std::slice::from_ref(&new),
            "{unknown}"
        );
    }
    let active = server.put(&update, json!({})).await.expect(200).json();
    assert_eq!(active.as_array().map(Vec::len), Some(1));
    assert_eq!(given::id(&active[0]), new);
    assert_eq!(transitional(&server).await, [""; 0]);
    server.put(&update, json!({})).await.expect(200);
}

/// Adds one permission on a credential, through the older interface.
async fn add(server: &Server, name: &str, entry: Value, status: u16) {
    let body = json!({"credential_name": name, "permissions": [entry]});
    let answer = server.post("/api/v1/permissions", body.clone()).await;
    assert_eq!(answer.status, status, "{body}: {answer:?}");
    if status == 400 {
        assert!(answer.error().contains("path"), "{answer:?}");
    }
}

/// Returns the operations of an actor on a path, or null if there is no permission.
async fn operations(server: &Server, path: &str, actor: &str) -> Value {
    let query = format!("/api/v2/permissions?path={path}&actor={actor}");
    let found = server.get(&query).await.json();
    found.get("operations").cloned().unwrap_or_default()
}

/// Returns the ids of the transitional versions of `/ca`.
async fn transitional(server: &Server) -> Vec<String> {
    let versions = given::versions(server, "/ca").await;
    let flagged = versions
        .iter()
        .filter(|version| version["transitional"] == true);
    flagged.map(given::id).collect()
}
