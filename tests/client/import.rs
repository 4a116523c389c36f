//! `keywright import`: files of other clients, the order of certificates, failures, and dry runs.

use std::fmt::Write;

use keywright_harness::{Server, Shell, Text};
use serde_json::{Value, json};

use crate::fixtures;

#[tokio::test]
async fn a_file_of_another_client_is_imported() {
    let source = Server::reused().await;
    source.issued("/ca", json!({"is_ca": true})).await;
    source.issued("/leaf", json!({"ca": "/ca"})).await;
    let made = fixtures::stored(&source, "").await;
    let (ca, leaf) = (&made["/ca"][1], &made["/leaf"][1]);
    let file = FOREIGN_FILE
        .replace("@leaf-key", &block(&leaf["private_key"]))
        .replace("@leaf", &block(&leaf["certificate"]))
        .replace("@ca-key", &block(&ca["private_key"]))
        .replace("@ca", &block(&ca["certificate"]));
    let server = Server::reused().await;
    let shell = Shell::of(&server);
    fixtures::file(&shell, "export.yml", &file);
    shell.run("import export.yml").expect(0);
    let stored = fixtures::stored(&server, "").await;
    let value = |name: &str| &stored[name][1];
    assert_eq!(*value("/dep/leaf"), *leaf);
    assert_eq!(*value("/dep/ca"), *ca);
    assert_eq!(value("/dep/number"), &json!("5432"));
    assert_eq!(value("/dep/large"), &json!("12345678901234567890123"));
    assert_eq!(value("/dep/yes"), &json!("yes"));
    assert_eq!(value("/dep/date"), &json!("2026-11-22"));
    assert_eq!(value("/dep/octal"), &json!("0755"));
    assert_eq!(value("/dep/motd"), &json!("line one\nline two\n"));
    assert_eq!(
        value("/dep/json"),
        &json!({
            "port": 5432, "on": true, "ratio": 0.5, "words": ["no", "null"], "none": null,
            "1": "number", "true": "word",
        })
    );
    assert_eq!(
        *value("/dep/user"),
        json!({"username": "admin", "password": "shared"})
    );
    assert_eq!(value("/dep/shared"), &json!("shared"));
    assert_eq!(stored["/dep/shared"][2], json!({"team": "a", "tier": 1}));
    let listed = server.get("/api/v1/certificates?name=/dep/leaf").await;
    assert_eq!(
        listed.expect(200).json()["certificates"][0]["signed_by"],
        json!("/dep/ca")
    );
}

/// Returns a text as a YAML block scalar below a field.
fn block(text: &Value) -> String {
    let lines = text.as_str().unwrap().lines();
    let lines: Vec<String> = lines.map(|line| format!("      {line}\n")).collect();
    format!("|\n{}", lines.concat())
}

const FOREIGN_FILE: &str = r#"---
credentials:
- name: /dep/leaf
  type: certificate
  value:
    ca: ""
    ca_name: /dep/ca
    certificate: @leaf
    private_key: @leaf-key
- name: /dep/ca
  type: certificate
  value:
    ca: @ca
    certificate: @ca
    private_key: @ca-key
- name: /dep/number
  type: value
  value: 5432
- name: /dep/large
  type: value
  value: 12345678901234567890123
- name: dep/yes
  type: password
  value: yes
- name: /dep/date
  type: value
  value: 2026-11-22
- name: /dep/octal
  type: value
  value: 0755
- name: /dep/motd
  type: value
  value: |
    line one
    line two
- name: /dep/json
  type: json
  value: {port: 5432, "on": true, ratio: .5, words: [no, "null"], none: ~, 1: number, true: word}
- name: /dep/shared
  type: password
  value: &shared shared
  metadata: {team: a, tier: 1}
- name: /dep/user
  type: user
  value:
    username: admin
    password: *shared
    password_hash: $6$rounds=5000$abc$def
- name: /dep/ssh
  type: SSH
  value:
    public_key: ssh-rsa AAAAB3NzaC1yc2E= me
    private_key:
    public_key_fingerprint: EvI0/GIUgDjcoCzUQM+EtwnVTryNsKRd6TrHAGKJJSI
- name: /dep/rsa
  type: rsa
  value: {public_key: null, private_key: p}
"#;

#[tokio::test]
async fn an_import_may_list_certificates_before_their_ca() {
    let source = Server::reused().await;
    source.issued("/0", json!({"is_ca": true})).await;
    for depth in 1..DEPTH {
        let parameters = json!({"is_ca": true, "ca": format!("/{}", depth - 1)});
        source.issued(&format!("/{depth}"), parameters).await;
    }
    let mut entries = entries(&source);
    entries.sort_by_key(|entry| {
        let name = entry["name"].as_str().unwrap();
        std::cmp::Reverse(name[1..].parse::<usize>().unwrap())
    });
    assert_eq!(
        entries[0]["value"]["ca_name"],
        json!(format!("/{}", DEPTH - 2))
    );
    let target = Server::reused().await;
    import(&target, &entries, &[]);
    let actual = fixtures::stored(&target, "").await;
    assert_eq!(actual, fixtures::stored(&source, "").await);
}

