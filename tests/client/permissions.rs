//! The `permissions` commands.

use keywright_harness::{Commanded, Server, Shell, Text};
use serde_json::{Value, json};

use crate::json_of;

/// Returns the actor's permission on the path, if any.
async fn stored(server: &Server, path: &str, actor: &str) -> Option<Value> {
    let path = format!("/api/v2/permissions?path={path}&actor={actor}");
    let response = server.get(&path).await;
    (response.status != 404).then(|| response.expect(200).json())
}

/// Returns a shell of a client without permissions.
async fn stranger(server: &Server) -> Shell {
    let caller = server.as_client("stranger").await;
    Shell::at(server).variable("KEYWRIGHT_CLIENT_TOKEN", caller.token())
}

const ACTOR: &str = "uaa-client:app";

/// Adds a permission of [`ACTOR`].
fn add(shell: &Shell, path: &str, operations: &str) -> Commanded {
    let line = format!("permissions add {path} --actor {ACTOR} --operations {operations}");
    shell.run(&line)
}

#[tokio::test]
async fn add_stores_and_prints_a_permission() {
    let server = Server::reused().await;
    let shell = Shell::of(&server);
    let all = "read,write,delete,read_acl,write_acl";
    for (path, operations) in [("/a/*", "read"), ("/a/b", all)] {
        let added = json_of(add(&shell, path, operations));
        assert_eq!(added["path"], path);
        assert_eq!(added["actor"], ACTOR);
        let operations: Vec<_> = operations.split(',').collect();
        assert_eq!(added["operations"], json!(operations));
        assert_eq!(stored(&server, path, ACTOR).await, Some(added));
    }
}

#[tokio::test]
async fn add_warns_about_an_actor_that_no_caller_can_be() {
    let server = Server::reused().await;
    let shell = Shell::of(&server);
    for (actor, is_warned) in [("bob", true), (ACTOR, false)] {
        let line = format!("permissions add /a/* --actor {actor} --operations read");
        let run = shell.run(&line).expect(0);
        assert_eq!(
            run.errors.contains("no caller can be the actor bob"),
            is_warned
        );
        assert!(stored(&server, "/a/*", actor).await.is_some());
    }
}

#[tokio::test]
async fn add_prints_one_field_per_line_on_a_terminal() {
    let server = Server::reused().await;
    let add =
        format!("permissions add a/* --actor {ACTOR} --operations write --operations read_acl");
    let (status, screen) = Shell::of(&server).on_terminal(&add).end();
    assert_eq!(status, Some(0), "{screen}");
    for text in ["/a/*", ACTOR, "write, read_acl"] {
        screen.assert_contains(&format!("  {text}\n"));
    }
}

#[tokio::test]
async fn adding_an_existing_permission_fails_and_suggests_update() {
    let server = Server::reused().await;
    server.grant("/a/*", ACTOR, &["read"]).await;
    let run = add(&Shell::of(&server), "/a/*", "write").expect(1);
    assert!(run.errors.contains("permissions update"), "{}", run.errors);
    let stored = stored(&server, "/a/*", ACTOR).await.unwrap();
    assert_eq!(stored["operations"], json!(["read"]));
}

#[tokio::test]
async fn adding_an_invalid_or_refused_permission_fails() {
    let server = Server::reused().await;
    let (developer, stranger) = (Shell::of(&server), stranger(&server).await);
    for (shell, path, operations, status) in [
        (&developer, "/a/*", "fly", 2),
        (&developer, "/a/*/b", "read", 1),
        (&stranger, "/a/*", "read", 4),
    ] {
        let run = add(shell, path, operations);
        assert_eq!(run.expect(status).output, "");
    }
    developer
        .run(&["permissions", "add", "/a/*", "--actor", ACTOR])
        .expect(2);
    assert_eq!(stored(&server, "/a/*", ACTOR).await, None);
}

#[tokio::test]
async fn get_finds_a_permission_by_path_and_actor_or_by_id() {
    let server = Server::reused().await;
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
    screen.assert_contains("  read, write\n");
}

#[tokio::test]
async fn update_replaces_only_the_operations() {
    let server = Server::reused().await;
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
    let update = format!("permissions update --id {id} --operations read,write");
    let (status, screen) = shell.on_terminal(&update).end();
    assert_eq!(status, Some(0), "{screen}");
    screen.assert_contains("  read, write\n");
}

#[tokio::test]
async fn missing_and_unreadable_permissions_exit_with_status_4() {
    let server = Server::reused().await;
    let id = server.grant("/a/*", ACTOR, &["read"]).await;
    let (developer, stranger) = (Shell::of(&server), stranger(&server).await);
    let write = ["--operations", "write"];
    for (shell, verb, which, more) in [
        (&developer, "get", &["/a/b", "--actor", ACTOR][..], &[][..]),
        (&stranger, "get", &["/a/*", "--actor", ACTOR], &[]),
        (&developer, "update", &["/a/b", "--actor", ACTOR], &write),
        (&developer, "update", &["--id", "no id"], &write),
        (&stranger, "update", &["--id", &id], &write),
        (&stranger, "delete", &["--id", &id], &[]),
    ] {
        let arguments = [&["permissions", verb], which, more].concat();
        assert_eq!(shell.run(&arguments).expect(4).output, "", "{arguments:?}");
    }
    let stored = stored(&server, "/a/*", ACTOR).await.unwrap();
    assert_eq!(stored["operations"], json!(["read"]));
}

#[tokio::test]
async fn delete_prints_the_deleted_permission() {
    let server = Server::reused().await;
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
    screen.assert_contains(&id);
    assert_eq!(stored(&server, "/a/*", ACTOR).await, None);
}

#[test]
fn a_path_and_an_actor_or_an_id_are_required() {
    for (arguments, words) in [
        ("get", "<PATH|--id <ID>>"),
        ("delete", "<PATH|--id <ID>>"),
        ("update --operations read", "<PATH|--id <ID>>"),
        ("get /a/*", "--actor"),
        ("get --actor ACTOR", "<PATH|--id <ID>>"),
        ("get /a/* --actor ACTOR --id x", "cannot be used with"),
    ] {
        let arguments = format!("permissions {}", arguments.replace("ACTOR", ACTOR));
        let run = Shell::new().run(&arguments).expect(2);
        run.errors.assert_contains(words);
    }
}
