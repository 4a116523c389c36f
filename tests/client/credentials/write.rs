//! The commands that add versions: `set`, `generate` and `regenerate`.

use std::fs;

use keywright_harness::{Arguments, Reply, Server, Shell, Stub, Text};
use serde_json::{Map, Value, json};

use crate::{fixtures::VERSION, json_of};

#[tokio::test]
async fn prompts_echo_only_user_names_even_if_interrupted() {
    let server = Server::reused().await;
    let shell = Shell::of(&server);
    let mut terminal = shell.on_terminal("set /a --type password -o json");
    terminal.expect("Value: ");
    assert!(!terminal.echoes());
    terminal.type_line("s3cret");
    let (status, screen) = terminal.end();
    assert_eq!(status, Some(0), "{screen}");
    assert_eq!(screen.matches("s3cret").count(), 1, "{screen}");
    assert_eq!(server.versions("/a").await[0]["value"], "s3cret");

    let mut terminal = shell.on_terminal("set /user -t user -o yaml");
    terminal.expect("Username: ");
    assert!(terminal.echoes());
    terminal.type_line("admin").expect("Password: ");
    assert!(!terminal.echoes());
    let (status, screen) = {
        terminal.type_line("s3cret");
        terminal.end()
    };
    assert_eq!(status, Some(0), "{screen}");
    let value = &server.versions("/user").await[0]["value"];
    assert_eq!(
        (&value["username"], &value["password"]),
        (&json!("admin"), &json!("s3cret"))
    );

    let mut terminal = shell.on_terminal("set /interrupted --type password");
    terminal.expect("Value: ");
    assert!(!terminal.echoes());
    terminal.signal("INT").expect("interrupted");
    assert!(terminal.echoes());
    assert_eq!(terminal.end().0, Some(130));
    assert!(server.versions("/interrupted").await.is_empty());
}

#[tokio::test]
async fn a_pipe_provides_the_value_without_its_trailing_newline() {
    let server = Server::reused().await;
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
        assert_eq!(json_of(run)["value"], value);
    }
    let user = r#"{"username": "a", "password": "b"}"#;
    let set = json_of(shell.run_with("set /user -t user", user));
    assert_eq!(set["value"]["password"], "b");
    let run = shell.run_with("set /other -t user", "b").expect(2);
    run.errors.assert_contains("JSON object");
    run.errors.assert_lacks("\"b\"");
    shell.run("set /empty -t value").expect(1);
}

#[tokio::test]
async fn fields_are_read_from_files_and_passwords_from_a_pipe() {
    let server = Server::reused().await;
    let shell = Shell::of(&server);
    let user = "set /user -t user --username admin";
    let set = json_of(shell.run_with(user, "s3cret\n"));
    assert_eq!(set["value"]["username"], "admin");
    assert_eq!(set["value"]["password"], "s3cret");

    let value = server.generate_authority("/ca", None).await["value"].clone();
    for field in ["certificate", "private_key"] {
        fs::write(shell.file(field), value[field].as_str().unwrap()).unwrap();
    }
    let copy = "set /copy -t certificate --certificate certificate --private-key private_key --ca-name /ca";
    let set = json_of(shell.run(copy));
    assert_eq!(set["value"]["private_key"], value["private_key"]);
    assert_eq!(set["value"]["ca"], value["ca"]);

    let key = ["set", "/key", "-t", "rsa", "--private-key", "-"];
    assert_eq!(
        json_of(shell.run_with(&key, "a key"))["value"]["private_key"],
        "a key"
    );
    shell.run("set /key -t rsa --private-key absent").expect(1);
    for line in [
        "set /a -t rsa --value x --public-key y",
        "set /a -t rsa --value-file x --public-key y",
    ] {
        let conflict = shell.run(line).expect(2);
        conflict.errors.assert_contains("--public-key");
        conflict.errors.assert_lacks("--certificate");
    }
    let number = shell.run("generate /a -t password --length -").expect(2);
    number
        .errors
        .assert_contains("from 0 to 18446744073709551615");
}

#[tokio::test]
async fn standard_input_is_accepted_for_one_field_only() {
    let server = Server::reused().await;
    let shell = Shell::of(&server);
    let password = "and the password";
    for (fields, named) in [
        (
            "--private-key - --public-key -",
            "--private-key and --public-key".to_owned(),
        ),
        (
            "--ca - --certificate -",
            "--ca and --certificate".to_owned(),
        ),
        (
            "--username - --private-key -",
            format!("--private-key {password}"),
        ),
        (
            "--username me --certificate -",
            format!("--certificate {password}"),
        ),
    ] {
        let arguments = format!("set /a --type other {fields}");
        let run = shell.run_with(&arguments, "a text").expect(2);
        run.errors.assert_contains(&named);
    }
    assert!(server.versions("/a").await.is_empty());
    // A user name `-` does not mean standard input.
    let user = "set /user --type user --username -";
    assert_eq!(json_of(shell.run_with(user, "p"))["value"]["username"], "-");
}

