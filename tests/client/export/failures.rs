//! Credentials that can't be read.

use keywright_harness::{Server, Shell};
use serde_json::{Value, json};

use crate::{
    json_of,
    stub::{Reply, Stub, listing, name_in, password_for},
};

#[tokio::test]
async fn an_unreadable_credential_prevents_the_export() {
    let server = damaged().await;
    let shell = Shell::of(&server);
    let run = shell.run(&["export", "--file", "export.yml"]).expect(1);
    assert!(run.errors.contains("can't read /b"), "{run:?}");
    assert!(!shell.file("export.yml").exists());

    let piped = shell.run(&["export"]).expect(1);
    let import = shell.run_with(&["import", "-"], &piped.output).expect(1);
    assert!(import.errors.contains("line "), "{import:?}");
}

#[tokio::test]
async fn keep_going_exports_the_rest_and_reports_failures() {
    let server = damaged().await;
    let shell = Shell::of(&server);
    let run = shell
        .run(&["export", "--file", "export.json", "--keep-going"])
        .expect(3);
    assert!(run.errors.contains("failed: /b: "), "{run:?}");
    let summary: Value = serde_json::from_str(&run.output).unwrap();
    assert_eq!(summary["exported"], json!(2));
    assert_eq!(summary["failed"], json!(1));
    let file = std::fs::read_to_string(shell.file("export.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let entries = file["credentials"].as_array().unwrap().iter();
    let names: Vec<_> = entries.map(|entry| entry["name"].clone()).collect();
    assert_eq!(names, [json!("/a"), json!("/c")]);
}

#[tokio::test]
async fn exports_without_login_or_server_have_their_status() {
    let server = damaged().await;
    Shell::at(&server).run(&["export"]).expect(5);
    let stranger = Shell::of(&server).variable("KEYWRIGHT_CLIENT_SECRET", "wrong");
    stranger.run(&["export"]).expect(5);
    let away = Shell::of(&server)
        .variable("KEYWRIGHT_CLIENT_SERVER", "https://127.0.0.1:1")
        .variable("KEYWRIGHT_CLIENT_RETRIES", "0");
    let run = away.run(&["export", "--file", "export.yml"]).expect(6);
    assert!(!away.file("export.yml").exists(), "{run:?}");
}

#[test]
fn credentials_deleted_during_an_export_are_counted() {
    let stub = without_b(ABSENT, &["/a", "/c"]);
    let shell = stub.shell();
    let summary = json_of(shell.run(&["export", "--file", "export.yml"]));
    assert_eq!(summary["exported"], json!(2));
    assert_eq!(summary["deleted_meanwhile"], json!(1));
    let file = std::fs::read_to_string(shell.file("export.yml")).unwrap();
    assert!(!file.contains("/b"), "{file}");
    let piped = without_b(ABSENT, &["/a", "/c"]).shell().run(&["export"]);
    let piped = piped.expect(0);
    let counts = "exported 2 credentials, 0 failed, 1 deleted during the export";
    assert!(piped.errors.contains(counts), "{piped:?}");
}

#[test]
fn a_404_for_a_listed_credential_is_a_failure() {
    let stub = without_b(ABSENT, &["/a", "/b", "/c"]);
    let run = stub.shell().run(&["export"]).expect(3);
    assert!(
        run.errors.contains("exported 2 credentials, 1 failed"),
        "{run:?}"
    );
}

#[test]
fn a_404_without_the_apis_body_is_a_failure() {
    for body in ["", "<html>not here</html>", "{\"message\":\"no route\"}"] {
        let stub = without_b(body, &["/a", "/c"]);
        let shell = stub.shell();
        let run = shell.run(&["export", "--file", "export.yml"]);
        assert_ne!(run.status, Some(0), "{run:?}");
        assert!(!shell.file("export.yml").exists());
        let stub = without_b(body, &["/a", "/c"]);
        let run = stub.shell().run(&["export", "--keep-going"]).expect(3);
        assert!(
            run.errors.contains("exported 2 credentials, 1 failed"),
            "{run:?}"
        );
    }
}

#[test]
fn an_export_survives_a_lost_connection() {
    let stub = Stub::start(|asked, before, _| match (asked.line.as_str(), before) {
        (_, 0) => Reply::lost(),
        (LISTING, _) => Reply::new(200, &listing(["/a", "/b", "/c"])),
        _ => Reply::new(200, &password_for(asked, "secret")),
    });
    let shell = stub.shell();
    let summary = json_of(shell.run(&["export", "--file", "export.yml"]));
    assert_eq!(summary["exported"], json!(3));
}

/// A server with three credentials that responds for one with 404 and this body, and then lists these names.
fn without_b(body: &'static str, listed_then: &'static [&str]) -> Stub {
    Stub::start(move |asked, before, _| match asked.line.as_str() {
        LISTING if before == 0 => Reply::new(200, &listing(["/a", "/b", "/c"])),
        LISTING => Reply::new(200, &listing(listed_then.iter().copied())),
        _ if name_in(asked) == "/b" => Reply::new(404, body),
        _ => Reply::new(200, &password_for(asked, "secret")),
    })
}

const LISTING: &str = "GET /api/v1/data?path=";
const ABSENT: &str = "{\"error\":\"the credential does not exist\"}";

/// A server with three credentials, one of which was corrupted in the database.
async fn damaged() -> Server {
    let server = Server::start().await;
    for name in ["/a", "/b", "/c"] {
        let set = server.set(name, "password", json!("secret"));
        set.await.expect(200);
    }
    let damage = "update credential_version set nonce = (select nonce from credential_version where sequence = 1) \
                  where sequence = 2";
    server.run_sql(damage).await;
    server
}
