//! `keywright delete`.

use keywright_harness::{Server, Shell};
use serde_json::json;

use crate::stub::{Reply, Stub, hold, listing, name_in};

/// A server with two credentials below `/a`, and one outside.
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
async fn a_single_credential_is_deleted_without_confirmation() {
    let server = server().await;
    let shell = Shell::of(&server);
    let run = shell.run(&["delete", "/a/one"]).expect(0);
    assert_eq!(run.output, "");
    assert_eq!(names(&shell), "/ab\n/a/two\n");
}

#[tokio::test]
async fn a_path_is_deleted_after_confirmation() {
    let server = server().await;
    let shell = Shell::of(&server);
    for answer in ["n", "", "nonsense"] {
        let mut terminal = shell.on_terminal(&["delete", "--path", "/a"]);
        terminal
            .expect("/a/one")
            .expect("Delete 2 credentials below \"/a\"");
        terminal.expect("[y/N]: ").type_line(answer);
        assert_eq!(terminal.end().0, Some(3), "{answer}");
        assert_eq!(names(&shell), "/ab\n/a/two\n/a/one\n");
    }
    let mut terminal = shell.on_terminal(&["delete", "--path", "/a"]);
    terminal.expect("[y/N]: ").type_line("y");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(names(&shell), "/ab\n");
}

#[tokio::test]
async fn without_a_terminal_a_path_is_deleted_only_with_yes() {
    let server = server().await;
    let shell = Shell::of(&server);
    let run = shell.run_with(&["delete", "--path", "/a"], "y\n").expect(2);
    assert!(run.errors.contains("--yes"), "{run:?}");
    assert_eq!(names(&shell), "/ab\n/a/two\n/a/one\n");
    shell.run(&["delete", "--path", "/a", "--yes"]).expect(0);
    assert_eq!(names(&shell), "/ab\n");
}

#[tokio::test]
async fn deleting_continues_after_a_failure_and_reports_it() {
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

#[test]
fn an_interrupted_deletion_reports_its_counts() {
    let (held, holder) = hold();
    let stub = Stub::start(move |asked, _, _| {
        if asked.line.starts_with("GET") {
            return Reply::new(200, &listing(["/a/1", "/a/2", "/a/3"]));
        }
        if name_in(asked) == "/a/2" {
            holder.hold();
        }
        Reply::new(204, "")
    });
    let shell = stub.shell();
    let mut terminal = shell.on_terminal(&["delete", "--path", "/a"]);
    terminal.expect("[y/N]: ").type_line("y");
    held.wait();
    terminal.signal("INT");
    let (status, screen) = terminal.end();
    assert_eq!(status, Some(130), "{screen}");
    assert!(
        screen.contains("deleted: 1, failed: 0, not attempted: 2"),
        "{screen}"
    );
}

#[test]
fn a_401_ends_the_deletion_with_its_counts() {
    let stub = Stub::start(|asked, _, _| match asked.line.split_once('?').unwrap() {
        ("GET /api/v1/data", _) => Reply::new(200, &listing(["/a/1", "/a/2", "/a/3", "/a/4"])),
        _ if name_in(asked) == "/a/1" => Reply::new(204, ""),
        _ => Reply::new(401, "{\"error\":\"invalid_token\"}"),
    });
    let arguments = ["delete", "--path", "/a", "--yes"];
    let run = stub.shell().run(&arguments).expect(5);
    assert!(
        run.errors
            .contains("deleted: 1, failed: 1, not attempted: 2"),
        "{run:?}"
    );
    assert_eq!(stub.lines().len(), 3);
}

#[test]
fn a_404_is_a_failure_only_if_the_name_is_still_listed() {
    for (listed_then, failed, status) in [(vec![], 0, 0), (vec!["/a/2"], 1, 3)] {
        let stub = Stub::start(move |asked, before, _| {
            if asked.line.starts_with("GET") {
                return Reply::new(
                    200,
                    &match before {
                        0 => listing(["/a/1", "/a/2"]),
                        _ => listing(listed_then.iter().copied()),
                    },
                );
            }
            Reply::new(404, "{\"error\":\"the credential does not exist\"}")
        });
        let arguments = ["delete", "--path", "/a", "--yes"];
        let run = stub.shell().run(&arguments).expect(status);
        let counts = format!(
            "deleted: 0, failed: {failed}, already deleted: {}",
            2 - failed
        );
        assert!(run.errors.contains(&counts), "{run:?}");
    }
    // A 404 without the API's body is not evidence of a deletion.
    let stub = Stub::start(|asked, _, _| {
        if asked.line.starts_with("GET") {
            return Reply::new(200, &listing(["/a/1"]));
        }
        Reply::new(404, "<html>")
    });
    let arguments = ["delete", "--path", "/a", "--yes"];
    let run = stub.shell().run(&arguments).expect(3);
    assert!(run.errors.contains("deleted: 0, failed: 1"), "{run:?}");
}

#[test]
fn three_consecutive_losses_end_the_deletion() {
    for (lost, status, counts) in [
        (&[2][..], 3, "deleted: 5, failed: 1"),
        (&[1, 2, 4, 5], 3, "deleted: 2, failed: 4"),
        (&[2, 3, 4], 6, "deleted: 1, failed: 3, not attempted: 2"),
    ] {
        let stub = Stub::start(move |asked, _, _| {
            if asked.line.starts_with("GET") {
                return Reply::new(
                    200,
                    &listing(["/a/1", "/a/2", "/a/3", "/a/4", "/a/5", "/a/6"]),
                );
            }
            let name = name_in(asked);
            if lost.iter().any(|lost| name == format!("/a/{lost}")) {
                return Reply::lost();
            }
            Reply::new(204, "")
        });
        let arguments = ["delete", "--path", "/a", "--yes"];
        let run = stub.shell().run(&arguments).expect(status);
        assert!(run.errors.contains(counts), "{run:?}");
    }
}