#[tokio::test]
async fn an_imported_certificate_may_refer_to_a_ca_on_the_server() {
    let server = Server::reused().await;
    server.issued("/ca", json!({"is_ca": true})).await;
    server.issued("/leaf", json!({"ca": "/ca"})).await;
    let before = fixtures::stored(&server, "").await;
    let mut entries = entries(&server);
    entries.retain(|entry| entry["name"] == json!("/leaf"));
    server.delete("/api/v1/data?name=/leaf").await.expect(204);
    import(&server, &entries, &[]);
    assert_eq!(fixtures::stored(&server, "").await, before);

    server.delete("/api/v1/data?name=/ca").await.expect(204);
    let shell = Shell::of(&server);
    fixtures::file(&shell, "file", &json!({"credentials": entries}).to_string());
    let run = shell.run("import file").expect(3);
    run.errors.assert_contains("failed: /leaf (entry 1): ");
}

#[tokio::test]
async fn the_last_of_several_entries_with_one_name_is_active() {
    let server = Server::reused().await;
    let entries: Vec<Value> = (0..60)
        .map(|index| json!({"name": format!("/{}", index % 3), "type": "value", "value": index.to_string()}))
        .collect();
    import(&server, &entries, &["--parallel", "64"]);
    let stored = fixtures::stored(&server, "").await;
    for (name, value) in [("/0", "57"), ("/1", "58"), ("/2", "59")] {
        assert_eq!(stored[name][1], json!(value));
        assert_eq!(server.versions(name).await.len(), 20);
    }
}

fn entries(server: &Server) -> Vec<Value> {
    let run = Shell::of(server).run("export --format json");
    let mut json = run.expect(0).json();
    let Value::Array(entries) = json["credentials"].take() else {
        panic!("no list: {json}");
    };
    entries
}

fn import(server: &Server, entries: &[Value], arguments: &[&str]) {
    let shell = Shell::of(server);
    fixtures::file(&shell, "file", &json!({"credentials": entries}).to_string());
    let arguments = [&["import", "file"], arguments].concat();
    shell.run(&arguments).expect(0);
}

/// The number of certificates in the chain.
const DEPTH: usize = 12;

#[tokio::test]
async fn failed_entries_are_reported_and_the_rest_is_set() {
    let server = Server::reused().await;
    let content = json!({"password": "p"});
    server.stored("/many/500", "user", content).await;
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
    fixtures::file(&shell, "many.yml", &file);
    let run = shell.run("import many.yml").expect(3);
    let summary = run.json();
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
        run.errors.assert_contains(&message);
    }
    run.errors.assert_lacks("s3cret");
    run.output.assert_lacks("s3cret");
    let stored = fixtures::stored(&server, "/many").await;
    assert_eq!(stored.as_object().unwrap().len(), 998);
    assert_eq!(stored["/many/998"][1], json!("s3cret-998"));
}

#[tokio::test]
async fn no_entry_of_a_truncated_file_is_set() {
    let server = Server::reused().await;
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
        ("\n", "file: the file is empty"),
    ] {
        fixtures::file(&shell, "file", file);
        let run = shell.run("import file").expect(1);
        run.errors.assert_contains(message);
        run.errors.assert_lacks("s3cret");
        shell.run_with("import -", file).expect(1);
    }
    let absent = shell.run("import absent").expect(1);
    absent
        .errors
        .assert_contains("absent: could not read the file");
    assert_eq!(fixtures::stored(&server, "").await, json!({}));
}

#[tokio::test]
async fn an_import_without_access_stops_and_counts_the_rest() {
    let server = Server::reused().await;
    let stranger = Shell::of(&server).variable("KEYWRIGHT_CLIENT_SECRET", "wrong");
    let away = Shell::of(&server)
        .variable("KEYWRIGHT_CLIENT_SERVER", "https://127.0.0.1:1")
        .variable("KEYWRIGHT_CLIENT_RETRIES", "0");
    let entries: Vec<String> = (0..40)
        .map(|index| format!("- {{name: /{index}, type: value, value: v}}\n"))
        .collect();
    let entries = entries.concat();
    for (shell, status) in [(stranger, 5), (away, 6)] {
        fixtures::file(&shell, "file", &format!("credentials:\n{entries}"));
        let run = shell.run("import file --parallel 4");
        let run = run.expect(status);
        let summary = run.json();
        assert_eq!(summary["set"], json!(0));
        // At most four concurrent requests fail in each of three attempts.
        assert!(summary["not_tried"].as_u64().unwrap() >= 28, "{run:?}");
    }
}

