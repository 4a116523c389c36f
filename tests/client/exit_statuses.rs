//! Exit statuses, on which scripts rely.

use keywright_harness::{Server, Shell};
use serde_json::json;

use crate::stub::{Reply, Stub, versions};

#[tokio::test]
async fn each_outcome_has_its_exit_status() {
    let server = Server::start().await;
    server.set("/a", "password", json!("x")).await.expect(200);
    let developer = || Shell::of(&server);
    let stranger = || developer().variable("KEYWRIGHT_CLIENT_SECRET", "wrong");
    let anonymous = || Shell::at(&server);
    let away = || {
        developer()
            .variable("KEYWRIGHT_CLIENT_SERVER", "https://127.0.0.1:1")
            .variable("KEYWRIGHT_CLIENT_RETRIES", "0")
    };
    let get: &[&str] = &["get", "/a"];
    for (what, shell, arguments, status, words) in [
        ("done", developer(), get, 0, ""),
        (
            "refused",
            developer(),
            &["generate", "/b", "-t", "json"][..],
            1,
            "generat",
        ),
        (
            "refused",
            developer(),
            &["set", "/a", "-t", "value", "--value", "x"],
            1,
            "type",
        ),
        (
            "no such option",
            developer(),
            &["get", "/a", "--nonsense"],
            2,
            "--nonsense",
        ),
        ("no name", developer(), &["get"], 2, "NAME"),
        (
            "absent",
            developer(),
            &["get", "/absent"],
            4,
            "does not exist",
        ),
        (
            "no such field",
            developer(),
            &["get", "/a", "--member", "x"],
            4,
            "field x",
        ),
        (
            "absent",
            developer(),
            &["delete", "/absent"],
            4,
            "does not exist",
        ),
        (
            "nothing below",
            developer(),
            &["delete", "--path", "/none", "--yes"],
            4,
            "no credentials below",
        ),
        ("wrong secret", stranger(), get, 5, "invalid_client"),
        ("not logged in", anonymous(), get, 5, "keywright login"),
        ("no server", Shell::new(), get, 1, "--server"),
        ("unreachable", away(), get, 6, "can't be reached"),
    ] {
        let run = shell.run(arguments);
        assert_eq!(run.status, Some(status), "{what}: {run:#?}");
        assert!(run.errors.contains(words), "{what}: {run:#?}");
        assert_eq!(run.output.is_empty(), status != 0, "{what}: {run:#?}");
    }
}

#[tokio::test]
async fn missing_write_permission_has_status_5() {
    let server = Server::start().await;
    let app = server.as_client("app").await;
    let shell = Shell::at(&server).variable("KEYWRIGHT_CLIENT_TOKEN", app.token());
    let run = shell
        .run(&["generate", "/a", "--type", "password"])
        .expect(5);
    assert!(run.errors.contains("may not write"), "{run:#?}");
    shell.run(&["get", "/a"]).expect(4);
}

#[test]
fn malformed_responses_fail_without_a_panic() {
    let cases = [
        (200, "<html>", 1),
        (200, "{\"data\":[]}", 1),
        (200, "{\"data\":\"hunter2\"}", 1),
        (200, "{\"data\":hunter2}", 1),
        (302, "", 1),
        (500, "{\"error\":\"\\u001b[31mred\"}", 1),
        (404, "", 4),
    ];
    for (status, body, exit) in cases {
        let stub = Stub::start(move |_, _, _| Reply::new(status, body).header("location", "/b"));
        let run = stub.shell().run(&["get", "/a"]).expect(exit);
        assert_eq!(stub.lines().len(), 1, "redirections are not followed");
        assert!(
            !run.errors.contains('\u{1b}') && run.output.is_empty(),
            "{run:?}"
        );
        // Malformed content may be a secret.
        assert!(!run.errors.contains("hunter2"), "{run:?}");
    }
}

#[test]
fn a_closed_output_pipe_is_not_a_failure() {
    let stub = Stub::start(|_, _, _| Reply::new(200, &versions()));
    let run = stub
        .shell()
        .bash("keywright get /a | true; echo ${PIPESTATUS[0]}");
    assert_eq!(run.expect(0).output, "0\n");
}
