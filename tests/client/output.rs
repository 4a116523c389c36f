//! The output of the client: JSON, YAML and tables, in a pipe and on a terminal; and the exit statuses that scripts rely on.

use keywright_harness::{Reply, Server, Shell, Stub, Text};
use serde_json::{Value, json};

use crate::fixtures::versions;

#[tokio::test]
async fn pipes_get_json_and_terminals_tables_by_default() {
    let server = Server::reused().await;
    server.stored("/a", "password", json!("secret")).await;
    let shell = Shell::of(&server);
    let json = shell.run("get /a").expect(0).output;
    assert!(serde_json::from_str::<Value>(&json).is_ok());
    let yaml = shell.run("get /a --output yaml").expect(0).output;
    yaml.assert_contains("\nvalue: secret\n");
    let table = shell.run("get /a -o table").expect(0).output;
    table.assert_contains("\nvalue    secret\n");
    let by_variable = Shell::of(&server).variable("KEYWRIGHT_CLIENT_OUTPUT", "yaml");
    assert_eq!(by_variable.run("get /a").expect(0).output, yaml);

    let (status, screen) = shell.on_terminal("get /a").end();
    assert_eq!(status, Some(0));
    screen.assert_contains("\u{1b}[1mvalue\u{1b}[0m");
    let (_, screen) = shell.on_terminal("get /a -o json").end();
    assert_eq!(screen, json);
}

