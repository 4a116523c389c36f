//! Failed entries, and unreadable files.

use std::fmt::Write;

use keywright_harness::{Server, Shell};
use serde_json::{Value, json};

use crate::given;

#[tokio::test]
async fn failed_entries_are_reported_and_the_rest_is_set() {
    let server = Server::start().await;
    server
        .set("/many/500", "user", json!({"password": "p"}))
        .await
        .expect(200);
    let mut file = "credentials:\n".to_owned();
    for index in 0..1_000 {
        let name = match index {
            10 => "/many/not allowed".to_owned(),
            index => format!("/many/{index}"),
        };
        let value = match index {
            999 => "{certificate: s3cret}".to_owned(),
            index => format!("s3cret-{index}"),
        };
        let credential_type = if index == 999 {
            "certificate"
        } else {
            "password"
        };
        writeln!(
            file,
            "- {{name: {name}, type: {credential_type}, value: {value}}}"
        )
        .unwrap();
    }
    let shell = Shell::of(&server);
    given::file(&shell, "many.yml", &file);
    let run = shell.run(&["import", "many.yml"]).expect(3);
    let summary: Value = serde_json::from_str(&run.output).unwrap();
    assert_eq!(summary["set"], json!(997));
    assert_eq!(summary["failed"], json!(3));
    let failures = summary["failures"].as_array().unwrap();
    let mut failed: Vec<_> = failures
        .iter()
        .map(|failure| (failure["entry"].clone(), failure["name"].clone()))
        .collect();
    failed.sort_by_key(|(entry, _)| entry.as_u64());
    let expected = [
        (json!(11), json!("/many/not allowed")),
        (json!(501), json!("/many/500")),
        (json!(1_000), json!("/many/999")),
    ];
    assert_eq!(failed, expected);
    for failure in failures {
        let (name, line) = (failure["name"].as_str().unwrap(), &failure["line"]);
        let (entry, reason) = (&failure["entry"], failure["reason"].as_str().unwrap());
        let message = format!("failed: {name} (entry {entry}, line {line}): {reason}\n");
        assert!(run.errors.contains(&message), "{message}: {run:?}");
    }
    assert!(!run.errors.contains("s3cret") && !run.output.contains("s3cret"));
    let stored = given::stored(&server, "/many").await;
    assert_eq!(stored.as_object().unwrap().len(), 998);
    assert_eq!(stored["/many/998"][1], json!("s3cret-998"));
}

#[tokio::test]
async fn nothing_of_a_truncated_file_is_set() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    for (file, message) in [
        (
            "credentials:\n- {name: /a, type: value, value: s3cret}\n- {name: /b, value: \"s3cret",
            "file: line 3, column",
        ),
        (
            r#"{"credentials":[{"name":"/a","type":"value","value":"s3cret"},"#,
            "file: line 1, column 62: unexpected end of file",
        ),
        ("- name: /a\n", "no top-level list `credentials`"),
    ] {
        given::file(&shell, "file", file);
        let run = shell.run(&["import", "file"]).expect(1);
        assert!(run.errors.contains(message), "{run:?}");
        assert!(!run.errors.contains("s3cret"), "{run:?}");
        shell.run_with(&["import", "-"], file).expect(1);
    }
    let absent = shell.run(&["import", "absent"]).expect(1);
    assert!(
        absent.errors.contains("absent: can't be read"),
        "{absent:?}"
    );
    assert_eq!(given::stored(&server, "").await, json!({}));
}

#[tokio::test]
async fn an_import_without_access_stops_and_counts_the_rest() {
    let server = Server::start().await;
    let stranger = Shell::of(&server).variable("KEYWRIGHT_CLIENT_SECRET", "wrong");
    let away = Shell::of(&server)
        .variable("KEYWRIGHT_CLIENT_SERVER", "https://127.0.0.1:1")
        .variable("KEYWRIGHT_CLIENT_RETRIES", "0");
    let entries: Vec<String> = (0..40)
        .map(|index| format!("- {{name: /{index}, type: value, value: v}}\n"))
        .collect();
    let entries = entries.concat();
    for (shell, status) in [(stranger, 5), (away, 6)] {
        given::file(&shell, "file", &format!("credentials:\n{entries}"));
        let run = shell.run(&["import", "file", "--parallel", "4"]);
        let run = run.expect(status);
        let summary: Value = serde_json::from_str(&run.output).unwrap();
        assert_eq!(summary["set"], json!(0));
        // At most four concurrent requests fail in each of three attempts.
        assert!(summary["not_tried"].as_u64().unwrap() >= 28, "{run:?}");
    }
}

#[tokio::test]
async fn a_terminal_shows_failures_above_the_progress_bar() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    let listing = "credentials:\n\
        - {name: /a, type: value, value: s3cret}\n\
        - {name: \"/\\e[31m\", type: value, value: s3cret}\n";
    given::file(&shell, "file", listing);
    let (status, screen) = shell.on_terminal(&["import", "file"]).end();
    assert_eq!(status, Some(3), "{screen}");
    assert!(screen.contains("2 of 2"), "{screen}");
    assert!(
        screen.contains("failed: /\\u{1b}[31m (entry 2, line 3)"),
        "{screen}"
    );
    assert!(!screen.contains("s3cret"), "{screen}");
}