#[tokio::test]
async fn a_terminal_shows_failures_above_the_progress_bar() {
    let server = Server::reused().await;
    let shell = Shell::of(&server);
    let listing = "credentials:\n\
        - {name: /a, type: value, value: s3cret}\n\
        - {name: \"/\\e[31m\", type: value, value: s3cret}\n";
    fixtures::file(&shell, "file", listing);
    let (status, screen) = shell.on_terminal("import file").end();
    assert_eq!(status, Some(3), "{screen}");
    screen.assert_contains("2 of 2");
    screen.assert_contains("failed: /\\u{1b}[31m (entry 2, line 3)");
    screen.assert_lacks("s3cret");
}

#[tokio::test]
async fn a_dry_run_checks_each_entry_and_sets_nothing() {
    let server = Server::reused().await;
    server.stored("/there", "value", json!("v")).await;
    server.issued("/ca", json!({"is_ca": true})).await;
    let before = fixtures::stored(&server, "").await;
    let shell = Shell::of(&server);
    fixtures::file(&shell, "file", FILE_WITH_MISTAKES);
    let run = shell.run("import file --dry-run").expect(3);
    let summary = run.json();
    assert_eq!(summary["dry_run"], json!(true));
    assert_eq!(summary["set"], json!(4));
    let failures = [
        "/there (entry 2, line 3): a credential of type value with this name exists",
        "/user (entry 3, line 4): value has no password",
        "/leaf-3 (entry 7, line 8): the CA /nowhere is neither in the file nor on the server",
        "/leaf-4 (entry 8, line 9): /there is not a certificate",
        "/leaf-5 (entry 9, line 10): value has both ca and ca_name",
    ];
    for failure in failures {
        assert!(run.errors.contains(failure), "{failure}: {run:?}");
    }
    assert_eq!(summary["failed"], json!(failures.len()));
    assert_eq!(fixtures::stored(&server, "").await, before);
    assert_eq!(server.versions("/there").await.len(), 1);
}

#[tokio::test]
async fn a_dry_run_without_findings_succeeds() {
    let server = Server::reused().await;
    let shell = Shell::of(&server);
    fixtures::file(
        &shell,
        "file",
        "credentials: [{name: a, type: value, value: v}]",
    );
    let run = shell.run("import file --dry-run --output table");
    let run = run.expect(0);
    run.output.assert_contains("would be set");
    assert_eq!(fixtures::stored(&server, "").await, json!({}));
}

const FILE_WITH_MISTAKES: &str = "credentials:
- {name: /new, type: value, value: v}
- {name: /there, type: password, value: v}
- {name: /user, type: user, value: {username: u}}
- {name: /leaf-1, type: certificate, value: {ca_name: /ca, certificate: c}}
- {name: /leaf-2, type: certificate, value: {ca_name: listed, certificate: c}}
- {name: /listed, type: certificate, value: {certificate: c}}
- {name: /leaf-3, type: certificate, value: {ca_name: /nowhere, certificate: c}}
- {name: /leaf-4, type: certificate, value: {ca_name: /there, certificate: c}}
- {name: /leaf-5, type: certificate, value: {ca_name: /ca, ca: x, certificate: c}}
";

#[test]
fn a_pipe_that_can_not_be_copied_is_refused_with_the_cause() {
    let shell = Shell::new()
        .variable("KEYWRIGHT_CLIENT_SERVER", "https://127.0.0.1:1")
        .variable("KEYWRIGHT_TOKEN", "token")
        .variable("TMPDIR", "/missing");
    let entry = r#"{"name":"/a","type":"value","value":"'$(printf %060000d 0)'"},"#;
    let file = format!("echo '{{\"credentials\":['; yes '{entry}'");
    let run = shell.bash(&format!("({file}) | keywright import -"));
    let reason = "could not read the file: could not copy it to a temporary file: ";
    run.expect(1).errors.assert_contains(reason);
}

#[test]
fn an_endless_pipe_is_refused_where_it_is_malformed() {
    let shell = Shell::new()
        .variable("KEYWRIGHT_CLIENT_SERVER", "https://127.0.0.1:1")
        .variable("KEYWRIGHT_TOKEN", "token");
    for (line, reason) in [
        ("[a]", "the file has no top-level list"),
        ("''", "an entry is longer than 1024 KiB"),
    ] {
        // No file may be larger than this number of KiB.
        let import = format!("ulimit -f 20480; yes {line} | keywright import -");
        let run = shell.bash(&import).expect(1);
        run.errors.assert_contains(reason);
    }
}
