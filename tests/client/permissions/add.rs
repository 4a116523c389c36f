//! `keywright permissions add`.

use keywright_harness::{Server, Shell};
use serde_json::json;

use super::{ACTOR, stored, stranger};
use crate::json_of;

#[tokio::test]
async fn a_permission_is_added_and_shown() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    let all = "read,write,delete,read_acl,write_acl";
    for (path, operations) in [("/a/*", "read"), ("/a/b", all)] {
        let arguments = ["permissions", "add", path, "--actor", ACTOR];
        let run = shell.run(&[&arguments as &[&str], &["--operations", operations]].concat());
        let added = json_of(run);
        assert_eq!(added["path"], path);
        assert_eq!(added["actor"], ACTOR);
        let operations: Vec<_> = operations.split(',').collect();
        assert_eq!(added["operations"], json!(operations));
        assert_eq!(stored(&server, path, ACTOR).await, Some(added));
    }
}

#[tokio::test]
async fn a_terminal_gets_one_field_per_line() {
    let server = Server::start().await;
    let arguments = [
        "permissions",
        "add",
        "a/*",
        "--actor",
        ACTOR,
        "--operations",
        "write",
        "--operations",
        "read_acl",
    ];
    let (status, screen) = Shell::of(&server).on_terminal(&arguments).end();
    assert_eq!(status, Some(0), "{screen}");
    for text in ["/a/*", ACTOR, "write, read_acl"] {
        assert!(screen.contains(&format!("  {text}\n")), "{screen}");
    }
}

#[tokio::test]
async fn an_existing_permission_stays_and_update_is_suggested() {
    let server = Server::start().await;
    server.grant("/a/*", ACTOR, &["read"]).await;
    let arguments = [
        "permissions",
        "add",
        "/a/*",
        "--actor",
        ACTOR,
        "--operations",
        "write",
    ];
    let run = Shell::of(&server).run(&arguments).expect(1);
    assert!(run.errors.contains("permissions update"), "{}", run.errors);
    let stored = stored(&server, "/a/*", ACTOR).await.unwrap();
    assert_eq!(stored["operations"], json!(["read"]));
}

#[tokio::test]
async fn invalid_or_refused_permissions_have_their_exit_status() {
    let server = Server::start().await;
    let (developer, stranger) = (Shell::of(&server), stranger(&server).await);
    for (shell, path, operations, status) in [
        (&developer, "/a/*", "fly", 2),
        (&developer, "/a/*/b", "read", 1),
        (&stranger, "/a/*", "read", 4),
    ] {
        let run = shell.run(&[
            "permissions",
            "add",
            path,
            "--actor",
            ACTOR,
            "--operations",
            operations,
        ]);
        assert_eq!(run.expect(status).output, "");
    }
    developer
        .run(&["permissions", "add", "/a/*", "--actor", ACTOR])
        .expect(2);
    assert_eq!(stored(&server, "/a/*", ACTOR).await, None);
}
