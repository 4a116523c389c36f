//! The formats of an export.

use keywright_harness::{Program, Server, Shell, python_program};
use serde_json::{Value, json};

#[tokio::test]
async fn entries_have_name_type_value_and_optional_metadata() {
    let server = server().await;
    let run = Shell::of(&server).run(&["export"]).expect(0);
    let expected = "credentials:
- name: /a/number
  type: value
  value: \"12\"
- name: /a/object
  type: json
  value:
    port: 5432
    list:
      - 1.10
      - 123456789012345678901234567890
  metadata:
    owner: me
- name: /a/user
  type: user
  value:
    username: null
    password: secret
- name: /b
  type: password
  value: \"first line\\nsecond line\\n\\n\"
";
    let written: String = run
        .output
        .split_inclusive('\n')
        .filter(|line| !line.contains("password_hash"))
        .collect();
    assert_eq!(written, expected);
    assert!(run.output.contains("    password_hash: \"$6$"));
    assert!(run.errors.contains("exported 4 credentials"), "{run:?}");
}

#[tokio::test]
async fn json_is_chosen_by_an_option_or_the_file_extension() {
    let server = server().await;
    let shell = Shell::of(&server);
    let by_format = shell.run(&["export", "--format", "json"]).expect(0);
    let by_output = shell.run(&["export", "--output", "json"]).expect(0);
    shell.run(&["export", "--file", "a.JSON"]).expect(0);
    let by_name = std::fs::read_to_string(shell.file("a.JSON")).unwrap();
    assert_eq!(by_format.output, by_output.output);
    assert_eq!(by_format.output, by_name);
    assert!(by_name.contains(r#"{"port":5432,"list":[1.10,123456789012345678901234567890]}"#));
    let json: Value = serde_json::from_str(&by_name).unwrap();
    let names: Vec<_> = json["credentials"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 4);
    assert_eq!(
        *names[3],
        json!({"name": "/b", "type": "password", "value": "first line\nsecond line\n\n"})
    );
}

#[tokio::test]
async fn a_path_limits_the_export() {
    let server = server().await;
    let shell = Shell::of(&server);
    for path in ["/a", "a/", "/A"] {
        let run = shell.run(&["export", "--path", path]).expect(0);
        assert!(run.errors.contains("exported 3 credentials"), "{run:?}");
        assert!(!run.output.contains("name: /b"), "{run:?}");
    }
    let nothing = shell.run(&["export", "--path", "/nothing"]).expect(0);
    assert_eq!(nothing.output, "credentials: []\n");
}

#[tokio::test]
async fn another_yaml_parser_reads_the_same_values() {
    let reader = "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))";
    let Some(mut python) = python_program("python3") else {
        return;
    };
    let server = server().await;
    for (index, text) in AMBIGUOUS_TEXTS.iter().enumerate() {
        let name = format!("/c/{index}");
        server.set(&name, "value", json!(text)).await.expect(200);
        let object = json!({*text: [*text, {*text: 1}]});
        let name = format!("/d/{index}");
        server.set(&name, "json", object).await.expect(200);
    }
    let shell = Shell::of(&server);
    let yaml = shell.run(&["export"]).expect(0).output;
    let json = shell.run(&["export", "--format", "json"]).expect(0).output;
    let read = Program::finish(python.args(["-c", reader]), &yaml).expect_success();
    let read: Value = serde_json::from_str(&read).unwrap();
    let expected: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(read, expected);
}

/// Texts that some YAML parsers don't read as strings if unquoted.
const AMBIGUOUS_TEXTS: [&str; 28] = [
    "yes",
    "No",
    "on",
    "y",
    "null",
    "~",
    "true",
    "0",
    "1e3",
    "0o17",
    "017",
    "1_000",
    "12:30:45",
    "2026-11-22",
    ".inf",
    "=",
    "<<",
    "- a",
    "a: b",
    "a #b",
    "#a",
    "*a",
    "&a",
    "!a",
    "%a",
    "@a",
    " lead\ntrail \n",
    "ä\u{85}\u{2028}\u{feff}\t\u{7f}😀",
];

async fn server() -> Server {
    let server = Server::start().await;
    for (name, credential_type, value) in [
        ("/b", "password", json!("first line\nsecond line\n\n")),
        ("/a/number", "value", json!("old")),
        ("/a/number", "value", json!("12")),
        ("/a/user", "user", json!({"password": "secret"})),
    ] {
        server.set(name, credential_type, value).await.expect(200);
    }
    let body = r#"{"name":"/a/object","type":"json","metadata":{"owner":"me"},
        "value":{"port":5432,"list":[1.10,123456789012345678901234567890]}}"#;
    let request = server.authorized(reqwest::Method::PUT, "/api/v1/data");
    server.send(request.body(body)).await.expect(200);
    server
}
