//! `keywright interpolate`.

use std::{fs, os::unix::fs::PermissionsExt};

use keywright_harness::{ReusedServer, Server, Shell, Text};
use serde_json::json;

use crate::json_of;

/// Bindings that refer to a credential and contain a number with more digits than a float can represent.
const DOCUMENT: &str = r#"{"services":[{"label":"db","big":123456789012345678901,"credentials":{"credhub-ref":"((/database))"}}]}"#;

const RESOLVED: &str = r#"{"services":[{"label":"db","big":123456789012345678901,"credentials":{"port":5432,"host":"db.example"}}]}"#;

async fn server() -> ReusedServer {
    let server = Server::reused().await;
    let value = json!({"port": 5432, "host": "db.example"});
    server.stored("/database", "json", value).await;
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
        ("interpolate bindings.json", ""),
        ("interpolate", DOCUMENT),
        ("interpolate -", DOCUMENT),
    ] {
        let run = shell.run_with(arguments, input).expect(0);
        assert_eq!(compact(&run.output), RESOLVED, "{arguments:?}");
        assert_eq!(run.errors, "");
    }
    let run = shell.run_with("interpolate --output yaml", DOCUMENT);
    assert!(run.expect(0).output.contains("port: 5432"));
    // A document without references is unchanged.
    let document = json!({"services": [], "other": {"a": null}});
    let run = shell.run_with("interpolate", &document.to_string());
    assert_eq!(json_of(run), document);
}

#[tokio::test]
async fn interpolate_prompts_for_the_document_on_a_terminal() {
    let server = server().await;
    let shell = Shell::of(&server);
    let mut terminal = shell.on_terminal("interpolate");
    terminal.expect("end it with Ctrl-D");
    // The end of input on a terminal is a control character.
    terminal.type_line(DOCUMENT).type_line("\u{4}");
    let (status, screen) = terminal.end();
    assert_eq!(status, Some(0), "{screen}");
    screen.assert_contains("\n  \"services\": [");
    screen.assert_contains("\"host\": \"db.example\"");
}

#[tokio::test]
async fn the_result_can_be_written_to_a_file_of_mode_0600() {
    let server = server().await;
    let shell = Shell::of(&server);
    let run = shell.run_with("interpolate --file resolved.json", DOCUMENT);
    assert_eq!(run.expect(0).output, "");
    let resolved = shell.file("resolved.json");
    assert_eq!(fs::read_to_string(&resolved).unwrap(), RESOLVED);
    let mode = fs::metadata(&resolved).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn invalid_or_too_long_documents_are_refused() {
    let server = server().await;
    server.stored("/text", "value", json!("x")).await;
    let shell = Shell::of(&server);
    let refers_to =
        |name: &str| json!({"services": [{"credentials": {"credhub-ref": name}}]}).to_string();
    for (document, status, message) in [
        (
            "{".to_owned(),
            1,
            "standard input is not a valid document: ",
        ),
        (String::new(), 1, "standard input is empty"),
        (
            "[]".to_owned(),
            1,
            "standard input must contain a JSON object",
        ),
        (refers_to("/absent"), 4, ""),
        (refers_to("/text"), 1, "/text"),
    ] {
        let run = shell.run_with("interpolate", &document).expect(status);
        assert_eq!(run.output, "", "{document}");
        assert!(run.errors.contains(message), "{document}: {}", run.errors);
    }
    let run = shell.run("interpolate absent.json").expect(1);
    assert!(run.errors.contains("absent.json"), "{}", run.errors);
    let document = |bytes: usize| format!(r#"{{"":"{}"}}"#, "a".repeat(bytes - 7));
    let too_long = document(1024 * 1024 + 1);
    let run = shell.run_with("interpolate", &too_long).expect(1);
    assert!(run.errors.contains("1048576 bytes"), "{}", run.errors);
    let longest = document(1024 * 1024);
    shell.run_with("interpolate", &longest).expect(0);
}
