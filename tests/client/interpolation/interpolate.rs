//! `keywright interpolate`.

use std::{fs, os::unix::fs::PermissionsExt};

use keywright_harness::{Server, Shell};
use serde_json::{Value, json};

use crate::json_of;

/// Bindings that refer to a credential, and a number that has more digits than a float.
const DOCUMENT: &str = r#"{"services":[{"label":"db","big":123456789012345678901,"credentials":{"credhub-ref":"((/database))"}}]}"#;

const FILLED: &str = r#"{"services":[{"label":"db","big":123456789012345678901,"credentials":{"port":5432,"host":"db.example"}}]}"#;

async fn server() -> Server {
    let server = Server::start().await;
    let value = json!({"port": 5432, "host": "db.example"});
    server.set("/database", "json", value).await.expect(200);
    server
}

fn compact(text: &str) -> String {
    text.split_whitespace().collect()
}

#[tokio::test]
async fn a_document_is_read_from_a_file_or_from_standard_input() {
    let server = server().await;
    let shell = Shell::of(&server);
    fs::write(shell.file("bindings.json"), DOCUMENT).unwrap();
    for (arguments, input) in [
        (&["interpolate", "bindings.json"] as &[&str], ""),
        (&["interpolate"], DOCUMENT),
        (&["interpolate", "-"], DOCUMENT),
    ] {
        let run = shell.run_with(arguments, input).expect(0);
        assert_eq!(compact(&run.output), FILLED, "{arguments:?}");
        assert_eq!(run.errors, "");
    }
    let run = shell.run_with(&["interpolate", "--output", "yaml"], DOCUMENT);
    assert!(run.expect(0).output.contains("port: 5432"));
}

#[tokio::test]
async fn on_a_terminal_it_says_that_it_reads_and_writes_json() {
    let server = server().await;
    let shell = Shell::of(&server);
    let mut terminal = shell.on_terminal(&["interpolate"]);
    terminal.expect("end it with Ctrl-D");
    // The end of input on a terminal is a control character.
    terminal.type_line(DOCUMENT).type_line("\u{4}");
    let (status, screen) = terminal.end();
    assert_eq!(status, Some(0), "{screen}");
    assert!(screen.contains("\n  \"services\": ["), "{screen}");
    assert!(screen.contains("\"host\": \"db.example\""), "{screen}");
}

#[tokio::test]
async fn what_is_filled_can_be_written_to_a_file_that_is_the_owners_alone() {
    let server = server().await;
    let shell = Shell::of(&server);
    let run = shell.run_with(&["interpolate", "--file", "filled.json"], DOCUMENT);
    assert_eq!(run.expect(0).output, "");
    let filled = shell.file("filled.json");
    assert_eq!(fs::read_to_string(&filled).unwrap(), FILLED);
    let mode = fs::metadata(&filled).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn what_is_no_document_and_what_it_refers_to_in_vain_is_told() {
    let server = server().await;
    server.set("/text", "value", json!("x")).await.expect(200);
    let shell = Shell::of(&server);
    let refers_to =
        |name: &str| json!({"services": [{"credentials": {"credhub-ref": name}}]}).to_string();
    for (document, status, told) in [
        ("{".to_owned(), 1, "the document can't be used"),
        (String::new(), 1, "the document can't be used"),
        ("[]".to_owned(), 1, ""),
        (refers_to("/absent"), 4, ""),
        (refers_to("/text"), 1, "/text"),
    ] {
        let run = shell.run_with(&["interpolate"], &document).expect(status);
        assert_eq!(run.output, "", "{document}");
        assert!(run.errors.contains(told), "{document}: {}", run.errors);
    }
    let run = shell.run(&["interpolate", "absent.json"]).expect(1);
    assert!(run.errors.contains("absent.json"), "{}", run.errors);
}

#[tokio::test]
async fn a_document_is_read_up_to_its_limit_and_no_further() {
    let server = server().await;
    let shell = Shell::of(&server);
    let too_long = format!("\"{}\"", "a".repeat(1024 * 1024 - 1));
    let run = shell.run_with(&["interpolate"], &too_long).expect(1);
    assert!(run.errors.contains("1048576 bytes"), "{}", run.errors);
    // As long as can be: the server, whose limit is lower, is the one that refuses it.
    let longest = &format!("\"{}\"", "a".repeat(1024 * 1024 - 2));
    let run = shell.run_with(&["interpolate"], longest).expect(1);
    assert!(!run.errors.contains("1048576 bytes"), "{}", run.errors);
}

#[tokio::test]
async fn a_document_without_references_comes_back_as_it_is() {
    let server = server().await;
    let document = json!({"services": [], "other": {"a": null}});
    let run = Shell::of(&server).run_with(&["interpolate"], &document.to_string());
    let filled: Value = json_of(run);
    assert_eq!(filled, document);
}
