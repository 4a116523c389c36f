//! `DELETE /api/v1/permissions`.

use keywright_harness::Server;

use super::super::{BY_CREDENTIAL, client_with, query, stored};
use crate::given::set_value;

#[tokio::test]
async fn deleting_removes_all_operations_and_has_an_empty_body() {
    let server = Server::start().await;
    set_value(&server, "/a/b", "x").await;
    for (name, asked, actor, asked_actor) in [
        ("/a/b", "/a/b", "someone", "someone"),
        ("/gone", "gone", "some one", "some%20one"),
        ("/c/*", "%2Fc%2F%2A", "uaa-client:x", "uaa-client%3Ax"),
        ("/*", "*", "someone", "someone"),
    ] {
        server.grant(name, actor, &["read", "write"]).await;
        server.grant(name, "other", &["read"]).await;
        let address = format!("{BY_CREDENTIAL}?credential_name={asked}&actor={asked_actor}");
        let answer = server.delete(&address).await.expect(204);
        assert_eq!(answer.body, "");
        server.get(&query(asked, asked_actor)).await.expect(404);
        assert!(stored(&server, asked, "other").await.is_some(), "{name}");
        server.delete(&address).await.expect(404);
    }
}

#[tokio::test]
async fn only_exactly_this_permission_is_deleted() {
    let server = Server::start().await;
    set_value(&server, "/Some/name", "x").await;
    server.grant("/Some/name", "someone", &["read"]).await;
    server.grant("/Some/*", "someone", &["read"]).await;
    for (name, actor) in [
        ("/some/name", "someone"),
        ("/Some/name", "Someone"),
        ("/Some/other", "someone"),
        ("/Some", "someone"),
        ("/*", "someone"),
        ("/Some/name/", "someone"),
        ("/", "someone"),
        ("/%00", "%00"),
    ] {
        let address = format!("{BY_CREDENTIAL}?credential_name={name}&actor={actor}");
        let answer = server.delete(&address).await.expect(404);
        assert!(!answer.error().is_empty(), "{name} {actor}");
    }
    for path in ["/Some/name", "/Some/*"] {
        assert!(stored(&server, path, "someone").await.is_some(), "{path}");
    }
}

#[tokio::test]
async fn name_and_actor_are_both_required_once() {
    let server = Server::start().await;
    for (asked, named) in [
        ("", "credential_name"),
        ("?credential_name=/a", "actor"),
        ("?actor=x", "credential_name"),
        ("?credential_name=&actor=x", "credential_name"),
        ("?credential_name=/a&actor=", "actor"),
        ("?credential_name=/a&actor=x&actor=x", "actor"),
    ] {
        let answer = server
            .delete(&format!("{BY_CREDENTIAL}{asked}"))
            .await
            .expect(400);
        assert!(answer.error().contains(named), "{asked}: {answer:?}");
    }
}

#[tokio::test]
async fn without_write_acl_a_permission_looks_absent() {
    let server = Server::start().await;
    server.grant("/a", "other", &["read"]).await;
    let writer = client_with(&server, "/b", &["write_acl"]).await;
    let address = |name| format!("{BY_CREDENTIAL}?credential_name={name}&actor=other");
    let refused = writer.delete(&address("/a")).await.expect(404);
    let absent = writer.delete(&address("/b")).await.expect(404);
    assert_eq!(refused.body, absent.body);
    assert!(stored(&server, "/a", "other").await.is_some());
}
