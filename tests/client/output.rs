//! JSON, YAML and tables, in a pipe and on a terminal.

use keywright_harness::{Server, Shell};
use serde_json::{Value, json};

#[tokio::test]
async fn a_pipe_gets_json_and_a_terminal_gets_a_table_unless_something_else_is_said() {
    let server = Server::start().await;
    server
        .set("/a", "password", json!("secret"))
        .await
        .expect(200);
    let shell = Shell::of(&server);
    let json = shell.run(&["get", "/a"]).expect(0).output;
    assert!(serde_json::from_str::<Value>(&json).is_ok());
    let yaml = shell
        .run(&["get", "/a", "--output", "yaml"])
        .expect(0)
        .output;
    assert!(yaml.contains("\nvalue: secret\n"), "{yaml}");
    let table = shell.run(&["get", "/a", "-o", "table"]).expect(0).output;
    assert!(table.contains("\nvalue    secret\n"), "{table}");
    let by_variable = Shell::of(&server).variable("KEYWRIGHT_CLIENT_OUTPUT", "yaml");
    assert_eq!(by_variable.run(&["get", "/a"]).expect(0).output, yaml);

    let (status, screen) = shell.on_terminal(&["get", "/a"]).end();
    assert_eq!(status, Some(0));
    assert!(screen.contains("\u{1b}[1mvalue\u{1b}[0m"), "{screen:?}");
    let (_, screen) = shell.on_terminal(&["get", "/a", "-o", "json"]).end();
    assert_eq!(screen, json);
}

#[tokio::test]
async fn only_a_terminal_that_wants_them_gets_colours() {
    let server = Server::start().await;
    server.set("/a", "value", json!("v")).await.expect(200);
    for arguments in [["find", "-o", "table"], ["get", "/absent", "--raw"]] {
        let run = Shell::of(&server).run(&arguments);
        assert!(!format!("{run:?}").contains("\\u{1b}"), "{run:?}");
        let plain = Shell::of(&server).variable("NO_COLOR", "1");
        let (_, screen) = plain.on_terminal(&arguments).end();
        assert!(!screen.contains('\u{1b}'), "{screen:?}");
        let (_, screen) = Shell::of(&server).on_terminal(&arguments).end();
        assert!(screen.contains('\u{1b}'), "{screen:?}");
    }
}

#[tokio::test]
async fn a_value_can_t_steer_the_terminal_that_it_is_shown_on() {
    let server = Server::start().await;
    let value = json!("\u{1b}]0;title\u{7}\u{1b}[2J");
    server.set("/a", "value", value).await.expect(200);
    let shell = Shell::of(&server).variable("NO_COLOR", "1");
    let (_, screen) = shell.on_terminal(&["get", "/a"]).end();
    assert!(!screen.contains(['\u{1b}', '\u{7}']), "{screen:?}");
    assert!(screen.contains(r"\u{1b}]0;title\u{7}"), "{screen:?}");
    let (_, screen) = shell.on_terminal(&["get", "/a", "-o", "json"]).end();
    assert!(!screen.contains(['\u{1b}', '\u{7}']), "{screen:?}");
}

#[tokio::test]
async fn numbers_keep_their_digits() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    let value = r#"{"large":123456789012345678901234567890,"small":1.10}"#;
    let arguments = ["set", "/a", "--type", "json", "--value", value];
    shell.run(&arguments).expect(0);
    let raw = shell.run(&["get", "/a", "--raw"]).expect(0).output;
    assert_eq!(raw.trim_end(), value);
    let all = shell.run(&["get", "/a"]).expect(0).output;
    assert!(
        all.contains("\"large\": 123456789012345678901234567890"),
        "{all}"
    );
}
