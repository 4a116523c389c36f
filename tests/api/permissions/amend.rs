//! `PATCH /api/v2/permissions/{permission_id}`.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{UNKNOWN_ID, address, permission, stored};

#[tokio::test]
async fn operations_are_replaced_and_the_rest_stays() {
    let server = Server::start().await;
    let id = server.grant("/a/*", "someone", &["read", "write"]).await;
    let caller = server.as_client("developer").await;
    for (given, kept) in [
        (json!(["delete"]), &["delete"][..]),
        (json!(["write_acl", "read", "read"]), &["read", "write_acl"]),
    ] {
        let body = json!({"operations": given});
        let amended = caller.patch(&address(&id), body).await.expect(200).json();
        let mut expected = permission("/a/*", "someone", kept);
        expected["uuid"] = json!(id);
        assert_eq!(amended, expected);
        assert_eq!(stored(&server, "/a/*", "someone").await, Some(expected));
    }
}

#[tokio::test]
async fn only_operations_are_accepted_and_required() {
    let server = Server::start().await;
    let id = server.grant("/a", "someone", &["read"]).await;
    let before = server.get(&address(&id)).await.expect(200).body;
    let caller = server.as_client("developer").await;
    for (body, status) in [
        (json!({}), 422),
        (json!([]), 400),
        (json!({"operations": Value::Null}), 422),
        (json!({"operations": []}), 400),
        (json!({"operations": "read"}), 422),
        (json!({"operations": [1]}), 422),
        (json!({"operations": vec!["read"; 101]}), 400),
        (json!({"operations": ["execute"]}), 422),
        (json!({"operations": ["read", "Write"]}), 422),
        (json!({"operations": ["write"], "path": "/a"}), 422),
        (json!({"operations": ["write"], "actor": "someone"}), 422),
        (json!({"operations": ["write"], "uuid": id}), 422),
    ] {
        for id in [id.as_str(), UNKNOWN_ID, "no-id"] {
            let answer = caller.patch(&address(id), body.clone()).await;
            assert_eq!(answer.status, status, "{id} {body}: {answer:?}");
            assert!(!answer.error().is_empty());
        }
    }
    assert_eq!(server.get(&address(&id)).await.expect(200).body, before);
}

#[tokio::test]
async fn changing_an_absent_permission_is_404() {
    let server = Server::start().await;
    let caller = server.as_client("developer").await;
    for id in [UNKNOWN_ID, "no-id"] {
        let body = json!({"operations": ["read"]});
        caller.patch(&address(id), body).await.expect(404);
    }
}