#[tokio::test]
async fn colors_are_used_only_on_terminals_without_no_color() {
    let server = Server::reused().await;
    server.stored("/a", "value", json!("v")).await;
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
async fn control_characters_are_escaped_on_terminals_but_not_in_pipes() {
    let control_characters = ['\u{7f}', '\u{85}', '\u{9b}', '\u{202e}', '\u{2066}'];
    let value: String = control_characters.iter().collect();
    let server = Server::reused().await;
    server.stored("/a", "value", json!(value)).await;
    let document = json!({"a": value});
    let shell = Shell::of(&server).variable("NO_COLOR", "1");
    std::fs::write(shell.file("document.json"), document.to_string()).unwrap();
    for (arguments, pointer) in [
        ("get /a -o json", "/value"),
        ("get /a --versions 1 -o json", "/data/0/value"),
        ("interpolate document.json -o json", "/a"),
        ("interpolate document.json -o table", "/a"),
    ] {
        let (_, screen) = shell.on_terminal(arguments).end();
        assert!(!screen.contains(control_characters), "{screen}");
        screen.assert_contains("\\u009b\\u202e");
        let shown: Value = serde_json::from_str(&screen).unwrap();
        assert_eq!(shown.pointer(pointer), Some(&json!(value)), "{arguments:?}");
    }
    let piped = shell.run("get /a -o json").expect(0).output;
    piped.assert_contains(&value);
    let (_, screen) = shell.on_terminal("get /a -o yaml").end();
    assert!(!screen.contains(control_characters), "{screen}");
    let title = json!("\u{1b}]0;title\u{7}\u{1b}[2J");
    server.stored("/title", "value", title).await;
    let (_, screen) = shell.on_terminal("get /title").end();
    assert!(!screen.contains(['\u{1b}', '\u{7}']), "{screen}");
    screen.assert_contains(r"\u{1b}]0;title\u{7}");
    let hostile = "find --ba\u{1b}]0;title\u{7}";
    for arguments in ["get /title -o json", hostile] {
        let (_, screen) = shell.on_terminal(arguments).end();
        assert!(!screen.contains(['\u{1b}', '\u{7}']), "{screen}");
    }
}

#[test]
fn field_names_with_control_characters_are_escaped() {
    let response = r#"{"data":[{"type":"odd","version_created_at":"2026-01-01T00:00:00Z","name":"/a",
        "id":"8563075f-ca25-4adf-9acb-a4be6a9077fd","metadata":{"n":1.10},"value":{"\u001b[2J\u009b":"x","\u202eb\nc":"y"}}]}"#;
    let stub = Stub::start(move |_, _, _| Reply::new(200, response));
    let shell = stub.shell().variable("NO_COLOR", "1");
    let (status, screen) = shell.on_terminal("get /a").end();
    assert_eq!(status, Some(0), "{screen}");
    assert!(
        !screen.contains(['\u{1b}', '\u{9b}', '\u{202e}']),
        "{screen}"
    );
    screen.assert_contains(r"\u{1b}[2J\u{9b}  x");
    screen.assert_contains(r"\u{202e}b c");
    assert!(screen.contains(r#" {"n":1.10}"#), "{screen}");
}

#[test]
fn text_of_a_server_does_not_look_like_another_message() {
    let stub = Stub::start(|_, _, _| Reply::new(400, r#"{"error":"no\nkeywright: yes"}"#));
    let run = stub.shell().run("get /a").expect(1);
    assert_eq!(run.errors, "keywright: no\n    keywright: yes\n");
    let found =
        r#"{"credentials":[{"name":"/a\n/b","version_created_at":"2026-01-01T00:00:00Z"}]}"#;
    let stub = Stub::start(move |_, _, _| Reply::new(200, found));
    let run = stub.shell().run("find --names").expect(0);
    assert_eq!(run.output, "/a\\u{a}/b\n");
    let value = r#"{"data":[{"type":"value","version_created_at":"2026-01-01T00:00:00Z","id":"1","name":"/a","metadata":null,"value":"a\u001b]0;x\u0007"}]}"#;
    let values = Stub::start(move |_, _, _| Reply::new(200, value));
    let get = "get /a --raw";
    let (_, screen) = values.shell().on_terminal(get).end();
    assert_eq!(screen, "a\\u{1b}]0;x\\u{7}\n");
    assert_eq!(values.shell().run(get).expect(0).output, "a\u{1b}]0;x\u{7}");
    let shell = stub.shell();
    let mut terminal = shell.on_terminal("delete --path /");
    terminal.expect("[y/N]: ").type_line("n");
    terminal.end().1.assert_contains("  /a\n    /b\n");
}

#[tokio::test]
async fn numbers_keep_their_digits() {
    let server = Server::reused().await;
    let shell = Shell::of(&server);
    let value = r#"{"large":123456789012345678901234567890,"small":1.10}"#;
    let arguments = ["set", "/a", "--type", "json", "--value", value];
    shell.run(&arguments).expect(0);
    let raw = shell.run("get /a --raw").expect(0).output;
    assert_eq!(raw.trim_end(), value);
    let all = shell.run("get /a").expect(0).output;
    all.assert_contains("\"large\": 123456789012345678901234567890");
    let yaml = ["get", "/a", "--output", "yaml"];
    let yaml = shell.run(&yaml).expect(0).output;
    let fields = "\nvalue:\n  large: 123456789012345678901234567890\n  small: 1.10\n";
    yaml.assert_contains(fields);
}

#[tokio::test]
async fn each_outcome_has_its_exit_status() {
    let server = Server::reused().await;
    server.stored("/a", "password", json!("x")).await;
    let developer = || Shell::of(&server);
    let stranger = || developer().variable("KEYWRIGHT_CLIENT_SECRET", "wrong");
    let anonymous = || Shell::at(&server);
    let unusable = || Shell::new().variable("KEYWRIGHT_CLIENT_SERVER", "foo");
    let away = || {
        developer()
            .variable("KEYWRIGHT_CLIENT_SERVER", "https://127.0.0.1:1")
            .variable("KEYWRIGHT_CLIENT_RETRIES", "0")
    };
    let get = "get /a";
    for (what, shell, arguments, status, words) in [
        ("done", developer(), get, 0, ""),
        ("refused", developer(), "generate /b -t json", 1, "generat"),
        (
            "refused",
            developer(),
            "set /a -t value --value x",
            1,
            "type",
        ),
        (
            "no such option",
            developer(),
            "get /a --nonsense",
            2,
            "--nonsense",
        ),
        ("no name", developer(), "get", 2, "NAME"),
        ("absent", developer(), "get /absent", 4, "does not exist"),
        (
            "no such field",
            developer(),
            "get /a --member x",
            4,
            "field x",
        ),
        ("absent", developer(), "delete /absent", 4, "does not exist"),
        (
            "nothing below",
            developer(),
            "delete --path /none --yes",
            4,
            "no credentials below",
        ),
        ("wrong secret", stranger(), get, 5, "invalid_client"),
        ("not logged in", anonymous(), get, 5, "keywright login"),
        ("no server", Shell::new(), get, 1, "--server"),
        (
            "unusable address",
            unusable(),
            get,
            1,
            "invalid server address",
        ),
        ("unreachable", away(), get, 6, "could not reach "),
    ] {
        let run = shell.run(arguments);
        assert_eq!(run.status, Some(status), "{what}: {run:#?}");
        assert!(run.errors.contains(words), "{what}: {run:#?}");
        assert_eq!(run.output.is_empty(), status != 0, "{what}: {run:#?}");
    }
}

#[test]
fn missing_and_empty_names_and_paths_are_usage_errors() {
    let empty = "a credential name must not be empty";
    let cases: [(&[&str], &str); 6] = [
        (&["get", ""], empty),
        (&["delete", ""], empty),
        (&["delete", "--path", "", "--yes"], "use `/` for all"),
        (&["bulk-regenerate", "/ca", "--path", ""], "use `/` for all"),
        (&["delete"], "--path"),
        (
            &["bulk-regenerate"],
            "<CA|--generated-by <DIGEST>|--derived-from <NAME>>",
        ),
    ];
    for (arguments, words) in cases {
        let run = Shell::new().run(arguments).expect(2);
        run.errors.assert_contains(words);
    }
}

#[tokio::test]
async fn missing_write_permission_exits_with_status_5() {
    let server = Server::reused().await;
    let app = server.as_client("app").await;
    let shell = Shell::at(&server).variable("KEYWRIGHT_CLIENT_TOKEN", app.token());
    let run = shell.run("generate /a --type password").expect(5);
    run.errors.assert_contains("may not write");
    shell.run("get /a").expect(4);
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
        let run = stub.shell().run("get /a").expect(exit);
        assert_eq!(stub.lines().len(), 1, "redirections are not followed");
        assert!(
            !run.errors.contains('\u{1b}') && run.output.is_empty(),
            "{run:?}"
        );
        // Malformed content may be a secret.
        run.errors.assert_lacks("hunter2");
        let deleted = stub.shell().run("delete /a").expect(exit);
        if status == 200 {
            deleted.errors.assert_contains("the response has a body");
        }
    }
}

#[test]
fn a_very_long_text_does_not_widen_its_column() {
    let long = "x".repeat(70_000);
    let found = json!({"credentials": [
        {"name": "/a", "version_created_at": "now"}, {"name": long, "version_created_at": "now"},
    ]});
    let stub = Stub::start(move |_, _, _| Reply::new(200, &found.to_string()));
    let run = stub.shell().run("find -o table").expect(0);
    let row = format!("/a{}now", " ".repeat(1_000));
    assert_eq!(run.output.lines().nth(1), Some(row.as_str()));
    let mut version: Value = serde_json::from_str(&versions()).unwrap();
    version["data"][0]["type"] = json!("odd");
    version["data"][0]["value"] = json!({ "x".repeat(70_000): "y" });
    let stub = Stub::start(move |_, _, _| Reply::new(200, &version.to_string()));
    let run = stub.shell().run("get /a -o table").expect(0);
    let row = format!("name{}/a", " ".repeat(998));
    assert_eq!(run.output.lines().next(), Some(row.as_str()));
}

#[test]
fn the_message_of_a_too_large_error_is_not_printed() {
    for (length, message) in [
        (1024 * 1024, None),
        (
            1024 * 1024 + 1,
            Some("the server responded with status 404"),
        ),
    ] {
        let frame = r#"{"error":""}"#;
        let text = "x".repeat(length - frame.len());
        let body = frame.replace("\"}", &format!("{text}\"}}"));
        let stub = Stub::start(move |_, _, _| Reply::new(404, &body));
        let run = stub.shell().run("get /a").expect(4);
        let expected = format!("keywright: {}\n", message.unwrap_or(&text));
        assert!(run.errors == expected, "{length}");
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