#[test]
fn options_for_fields_of_other_types_are_refused() {
    for (credential_type, option) in [
        ("value", "--certificate"),
        ("Password", "--username"),
        ("user", "--ca-name"),
        ("rsa", "--ca"),
        ("ssh", "--username"),
        ("certificate", "--public-key"),
    ] {
        let arguments = ["set", "/a", "--type", credential_type, option, "x"];
        let run = Shell::new().run(&arguments).expect(2);
        let message =
            format!("{option} is not an option for credentials of type {credential_type}");
        run.errors.assert_contains(&message);
    }
}

#[tokio::test]
async fn each_command_that_writes_stores_metadata_verbatim() {
    let server = Server::reused().await;
    let shell = Shell::of(&server);
    let metadata = r#"{"z":123456789012345678901234567890,"a":1.10}"#;
    let assert_stored_verbatim = |arguments: &[&str]| {
        let arguments = [arguments, &["--metadata", metadata]].concat();
        let run = shell.run(&arguments).expect(0);
        let compact: String = run.output.split_whitespace().collect();
        compact.assert_contains(&format!("\"metadata\":{metadata}"));
    };
    assert_stored_verbatim(&["set", "/a", "--type", "value", "--value", "v"]);
    assert_stored_verbatim(&["generate", "/b", "--type", "password"]);
    assert_stored_verbatim(&["regenerate", "/b"]);
}

#[tokio::test]
async fn values_are_read_from_files_and_arguments() {
    let server = Server::reused().await;
    let shell = Shell::of(&server);
    fs::write(shell.file("value"), "from a file\n").unwrap();
    let metadata = r#"{"owner": "ops"}"#;
    let mut arguments = "set /a -t value --value-file value --metadata".list();
    arguments.push(metadata);
    let set = json_of(shell.run(&arguments));
    assert_eq!(set["value"], "from a file");
    assert_eq!(set["metadata"], json!({"owner": "ops"}));
    let set = json_of(shell.run("set /a -t value --value v"));
    assert_eq!(set["value"], "v");
    assert_eq!(set["metadata"], Value::Null);
    let refused = shell.run("set /a -t value --value v --metadata [\"hunter2\"]");
    refused.expect(2).errors.assert_lacks("hunter2");
}

