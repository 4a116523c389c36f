//! `keywright set`.

use std::fs;

use keywright_harness::{Server, Shell};
use serde_json::{Value, json};

use super::shown;

#[tokio::test]
async fn a_terminal_prompts_for_the_value_without_echo() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    let mut terminal = shell.on_terminal(&["set", "/a", "--type", "password", "-o", "json"]);
    terminal.expect("Value: ");
    assert!(!terminal.echoes());
    terminal.type_line("s3cret");
    let (status, screen) = terminal.end();
    assert_eq!(status, Some(0), "{screen}");
    assert_eq!(screen.matches("s3cret").count(), 1, "{screen}");
    assert_eq!(server.versions("/a").await[0]["value"], "s3cret");
}

#[tokio::test]
async fn a_terminal_echoes_the_user_name_but_not_the_password() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    let mut terminal = shell.on_terminal(&["set", "/a", "-t", "user", "-o", "yaml"]);
    terminal.expect("Username: ");
    assert!(terminal.echoes());
    terminal.type_line("admin").expect("Password: ");
    assert!(!terminal.echoes());
    let (status, screen) = {
        terminal.type_line("s3cret");
        terminal.end()
    };
    assert_eq!(status, Some(0), "{screen}");
    let value = &server.versions("/a").await[0]["value"];
    assert_eq!(
        (&value["username"], &value["password"]),
        (&json!("admin"), &json!("s3cret"))
    );
}

#[tokio::test]
async fn an_interrupted_prompt_restores_the_echo_and_sets_nothing() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    let mut terminal = shell.on_terminal(&["set", "/a", "--type", "password"]);
    terminal.expect("Value: ");
    assert!(!terminal.echoes());
    terminal.signal("INT").expect("interrupted");
    assert!(terminal.echoes());
    assert_eq!(terminal.end().0, Some(130));
    assert!(server.versions("/a").await.is_empty());
}

#[tokio::test]
async fn a_pipe_provides_the_value_without_its_trailing_newline() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    let cases = [
        ("password", "s3cret\n", json!("s3cret")),
        ("value", "two\nlines\n\n", json!("two\nlines\n")),
        ("json", "{\"a\": [1]}\n", json!({"a": [1]})),
        ("value", "{\"a\": 1}", json!("{\"a\": 1}")),
    ];
    for (number, (credential_type, input, value)) in cases.into_iter().enumerate() {
        let name = format!("/{number}");
        let run = shell.run_with(&["set", &name, "--type", credential_type], input);
        assert_eq!(shown(run)["value"], value);
    }
    let user = r#"{"username": "a", "password": "b"}"#;
    let set = shown(shell.run_with(&["set", "/user", "-t", "user"], user));
    assert_eq!(set["value"]["password"], "b");
    let run = shell
        .run_with(&["set", "/other", "-t", "user"], "b")
        .expect(2);
    assert!(run.errors.contains("JSON object"), "{run:?}");
    assert!(!run.errors.contains("\"b\""), "{run:?}");
    shell.run(&["set", "/empty", "-t", "value"]).expect(1);
}

#[tokio::test]
async fn fields_are_read_from_files_and_passwords_from_a_pipe() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    let user = ["set", "/user", "-t", "user", "--username", "admin"];
    let set = shown(shell.run_with(&user, "s3cret\n"));
    assert_eq!(set["value"]["username"], "admin");
    assert_eq!(set["value"]["password"], "s3cret");

    let parameters = json!({"common_name": "root", "is_ca": true});
    let made = server.generate("/ca", "certificate", parameters).await;
    let value = made.expect(200).json()["value"].clone();
    for member in ["certificate", "private_key"] {
        fs::write(shell.file(member), value[member].as_str().unwrap()).unwrap();
    }
    let certificate = [
        "set",
        "/copy",
        "-t",
        "certificate",
        "--certificate",
        "certificate",
    ];
    let rest = ["--private-key", "private_key", "--ca-name", "/ca"];
    let set = shown(shell.run(&[&certificate[..], &rest].concat()));
    assert_eq!(set["value"]["private_key"], value["private_key"]);
    assert_eq!(set["value"]["ca"], value["ca"]);

    let key = ["set", "/key", "-t", "rsa", "--private-key", "-"];
    assert_eq!(
        shown(shell.run_with(&key, "a key"))["value"]["private_key"],
        "a key"
    );
    shell
        .run(&["set", "/key", "-t", "rsa", "--private-key", "absent"])
        .expect(1);
    shell
        .run(&[
            "set",
            "/a",
            "-t",
            "rsa",
            "--value",
            "x",
            "--public-key",
            "y",
        ])
        .expect(2);
}

#[tokio::test]
async fn standard_input_is_accepted_for_one_field_only() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    for (members, named) in [
        (
            &["--private-key", "-", "--public-key", "-"][..],
            "private_key, public_key",
        ),
        (&["--ca", "-", "--certificate", "-"], "ca, certificate"),
        (
            &["--username", "-", "--private-key", "-"],
            "private_key, password",
        ),
        (
            &["--username", "me", "--certificate", "-"],
            "certificate, password",
        ),
    ] {
        let arguments = [&["set", "/a", "--type", "other"][..], members].concat();
        let run = shell.run_with(&arguments, "a text").expect(2);
        assert!(run.errors.contains(named), "{run:?}");
    }
    assert!(server.versions("/a").await.is_empty());
    // A user name `-` does not mean standard input.
    let user = ["set", "/user", "--type", "user", "--username", "-"];
    assert_eq!(shown(shell.run_with(&user, "p"))["value"]["username"], "-");
}

#[tokio::test]
async fn every_verb_stores_metadata_verbatim() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    let metadata = r#"{"z":123456789012345678901234567890,"a":1.10}"#;
    let kept = |arguments: &[&str]| {
        let arguments = [arguments, &["--metadata", metadata]].concat();
        let run = shell.run(&arguments).expect(0);
        let compact: String = run.output.split_whitespace().collect();
        assert!(
            compact.contains(&format!("\"metadata\":{metadata}")),
            "{run:#?}"
        );
    };
    kept(&["set", "/a", "--type", "value", "--value", "v"]);
    kept(&["generate", "/b", "--type", "password"]);
    kept(&["regenerate", "/b"]);
}

#[tokio::test]
async fn values_are_read_from_files_and_arguments() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    fs::write(shell.file("value"), "from a file\n").unwrap();
    let metadata = r#"{"owner": "ops"}"#;
    let arguments = [
        "set",
        "/a",
        "-t",
        "value",
        "--value-file",
        "value",
        "--metadata",
        metadata,
    ];
    let set = shown(shell.run(&arguments));
    assert_eq!(set["value"], "from a file");
    assert_eq!(
        set["metadata"],
        serde_json::from_str::<Value>(metadata).unwrap()
    );
    let set = shown(shell.run(&["set", "/a", "-t", "value", "--value", "v"]));
    assert_eq!(
        (&set["value"], &set["metadata"]),
        (&json!("v"), &Value::Null)
    );
    let arguments = [
        "set",
        "/a",
        "-t",
        "value",
        "--value",
        "v",
        "--metadata",
        "[]",
    ];
    shell.run(&arguments).expect(2);
}
