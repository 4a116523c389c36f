//! Credentials that can't be read.

use keywright_harness::{Server, Shell};
use serde_json::{Value, json};

#[tokio::test]
async fn nothing_is_exported_when_a_credential_cannot_be_read() {
    let server = damaged().await;
    let shell = Shell::of(&server);
    let run = shell.run(&["export", "--file", "export.yml"]).expect(1);
    assert!(run.errors.contains("/b can't be read"), "{run:?}");
    assert!(!shell.file("export.yml").exists());

    let piped = shell.run(&["export"]).expect(1);
    let import = shell.run_with(&["import", "-"], &piped.output).expect(1);
    assert!(import.errors.contains("line "), "{import:?}");
}

#[tokio::test]
async fn with_keep_going_the_rest_is_exported_and_what_failed_is_named() {
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
async fn who_is_not_logged_in_or_reaches_no_server_is_told_by_the_status() {
    let server = damaged().await;
    Shell::at(&server).run(&["export"]).expect(5);
    let stranger = Shell::of(&server).variable("KEYWRIGHT_CLIENT_SECRET", "wrong");
    stranger.run(&["export"]).expect(5);
    let away = Shell::of(&server).variable("KEYWRIGHT_CLIENT_SERVER", "https://127.0.0.1:1");
    let run = away.run(&["export", "--file", "export.yml"]).expect(6);
    assert!(!away.file("export.yml").exists(), "{run:?}");
}

/// A server of whose three credentials one is changed past it.
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
