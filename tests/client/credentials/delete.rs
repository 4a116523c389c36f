//! `keywright delete`.

use keywright_harness::{Server, Shell};
use serde_json::json;

/// A server with two credentials below `/a`, and one beside.
async fn server() -> Server {
    let server = Server::start().await;
    for name in ["/a/one", "/a/two", "/ab"] {
        server.set(name, "value", json!("v")).await.expect(200);
    }
    server
}

fn names(shell: &Shell) -> String {
    shell.run(&["find", "--names"]).expect(0).output
}

#[tokio::test]
async fn one_is_deleted_without_a_question() {
    let server = server().await;
    let shell = Shell::of(&server);
    let run = shell.run(&["delete", "/a/one"]).expect(0);
    assert_eq!(run.output, "");
    assert_eq!(names(&shell), "/ab\n/a/two\n");
}

#[tokio::test]
async fn a_path_is_deleted_once_it_is_confirmed() {
    let server = server().await;
    let shell = Shell::of(&server);
    for answer in ["n", "", "nonsense"] {
        let mut terminal = shell.on_terminal(&["delete", "--path", "/a"]);
        terminal.expect("/a/one").expect("Delete 2 below \"/a\"");
        terminal.expect("[y/N]: ").type_line(answer);
        assert_eq!(terminal.end().0, Some(1), "{answer}");
        assert_eq!(names(&shell), "/ab\n/a/two\n/a/one\n");
    }
    let mut terminal = shell.on_terminal(&["delete", "--path", "/a"]);
    terminal.expect("[y/N]: ").type_line("y");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(names(&shell), "/ab\n");
}

#[tokio::test]
async fn where_nobody_can_be_asked_nothing_is_deleted_unless_it_is_said() {
    let server = server().await;
    let shell = Shell::of(&server);
    let run = shell.run_with(&["delete", "--path", "/a"], "y\n").expect(2);
    assert!(run.errors.contains("--yes"), "{run:?}");
    assert_eq!(names(&shell), "/ab\n/a/two\n/a/one\n");
    shell.run(&["delete", "--path", "/a", "--yes"]).expect(0);
    assert_eq!(names(&shell), "/ab\n");
}

#[tokio::test]
async fn it_goes_on_after_a_failure_and_names_it() {
    let server = server().await;
    let app = server.as_client("app").await;
    for (path, operations) in [("/*", json!(["read"])), ("/a/two", json!(["delete"]))] {
        let permission = json!({"path": path, "actor": app.actor(), "operations": operations});
        server
            .post("/api/v2/permissions", permission)
            .await
            .expect(201);
    }
    let shell = Shell::at(&server).variable("KEYWRIGHT_CLIENT_TOKEN", app.token());
    let run = shell.run(&["delete", "--path", "/a", "--yes"]).expect(3);
    assert!(run.errors.contains("/a/one: "), "{run:?}");
    assert!(run.errors.contains("deleted: 1, failed: 1"), "{run:?}");
    assert_eq!(names(&shell), "/ab\n/a/one\n");
}
