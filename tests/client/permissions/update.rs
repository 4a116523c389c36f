//! `keywright permissions update`.

use keywright_harness::{Server, Shell};
use serde_json::json;

use super::{ACTOR, stored, stranger};
use crate::json_of;

#[tokio::test]
async fn only_the_operations_are_replaced() {
    let server = Server::start().await;
    let id = server.grant("/a/*", ACTOR, &["read", "write"]).await;
    let shell = Shell::of(&server);
    for (which, operations) in [
        (&["/a/*", "--actor", ACTOR] as &[&str], "delete"),
        (&["--id", &id], "read"),
    ] {
        let arguments = [
            &["permissions", "update"] as &[&str],
            which,
            &["--operations", operations],
        ]
        .concat();
        let updated = json_of(shell.run(&arguments));
        let expected =
            json!({"uuid": id, "path": "/a/*", "actor": ACTOR, "operations": [operations]});
        assert_eq!(updated, expected);
        assert_eq!(stored(&server, "/a/*", ACTOR).await, Some(expected));
    }
    let arguments = [
        "permissions",
        "update",
        "--id",
        &id,
        "--operations",
        "read,write",
    ];
    let (status, screen) = shell.on_terminal(&arguments).end();
    assert_eq!(status, Some(0), "{screen}");
    assert!(screen.contains("  read, write\n"), "{screen}");
}

#[tokio::test]
async fn missing_permissions_and_those_of_others_are_not_found() {
    let server = Server::start().await;
    let id = server.grant("/a/*", ACTOR, &["read"]).await;
    let (developer, stranger) = (Shell::of(&server), stranger(&server).await);
    for (shell, which) in [
        (&developer, &["/a/b", "--actor", ACTOR] as &[&str]),
        (&developer, &["--id", "no id"]),
        (&stranger, &["--id", &id]),
    ] {
        let arguments = [
            &["permissions", "update"] as &[&str],
            which,
            &["--operations", "write"],
        ]
        .concat();
        assert_eq!(shell.run(&arguments).expect(4).output, "", "{which:?}");
    }
    let stored = stored(&server, "/a/*", ACTOR).await.unwrap();
    assert_eq!(stored["operations"], json!(["read"]));
}
