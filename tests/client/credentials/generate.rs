//! `keywright generate`.

use std::fs;

use keywright_harness::{Server, Shell};
use serde_json::{Value, json};

use super::shown;
use crate::stub::{Reply, Stub, VERSION};

#[tokio::test]
async fn the_mode_decides_about_an_existing_credential() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    let id = |more: &[&str]| {
        let generate = [&["generate", "/a", "--type", "password"][..], more].concat();
        shown(shell.run(&generate))["id"].clone()
    };
    let first = id(&[]);
    assert_eq!(id(&[]), first);
    assert_eq!(id(&["--length", "12", "--mode", "no-overwrite"]), first);
    let other = id(&["--length", "12"]);
    assert_ne!(other, first);
    assert_eq!(id(&["--length", "12", "--mode", "converge"]), other);
    assert_ne!(id(&["--length", "12", "--mode", "overwrite"]), other);
}

#[tokio::test]
async fn each_type_has_options_for_its_parameters() {
    let server = Server::start().await;
    let shell = Shell::of(&server);
    let letters = ["--length", "20", "--exclude-upper", "--exclude-number"];
    let password = [&["generate", "/password", "-t", "password"][..], &letters].concat();
    let password = shown(shell.run(&password))["value"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(password.len() == 20 && password.bytes().all(|byte| byte.is_ascii_lowercase()));
    let user = shown(shell.run(&["generate", "/user", "-t", "user", "--username", "admin"]));
    assert_eq!(user["value"]["username"], "admin");
    let key = ["generate", "/key", "-t", "ssh", "--ssh-comment", "deploy"];
    let key = shown(shell.run(&key))["value"]["public_key"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(key.ends_with(" deploy"), "{key}");
    let authority = [
        "generate",
        "/ca",
        "-t",
        "certificate",
        "--common-name",
        "ca",
        "--is-ca",
    ];
    assert_eq!(shown(shell.run(&authority))["certificate_authority"], true);
    let metadata = r#"{"owner": "ops"}"#;
    let leaf = [
        "generate",
        "/leaf",
        "-t",
        "certificate",
        "--ca",
        "/ca",
        "--common-name",
        "leaf",
        "--alternative-name",
        "a.example",
        "--alternative-name",
        "b.example",
        "--duration",
        "30",
        "--extended-key-usage",
        "server_auth",
        "--metadata",
        metadata,
    ];
    let leaf = shown(shell.run(&leaf));
    assert_eq!(leaf["metadata"]["owner"], "ops");
    assert_eq!(leaf["duration_used"], 30);
    assert_eq!(
        leaf["value"]["ca"],
        server.versions("/ca").await[0]["value"]["certificate"]
    );
}

#[tokio::test]
async fn a_terminal_gets_a_table_with_the_value() {
    let server = Server::start().await;
    let arguments = ["generate", "/a", "-t", "password", "--length", "20"];
    let shell = Shell::of(&server).variable("NO_COLOR", "1");
    let (status, screen) = shell.on_terminal(&arguments).end();
    assert_eq!(status, Some(0), "{screen}");
    let value = server.versions("/a").await[0]["value"].clone();
    let field = |name: &str| {
        let lines = screen.lines().map(|line| line.split_whitespace().collect());
        let mut lines = lines.filter(|line: &Vec<_>| line.first() == Some(&name));
        lines.next().and_then(|line| line.get(1).copied())
    };
    assert_eq!(field("name"), Some("/a"), "{screen}");
    assert_eq!(field("type"), Some("password"), "{screen}");
    assert_eq!(field("value"), value.as_str(), "{screen}");
}

/// A server with a type of a plugin.
fn server_with_pins() -> Stub {
    Stub::start(|asked, _, _| match asked.line.as_str() {
        "GET /api/v1/types" => {
            let properties = json!({
                "digits": {"type": "integer", "maximum": 12},
                "label": {"type": "string"},
                "places": {"type": "array", "items": {"type": "string"}},
            });
            let parameters = json!({
                "type": "object", "properties": properties, "additionalProperties": false,
            });
            let pin = json!({
                "name": "pin", "summary": "A number.", "plugin": null, "parameters": parameters,
                "value": {"type": "string"},
            });
            Reply::new(200, &json!({"types": [pin]}).to_string())
        }
        _ => Reply::new(200, VERSION),
    })
}

#[test]
fn parameters_by_name_have_the_type_in_the_servers_schema() {
    let stub = server_with_pins();
    let shell = stub.shell();
    fs::write(
        shell.file("more.json"),
        r#"{"label": "x", "places": ["z"]}"#,
    )
    .unwrap();
    let arguments = [
        "generate",
        "/a",
        "-t",
        "pin",
        "--parameters-file",
        "more.json",
        "--param",
        "digits=6",
        "--param",
        "label=40",
        "--param",
        "places=a,b",
        "--param",
        "places=c",
    ];
    shell.run(&arguments).expect(0);
    let sent: Value = serde_json::from_str(&stub.asked().pop().unwrap().body).unwrap();
    let parameters = json!({"label": "40", "places": ["a", "b", "c"], "digits": 6});
    let expected = json!({"name": "/a", "type": "pin", "parameters": parameters});
    assert_eq!(sent, expected);
}

#[test]
fn parameters_that_violate_the_schema_are_not_sent() {
    for (parameter, words) in [
        ("digits=13", "digits: the value is greater"),
        ("digits=x", "digits: "),
        ("colour=red", "colour"),
    ] {
        let stub = server_with_pins();
        let arguments = ["generate", "/a", "-t", "pin", "--param", parameter];
        let run = stub.shell().run(&arguments).expect(2);
        assert!(run.errors.contains(words), "{run:?}");
        assert!(run.errors.contains("digits, label, places"), "{run:?}");
        assert_eq!(stub.lines(), ["GET /api/v1/types"]);
    }
    let stub = server_with_pins();
    let arguments = ["generate", "/a", "-t", "pim", "--param", "digits=6"];
    let run = stub.shell().run(&arguments).expect(2);
    assert!(
        run.errors.contains("unknown type pim; the server has pin"),
        "{run:?}"
    );
}

#[test]
fn parameters_are_sent_unchecked_without_a_description() {
    let stub = Stub::start(|asked, _, _| match asked.line.as_str() {
        "GET /api/v1/types" => Reply::new(404, "{\"error\":\"no such path\"}"),
        _ => Reply::new(200, VERSION),
    });
    let arguments = [
        "generate", "/a", "-t", "pin", "--param", "digits=6", "--param", "a=b",
    ];
    stub.shell().run(&arguments).expect(0);
    let sent: Value = serde_json::from_str(&stub.asked().pop().unwrap().body).unwrap();
    assert_eq!(sent["parameters"], json!({"digits": 6, "a": "b"}));
}
