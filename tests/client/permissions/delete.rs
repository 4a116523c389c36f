//! `keywright permissions delete`.

use keywright_harness::{Server, Shell};

use super::{ACTOR, stored, stranger};
use crate::json_of;

#[tokio::test]
async fn a_deleted_permission_is_shown() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    for by_id in [false, true] {
        let id = server.grant("/a/*", ACTOR, &["read"]).await;
        let before = stored(&server, "/a/*", ACTOR).await.unwrap();
        let which = if by_id {
            vec!["--id", &id]
        } else {
            vec!["/a/*", "--actor", ACTOR]
        };
        let arguments = [&["permissions", "delete"] as &[&str], which.as_slice()].concat();
        assert_eq!(json_of(shell.run(&arguments)), before);
        assert_eq!(stored(&server, "/a/*", ACTOR).await, None);
        assert_eq!(shell.run(&arguments).expect(4).output, "");
    }
    let id = server.grant("/a/*", ACTOR, &["read"]).await;
    let (status, screen) = shell
        .on_terminal(&["permissions", "delete", "--id", &id])
        .end();
    assert_eq!(status, Some(0), "{screen}");
    assert!(screen.contains(&id), "{screen}");
    assert_eq!(stored(&server, "/a/*", ACTOR).await, None);
}

#[tokio::test]
async fn a_permission_of_others_is_not_deleted() {
    let server = Server::start().await;
    let id = server.grant("/a/*", ACTOR, &["read"]).await;
    let stranger = stranger(&server).await;
    stranger
        .run(&["permissions", "delete", "--id", &id])
        .expect(4);
    assert!(stored(&server, "/a/*", ACTOR).await.is_some());
}
