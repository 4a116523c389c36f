//! `keywright permissions get`.

use keywright_harness::{Server, Shell};

use super::{ACTOR, stored, stranger};
use crate::json_of;

#[tokio::test]
async fn a_permission_is_found_by_path_and_actor_or_by_id() {
    let server = Server::start().await;
    let id = server.grant("/a/*", ACTOR, &["read", "write"]).await;
    let stored = stored(&server, "/a/*", ACTOR).await.unwrap();
    let shell = Shell::of(&server);
    for arguments in [
        &["permissions", "get", "/a/*", "--actor", ACTOR] as &[&str],
        &["permissions", "get", "a/*", "--actor", ACTOR],
        &["permissions", "get", "--id", &id],
    ] {
        assert_eq!(json_of(shell.run(arguments)), stored, "{arguments:?}");
    }
    let (status, screen) = shell
        .on_terminal(&["permissions", "get", "--id", &id])
        .end();
    assert_eq!(status, Some(0), "{screen}");
    assert!(screen.contains("  read, write\n"), "{screen}");
}

#[tokio::test]
async fn missing_and_hidden_permissions_are_not_found() {
    let server = Server::start().await;
    server.grant("/a/*", ACTOR, &["read"]).await;
    let (developer, stranger) = (Shell::of(&server), stranger(&server).await);
    for (shell, path) in [(&developer, "/a/b"), (&stranger, "/a/*")] {
        let run = shell.run(&["permissions", "get", path, "--actor", ACTOR]);
        assert_eq!(run.expect(4).output, "");
    }
}

#[tokio::test]
async fn a_path_requires_an_actor_and_an_id_excludes_both() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    for arguments in [
        &["permissions", "get"] as &[&str],
        &["permissions", "get", "/a/*"],
        &["permissions", "get", "--actor", ACTOR],
        &["permissions", "get", "/a/*", "--actor", ACTOR, "--id", "x"],
    ] {
        shell.run(arguments).expect(2);
    }
}
