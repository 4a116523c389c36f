//! `keywright export`: its formats, its files, how certificates refer to their CA, and credentials that can't be read.

use std::{fs, os::unix::fs::PermissionsExt};

use keywright_harness::{
    Commanded, Reply, ReusedServer, Server, Shell, Stub, Text, python_program,
};
use serde_json::{Value, json};

use crate::{
    fixtures::{file_names, listing, name_in, password_for, versions},
    json_of,
};

#[tokio::test]
async fn entries_have_name_type_value_and_optional_metadata() {
    let server = server_with_unusual_values().await;
    let run = Shell::of(&server).run("export").expect(0);
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
    run.output.assert_contains("    password_hash: \"$6$");
    run.errors.assert_contains("Exported 4 credentials");
}

#[tokio::test]
async fn json_is_chosen_by_an_option_or_the_file_extension() {
    let server = server_with_unusual_values().await;
    let shell = Shell::of(&server);
    let by_format = shell.run("export --format json").expect(0);
    let by_output = shell.run("export --output json").expect(0);
    shell.run("export --file a.JSON").expect(0);
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

#[test]
fn a_credential_that_was_not_requested_is_refused() {
    let stub = Stub::start(|request, _, _| {
        if request.line.contains("path=") {
            return Reply::new(200, &listing(["/demo/a", "/demo-2/a"]));
        }
        Reply::new(200, &versions())
    });
    for (command, other) in [
        ("get /b", "/a"),
        ("get /b --versions", "/a"),
        ("export --path /Demo", "/demo-2/a"),
        ("delete --path demo/ --yes", "/demo-2/a"),
    ] {
        let run = stub.shell().run(command).expect(1);
        let reason = format!("the server responded with another credential: {other}\n");
        run.errors.assert_contains(&reason);
        assert_eq!(run.output, "");
    }
    stub.shell().run("get A").expect(0);
    assert!(stub.lines().iter().all(|line| line.starts_with("GET")));
}

#[tokio::test]
async fn a_path_limits_the_export() {
    let server = server_with_unusual_values().await;
    let shell = Shell::of(&server);
    for path in ["/a", "a/", "/A"] {
        let run = shell.run(&["export", "--path", path]).expect(0);
        run.errors.assert_contains("Exported 3 credentials");
        run.output.assert_lacks("name: /b");
    }
    let nothing = shell.run("export --path /nothing").expect(0);
    assert_eq!(nothing.output, "credentials: []\n");
}

#[tokio::test]
async fn another_yaml_parser_reads_the_same_values() {
    let reader = "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))";
    let Some(mut python) = python_program("python3") else {
        return;
    };
    let server = server_with_unusual_values().await;
    for (index, text) in AMBIGUOUS_TEXTS.iter().enumerate() {
        let name = format!("/c/{index}");
        server.stored(&name, "value", json!(text)).await;
        let object = json!({*text: [*text, {*text: 1}]});
        let name = format!("/d/{index}");
        server.stored(&name, "json", object).await;
    }
    let shell = Shell::of(&server);
    let yaml = shell.run("export").expect(0).output;
    let json = shell.run("export --format json").expect(0).output;
    let read = Commanded::finish(python.args(["-c", reader]), &yaml)
        .expect(0)
        .output;
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

async fn server_with_unusual_values() -> ReusedServer {
    let server = Server::reused().await;
    for (name, credential_type, value) in [
        ("/b", "password", json!("first line\nsecond line\n\n")),
        ("/a/number", "value", json!("old")),
        ("/a/number", "value", json!("12")),
        ("/a/user", "user", json!({"password": "secret"})),
    ] {
        server.stored(name, credential_type, value).await;
    }
    let body = r#"{"name":"/a/object","type":"json","metadata":{"owner":"me"},
        "value":{"port":5432,"list":[1.10,123456789012345678901234567890]}}"#;
    let request = server.authorized(reqwest::Method::PUT, "/api/v1/data");
    server.send(request.body(body)).await.expect(200);
    server
}

#[tokio::test]
async fn export_files_have_mode_0600_without_temporary_files() {
    let server = server_with_passwords().await;
    let shell = Shell::of(&server);
    let before = file_names(shell.folder());
    let run = shell.run("export --file export.yml").expect(0);
    assert_eq!(run.json()["exported"], json!(3));
    let mode = fs::metadata(shell.file("export.yml"))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let mut expected = before;
    expected.push("export.yml".to_owned());
    expected.sort();
    assert_eq!(file_names(shell.folder()), expected);
}

#[tokio::test]
async fn an_existing_file_is_overwritten_only_with_force() {
    let server = server_with_passwords().await;
    let shell = Shell::of(&server);
    fs::write(shell.file("export.yml"), "before").unwrap();
    let refused = shell.run("export --file export.yml").expect(1);
    refused.errors.assert_contains("export.yml already exists");
    let actual = fs::read_to_string(shell.file("export.yml")).unwrap();
    assert_eq!(actual, "before");
    shell.run("export --file export.yml --force").expect(0);
    let replaced = fs::read_to_string(shell.file("export.yml")).unwrap();
    assert!(replaced.starts_with("credentials:\n"));
    for wrong in [".", "no/such/folder/export.yml"] {
        shell.run(&["export", "--file", wrong, "--force"]).expect(1);
    }
}

#[tokio::test]
async fn an_export_to_a_named_pipe_does_not_replace_the_pipe() {
    let server = server_with_passwords().await;
    let shell = Shell::of(&server);
    let line = "mkfifo pipe; cat pipe >seen & keywright export --file pipe >summary; wait; head --lines 1 seen; stat --format %F pipe";
    let run = shell.bash(line).expect(0);
    assert_eq!(run.output, "credentials:\nfifo\n");
}

#[tokio::test]
async fn a_terminal_shows_a_progress_bar_and_a_summary() {
    let server = server_with_passwords().await;
    let shell = Shell::of(&server);
    let (status, screen) = shell.on_terminal("export --file export.yml").end();
    assert_eq!(status, Some(0), "{screen}");
    screen.assert_contains("3 of 3");
    screen.assert_contains("exported");
    screen.assert_lacks("secret");
}

async fn server_with_passwords() -> ReusedServer {
    let server = Server::reused().await;
    for name in ["/a", "/b", "/c"] {
        let set = server.set(name, "password", json!("secret"));
        set.await.expect(200);
    }
    server
}

#[tokio::test]
async fn certificates_of_an_old_or_deleted_ca_contain_the_ca() {
    let server = server_with_chain().await;
    let before = exported(&server);
    server.regenerated("/ca").await;
    let entries = exported(&server);
    assert_eq!(entries["/leaf"]["ca"], before["/ca"]["certificate"]);
    assert!(entries["/leaf"].get("ca_name").is_none());
    let run = Shell::of(&server).run("export").expect(0);
    run.errors
        .assert_contains("it was not signed by the active version of /ca");

    server.regenerated("/leaf").await;
    let entries = exported(&server);
    assert_eq!(entries["/leaf"]["ca_name"], json!("/ca"));
    server.delete("/api/v1/data?name=/ca").await.expect(204);
    let leaf = exported(&server)["/leaf"].clone();
    assert_eq!(leaf["ca"], entries["/ca"]["certificate"]);
    assert!(leaf.get("ca_name").is_none());
}

#[tokio::test]
async fn certificates_of_an_unreadable_ca_contain_the_ca() {
    let server = server_with_chain().await;
    let app = server.as_client("app").await;
    server.grant("/leaf", app.actor(), &["read"]).await;
    let shell = Shell::at(&server).variable("KEYWRIGHT_CLIENT_TOKEN", app.token());
    let run = shell.run("export --format json").expect(0);
    let message = "it was signed by /ca, which does not exist or is hidden from you";
    run.errors.assert_contains(message);
    run.errors
        .assert_contains("Exported 1 credential, 0 failed, 1 without ca_name.");
    let json = run.json();
    let leaf = &json["credentials"][0]["value"];
    assert_eq!(leaf["ca"], exported(&server)["/ca"]["certificate"]);
    assert!(leaf.get("ca_name").is_none());
}

#[tokio::test]
async fn the_active_version_is_exported_during_a_rotation() {
    let server = server_with_chain().await;
    let before = exported(&server);
    server.regenerate_as_transitional("/ca").await;
    assert_eq!(exported(&server), before);
}

/// Returns the exported values by name.
fn exported(server: &Server) -> Value {
    let run = Shell::of(server).run("export --format json");
    let json = run.expect(0).json();
    let entries = json["credentials"].as_array().unwrap().iter();
    entries
        .map(|entry| {
            (
                entry["name"].as_str().unwrap().to_owned(),
                entry["value"].clone(),
            )
        })
        .collect()
}

async fn server_with_chain() -> ReusedServer {
    let server = Server::reused().await;
    for (name, parameters) in [
        ("/ca", json!({"is_ca": true})),
        ("/leaf", json!({"ca": "/ca"})),
    ] {
        server.issued(name, parameters).await;
    }
    server
}

#[tokio::test]
async fn an_unreadable_credential_prevents_the_export() {
    let server = damaged().await;
    let shell = Shell::of(&server);
    let run = shell.run("export --file export.yml").expect(1);
    run.errors.assert_contains("could not read /b");
    assert!(!shell.file("export.yml").exists());

    let piped = shell.run("export").expect(1);
    let import = shell.run_with("import -", &piped.output).expect(1);
    import.errors.assert_contains("line ");
}

#[tokio::test]
async fn keep_going_exports_the_rest_and_reports_failures() {
    let server = damaged().await;
    let shell = Shell::of(&server);
    let run = shell
        .run("export --file export.json --keep-going")
        .expect(3);
    run.errors.assert_contains("failed: /b: ");
    let summary = run.json();
    assert_eq!(summary["exported"], json!(2));
    assert_eq!(summary["failed"], json!(1));
    let file = std::fs::read_to_string(shell.file("export.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let entries = file["credentials"].as_array().unwrap().iter();
    let names: Vec<_> = entries.map(|entry| entry["name"].clone()).collect();
    assert_eq!(names, [json!("/a"), json!("/c")]);
}

#[tokio::test]
async fn an_export_without_login_or_server_exits_with_5_or_6() {
    let server = damaged().await;
    Shell::at(&server).run("export").expect(5);
    let stranger = Shell::of(&server).variable("KEYWRIGHT_CLIENT_SECRET", "wrong");
    stranger.run("export").expect(5);
    let away = Shell::of(&server)
        .variable("KEYWRIGHT_CLIENT_SERVER", "https://127.0.0.1:1")
        .variable("KEYWRIGHT_CLIENT_RETRIES", "0");
    let run = away.run("export --file export.yml").expect(6);
    assert!(!away.file("export.yml").exists(), "{run:?}");
}

#[test]
fn credentials_deleted_during_an_export_are_counted() {
    let stub = without_b(ABSENT, &["/a", "/c"]);
    let shell = stub.shell();
    let summary = json_of(shell.run("export --file export.yml"));
    assert_eq!(summary["exported"], json!(2));
    assert_eq!(summary["deleted_meanwhile"], json!(1));
    let file = std::fs::read_to_string(shell.file("export.yml")).unwrap();
    file.assert_lacks("/b");
    let piped = without_b(ABSENT, &["/a", "/c"]).shell().run("export");
    let piped = piped.expect(0);
    let counts = "Exported 2 credentials, 0 failed, 1 deleted or hidden during the export.";
    piped.errors.assert_contains(counts);
    // The server does not reveal which.
    let reason = "Skipped /b: it was deleted, or your permission was removed, during the export.";
    piped.errors.assert_contains(reason);
}

#[test]
fn a_404_for_a_listed_credential_is_a_failure() {
    let stub = without_b(ABSENT, &["/a", "/b", "/c"]);
    let run = stub.shell().run("export").expect(3);
    run.errors
        .assert_contains("Exported 2 credentials, 1 failed");
}

#[test]
fn a_404_with_an_unexpected_body_is_a_failure() {
    for body in ["", "<html>not here</html>", "{\"message\":\"no route\"}"] {
        let stub = without_b(body, &["/a", "/c"]);
        let shell = stub.shell();
        let run = shell.run("export --file export.yml");
        assert_ne!(run.status, Some(0), "{run:?}");
        assert!(!shell.file("export.yml").exists());
        let stub = without_b(body, &["/a", "/c"]);
        let run = stub.shell().run("export --keep-going").expect(3);
        run.errors
            .assert_contains("Exported 2 credentials, 1 failed");
    }
}

#[test]
fn an_export_survives_a_lost_connection() {
    let stub = Stub::start(|request, before, _| match (request.line.as_str(), before) {
        (_, 0) => Reply::lost(),
        (LISTING, _) => Reply::new(200, &listing(["/a", "/b", "/c"])),
        _ => Reply::new(200, &password_for(request, "secret")),
    });
    let shell = stub.shell();
    let summary = json_of(shell.run("export --file export.yml"));
    assert_eq!(summary["exported"], json!(3));
}

/// Starts a stub server that lists `/a`, `/b` and `/c`, responds to a read of `/b` with 404 and this body, and then lists the
/// names in `listed_then`.
fn without_b(body: &'static str, listed_then: &'static [&str]) -> Stub {
    Stub::start(move |request, before, _| match request.line.as_str() {
        LISTING if before == 0 => Reply::new(200, &listing(["/a", "/b", "/c"])),
        LISTING => Reply::new(200, &listing(listed_then.iter().copied())),
        _ if name_in(request) == "/b" => Reply::new(404, body),
        _ => Reply::new(200, &password_for(request, "secret")),
    })
}

const LISTING: &str = "GET /api/v1/data?path=";
const ABSENT: &str = "{\"error\":\"the credential does not exist\"}";

/// Starts a server with three credentials, one of which was corrupted in the database.
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
