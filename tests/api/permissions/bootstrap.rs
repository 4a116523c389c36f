//! Configured permissions: granted at every start, and never revoked.

use keywright_harness::{Options, Server};
use serde_json::{Value, json};

use super::{address, operations, permission, stored};

fn configured(path: &str, actors: &[&str], given: &[&str]) -> Options {
    Options::default().extra(&format!(
        "[[authorization.permissions]]\npath = \"{path}\"\nactors = {actors:?}\noperations = {given:?}\n"
    ))
}

#[tokio::test]
async fn configured_permissions_are_granted_to_each_actor() {
    let options = configured(
        "a/*",
        &["one", "uaa-client:two"],
        &["write", "read", "read"],
    );
    let server = Server::start_with(&options).await;
    for actor in ["one", "uaa-client:two"] {
        let given = operations(&server, "/a/*", actor).await;
        assert_eq!(given, json!(["read", "write"]));
    }
    let two = server.as_client("two").await;
    let body = json!({"name": "/a/b", "type": "value", "value": "x"});
    two.put("/api/v1/data", body).await.expect(200);
}

#[tokio::test]
async fn each_start_adds_missing_operations_and_removes_none() {
    let options = configured("/a", &["one"], &["read", "delete"]);
    let server = Server::start_with(&options).await;
    let id = stored(&server, "/a", "one").await.unwrap()["uuid"].clone();
    let one = address(id.as_str().unwrap());
    let body = permission("/a", "one", &["write"]);
    server.put(&one, body).await.expect(200);
    let server = Server::start_in(server.stop().await, &options).await;
    let expected = json!({
        "uuid": id, "path": "/a", "actor": "one", "operations": ["read", "write", "delete"],
    });
    assert_eq!(stored(&server, "/a", "one").await, Some(expected.clone()));
    let server = Server::start_in(server.stop().await, &Options::default()).await;
    assert_eq!(stored(&server, "/a", "one").await, Some(expected));
    server.delete(&one).await.expect(200);
    let server = Server::start_in(server.stop().await, &Options::default()).await;
    assert_eq!(stored(&server, "/a", "one").await, None);
    let server = Server::start_in(server.stop().await, &options).await;
    let given = operations(&server, "/a", "one").await;
    assert_eq!(given, json!(["read", "delete"]));
}

#[tokio::test]
async fn an_invalid_configured_permission_is_refused_at_start() {
    for (path, actors, given, named) in [
        ("/a*", &["one"][..], &["read"][..], "asterisk"),
        ("/a", &[], &["read"], "actor"),
        ("/a", &["one"], &[], "operation"),
        ("/a", &["one"], &["execute"], "execute"),
    ] {
        let refusal = Server::refusal(&configured(path, actors, given));
        assert!(refusal.contains("authorization.permissions"), "{refusal}");
        assert!(refusal.contains(named), "{refusal}");
    }
}

#[tokio::test]
async fn a_configured_permission_acts_like_an_added_one() {
    let server = Server::start_with(&configured("/a", &["one"], &["read"])).await;
    let body = permission("/a", "one", &["read"]);
    let answer = server.post(super::PERMISSIONS, body).await.expect(409);
    assert!(!answer.error().is_empty());
    let explained = "/api/v2/permissions/explain?path=/a&actor=one&operation=read";
    let explained = server.get(explained).await.expect(200).json();
    assert_eq!(explained["allowed"], Value::Bool(true));
}

#[tokio::test]
async fn an_impossible_actor_is_logged_as_a_warning() {
    let server = Server::start_with(&configured("/a", &["one", "uaa-user:two"], &["read"])).await;
    let log = server.log();
    let warnings: Vec<_> = log
        .lines()
        .filter(|line| line.contains("which no caller can be"))
        .collect();
    assert_eq!(warnings.len(), 1, "{log}");
    assert!(
        warnings[0].contains("one") && warnings[0].contains("\"WARN\""),
        "{log}"
    );
}
