//! `DELETE /api/v2/permissions/{permission_id}`.

use keywright_harness::Server;

use super::{UNKNOWN_ID, address, stored};

#[tokio::test]
async fn a_deleted_permission_is_returned_and_gone() {
    let server = Server::start().await;
    let id = server.grant("/a", "someone", &["write", "read"]).await;
    let other = server.grant("/a", "other", &["read"]).await;
    let before = server.get(&address(&id)).await.expect(200).body;
    let deleted = server.delete(&address(&id)).await.expect(200);
    assert_eq!(deleted.body, before);
    server.delete(&address(&id)).await.expect(404);
    server.get(&address(&id)).await.expect(404);
    assert_eq!(stored(&server, "/a", "someone").await, None);
    server.get(&address(&other)).await.expect(200);
    let added_again = server.grant("/a", "someone", &["read"]).await;
    assert_ne!(added_again, id);
}

#[tokio::test]
async fn deleting_an_absent_permission_is_404() {
    let server = Server::start().await;
    for id in [UNKNOWN_ID, "no-id", "%2A"] {
        let answer = server.delete(&address(id)).await.expect(404);
        assert!(!answer.error().is_empty(), "{id}");
    }
}

#[tokio::test]
async fn all_permissions_cannot_be_deleted_together() {
    let server = Server::start().await;
    server.grant("/a", "someone", &["read"]).await;
    server
        .delete("/api/v2/permissions?path=/a&actor=someone")
        .await
        .expect(404);
    assert!(stored(&server, "/a", "someone").await.is_some());
}
