//! `PUT /api/v2/permissions/{permission_id}`.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{UNKNOWN_ID, address, permission, stored};

#[tokio::test]
async fn operations_are_replaced_and_the_id_stays() {
    let server = Server::start().await;
    let id = server.grant("/a/*", "someone", &["read", "write"]).await;
    for (path, given) in [
        ("/a/*", &["delete"][..]),
        ("a/*", &["read_acl", "read", "read"]),
        ("/a/*", &["read", "read_acl"]),
    ] {
        let body = permission(path, "someone", given);
        let replaced = server.put(&address(&id), body).await.expect(200).json();
        let mut sorted = given.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let mut expected = permission("/a/*", "someone", &sorted);
        expected["uuid"] = json!(id);
        assert_eq!(replaced, expected);
        assert_eq!(stored(&server, "/a/*", "someone").await, Some(expected));
    }
}

#[tokio::test]
async fn path_and_actor_cannot_be_changed() {
    let server = Server::start().await;
    let id = server.grant("/a/*", "someone", &["read"]).await;
    let other = server.grant("/b", "other", &["read"]).await;
    let before = server.get(&address(&id)).await.expect(200).json();
    for (path, actor) in [
        ("/a", "someone"),
        ("/A/*", "someone"),
        ("/a/b/*", "someone"),
        ("/*", "someone"),
        ("/a/*", "Someone"),
        ("/a/*", "other"),
        ("/b", "other"),
    ] {
        let body = permission(path, actor, &["write"]);
        let answer = server.put(&address(&id), body).await;
        assert_eq!(answer.status, 400, "{path} {actor}: {answer:?}");
        assert!(!answer.error().is_empty());
    }
    let after = server.get(&address(&id)).await.expect(200).json();
    assert_eq!(after, before);
    let body = permission("/b", "other", &["write"]);
    server.put(&address(&other), body).await.expect(200);
}

#[tokio::test]
async fn a_body_that_breaks_a_rule_is_refused_and_changes_nothing() {
    let server = Server::start().await;
    let id = server.grant("/a", "someone", &["read"]).await;
    let before = server.get(&address(&id)).await.expect(200).body;
    let with = |member: &str, value: Value| {
        let mut body = permission("/a", "someone", &["write"]);
        body[member] = value;
        body
    };
    for (body, status) in [
        (json!({}), 422),
        (json!([]), 400),
        (json!({"operations": ["write"]}), 400),
        (with("path", Value::Null), 400),
        (with("path", json!("/a/")), 400),
        (with("path", json!("/a*")), 400),
        (with("actor", json!("")), 400),
        (with("actor", json!("x".repeat(256))), 400),
        (with("operations", json!([])), 400),
        (with("operations", json!("write")), 422),
        (with("operations", json!(["execute"])), 422),
        (with("uuid", json!(id)), 422),
    ] {
        for id in [id.as_str(), UNKNOWN_ID, "no-id"] {
            let answer = server.put(&address(id), body.clone()).await;
            assert_eq!(answer.status, status, "{id} {body}: {answer:?}");
            assert!(!answer.error().is_empty());
        }
    }
    assert_eq!(server.get(&address(&id)).await.expect(200).body, before);
}

#[tokio::test]
async fn replacing_an_absent_permission_creates_nothing() {
    let server = Server::start().await;
    for id in [UNKNOWN_ID, "no-id"] {
        let body = permission("/a", "someone", &["read"]);
        server.put(&address(id), body).await.expect(404);
    }
    assert_eq!(stored(&server, "/a", "someone").await, None);
}