#[tokio::test]
async fn the_mode_determines_whether_generate_adds_a_version() {
    let server = Server::reused().await;
    let shell = Shell::of(&server);
    let id = |more: &[&str]| {
        let generate = [&["generate", "/a", "--type", "password"][..], more].concat();
        json_of(shell.run(&generate))["id"].clone()
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
    let server = Server::reused().await;
    let shell = Shell::of(&server);
    let password = "generate /password -t password --length 20 --exclude-upper --exclude-number";
    let password = json_of(shell.run(password))["value"].take();
    let password = password.as_str().unwrap();
    assert!(password.len() == 20 && password.bytes().all(|byte| byte.is_ascii_lowercase()));
    let user = json_of(shell.run("generate /user -t user --username admin"));
    assert_eq!(user["value"]["username"], "admin");
    let key = ["generate", "/key", "-t", "ssh", "--ssh-comment", "deploy"];
    let key = json_of(shell.run(&key))["value"]["public_key"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(key.ends_with(" deploy"), "{key}");
    let authority = "generate /ca -t certificate --common-name ca --is-ca";
    let authority = json_of(shell.run(authority));
    assert_eq!(authority["certificate_authority"], true);
    let leaf = "generate /leaf -t certificate --ca /ca --common-name leaf --alternative-name a.example \
                --alternative-name b.example --duration 30 --extended-key-usage server_auth --metadata {\"owner\":\"ops\"}";
    let leaf = json_of(shell.run(leaf));
    assert_eq!(leaf["metadata"]["owner"], "ops");
    assert_eq!(leaf["duration_used"], 30);
    assert_eq!(leaf["value"]["ca"], authority["value"]["certificate"]);
}

#[tokio::test]
async fn generate_prints_a_table_on_a_terminal() {
    let server = Server::reused().await;
    let arguments = "generate /a -t password --length 20";
    let shell = Shell::of(&server).variable("NO_COLOR", "1");
    let (status, screen) = shell.on_terminal(arguments).end();
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

/// Starts a stub server with a plugin for the type `pin`.
fn server_with_pins() -> Stub {
    Stub::start(|request, _, _| match request.line.as_str() {
        "GET /api/v1/types" => {
            let properties = json!({
                "digits": {"type": "integer", "maximum": 12},
                "label": {"type": "string", "enum": ["x", "40"]},
                "kept": {"type": "string", "readOnly": true},
                "places": {"type": "array", "items": {"type": "string"}},
                "alternative_names": {"type": "array", "items": {"maxLength": 1}},
            });
            let parameters = json!({
                "type": "object", "properties": properties, "required": ["digits"], "additionalProperties": false,
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
fn parameters_by_name_have_the_type_in_the_schema() {
    let stub = server_with_pins();
    let shell = stub.shell();
    let more = r#"{"label": "x", "places": ["z"]}"#;
    fs::write(shell.file("more.json"), more).unwrap();
    let generate = "generate /a -t pin --parameters-file more.json --param digits=6 --param label=40 --param places=a,b \
                    --param places=c";
    shell.run(generate).expect(0);
    let sent: Value = serde_json::from_str(&stub.requests().pop().unwrap().body).unwrap();
    let parameters = json!({"label": "40", "places": ["a", "b", "c"], "digits": 6});
    let expected = json!({"name": "/a", "type": "pin", "parameters": parameters});
    assert_eq!(sent, expected);
}

#[test]
fn parameters_that_violate_the_schema_are_not_sent() {
    for (parameter, words) in [
        (
            "digits=13",
            "digits: the value is greater than the maximum of 12",
        ),
        ("digits=x", "digits: must be of type integer"),
        ("label=x", "digits is required"),
        ("colour=red", "unknown parameter colour"),
    ] {
        let stub = server_with_pins();
        let arguments = ["generate", "/a", "-t", "pin", "--param", parameter];
        let run = stub.shell().run(&arguments).expect(2);
        run.errors.assert_contains(words);
        run.errors.assert_contains("digits, label, places");
        assert_eq!(stub.lines(), ["GET /api/v1/types"]);
    }
    for (arguments, words) in [
        ("pin --alternative-name ab", " --alternative-name/0: "),
        ("pin --param label=y", r#"label: must be one of "x", "40""#),
        ("pim", "unknown type pim; `keywright types` lists the types"),
    ] {
        let line = format!("generate /a --param digits=6 -t {arguments}");
        let run = server_with_pins().shell().run(&line).expect(2);
        run.errors.assert_contains(words);
    }
}

#[test]
fn schemas_that_take_long_to_validate_are_left_to_the_server() {
    let twice =
        |number: usize| json!({"allOf": vec![json!({"$ref": format!("#/$defs/{number}")}); 2]});
    let definitions: Map<_, _> = (0..64)
        .map(|number| (number.to_string(), twice(number + 1)))
        .chain([("64".to_owned(), json!({}))])
        .collect();
    let patterns: Vec<_> = (0..2_000)
        .map(|number| json!({"pattern": format!("(?:[a-z]{{200}}){{{number}}}")}))
        .collect();
    let nested = (0..60).fold(
        json!({}),
        |inner, _| json!({"anyOf": [inner], "unevaluatedProperties": {"type": "string"}}),
    );
    for parameters in [
        nested,
        json!({"$defs": definitions, "allOf": [{"$ref": "#/$defs/0"}]}),
        json!({"properties": {"digits": {"allOf": patterns}}}),
        json!({"properties": {"digits": {"pattern": "(?:[a-z]{200}){200}"}}}),
    ] {
        let pin = json!({
            "name": "pin", "summary": "A number.", "plugin": null, "parameters": parameters, "value": {},
        });
        let types = json!({"types": [pin]}).to_string();
        let stub = Stub::start(move |request, _, _| match request.line.as_str() {
            "GET /api/v1/types" => Reply::new(200, &types),
            _ => Reply::new(200, VERSION),
        });
        let arguments = "generate /a -t pin --param digits=\"x\"";
        stub.shell().run(arguments).expect(0);
        assert_eq!(stub.lines(), ["GET /api/v1/types", "POST /api/v1/data"]);
    }
}

#[test]
fn duplicate_parameters_are_refused() {
    for parameters in [
        "--param digits=6 --param digits=7",
        "--length 5 --param length=6",
        "--alternative-name a --param alternative_names=b",
    ] {
        let shell = server_with_pins().shell();
        let run = shell.run(&format!("generate /a -t pin {parameters}"));
        run.expect(2).errors.assert_contains(
            ": duplicate parameter; give it once, with its option or with `--param`",
        );
    }
}

#[test]
fn parameters_are_sent_unchecked_if_the_server_lists_no_types() {
    let stub = Stub::start(|request, _, _| match request.line.as_str() {
        "GET /api/v1/types" => Reply::new(404, "{\"error\":\"no such path\"}"),
        _ => Reply::new(200, VERSION),
    });
    let arguments = "generate /a -t pin --param digits=6 --param a=b";
    stub.shell().run(arguments).expect(0);
    let sent: Value = serde_json::from_str(&stub.requests().pop().unwrap().body).unwrap();
    assert_eq!(sent["parameters"], json!({"digits": 6, "a": "b"}));
}

#[tokio::test]
async fn regenerate_adds_a_version_with_the_same_parameters() {
    let server = Server::reused().await;
    let parameters = json!({"length": 12});
    server.generated("/a", "password", parameters).await;
    let shell = Shell::of(&server);
    let metadata = r#"{"owner":"ops"}"#;
    let made = json_of(shell.run(&["regenerate", "/a", "--metadata", metadata]));
    assert_eq!(made["metadata"]["owner"], "ops");
    assert_eq!(made["value"].as_str().unwrap().len(), 12);
    assert_eq!(server.versions("/a").await.len(), 2);
    let (status, screen) = shell.on_terminal("regenerate /a").end();
    assert_eq!(status, Some(0), "{screen}");
    assert_eq!(server.versions("/a").await.len(), 3);
}
