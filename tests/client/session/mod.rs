//! Logging in and out, and the state stored between runs. This module covers settings and tokens from files and the
//! environment.

mod discovery;
mod login;
mod renewal;
mod user;

use std::{fs, os::unix::fs::PermissionsExt};

use keywright_harness::{Options, ReceivedRequest, Reply, Server, Shell, Stub, Text, key_file};
use serde_json::{Value, json};

use crate::fixtures::versions;

fn session(shell: &Shell) -> Option<Value> {
    let file = shell.file(".config/keywright/session.json");
    let text = fs::read_to_string(file).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

/// Stores a session, as `keywright login` does.
fn write_session(shell: &Shell, session: &Value) {
    write_session_text(shell, session.to_string().as_bytes());
}

/// Overwrites the stored session with a text.
fn write_session_text(shell: &Shell, text: &[u8]) {
    let folder = shell.file(".config/keywright");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("session.json");
    fs::write(&file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Stores a login at a stub with this access token and this refresh token, if any. Returns the session.
fn write_login(shell: &Shell, stub: &Stub, access: &str, refresh: Option<&str>) -> Value {
    let mut session = json!({
        "server": stub.url(), "ca_cert": [shell.file("ca.pem")], "access_token": access,
    });
    if let Some(refresh) = refresh {
        session["refresh_token"] = json!(refresh);
    }
    write_session(shell, &session);
    session
}

/// Returns a shell with the login of a user.
fn logged_in(server: &Server) -> Shell {
    let shell = Shell::at(server);
    log_in(&shell);
    shell
}

fn log_in(shell: &Shell) {
    let login = "login --username developer";
    shell.run_with(login, "developer-password").expect(0);
}

/// Returns the response of an API that accepts one token; the others have expired.
fn api(request: &ReceivedRequest, token: &str) -> Reply {
    if request.head.contains(&format!("bearer {token}")) {
        Reply::new(200, &versions())
    } else {
        Reply::new(401, EXPIRED)
    }
}

/// Returns the response of an identity provider next to the API: a UAA without a discovery document. Tokens are numbered.
fn provider(request: &ReceivedRequest, before: usize, url: &str) -> Option<Reply> {
    if request.line.starts_with("GET") && request.line.contains("/.well-known/") {
        return Some(Reply::new(404, ""));
    }
    let body = match request.line.as_str() {
        "GET /info" => {
            json!({"auth-server": {"url": format!("{url}/uaa")}, "app": {"name": "x"}})
        }
        "POST /uaa/oauth/token" => {
            json!({"access_token": format!("token-{before}"), "token_type": "bearer"})
        }
        _ => return None,
    };
    Some(Reply::new(200, &body.to_string()))
}

/// The response to an expired access token.
const EXPIRED: &str = "{\"error\":\"access_token_expired\",\"error_description\":\"it has\"}";

#[tokio::test]
async fn settings_are_read_from_the_default_or_a_named_folder() {
    let server = Server::reused().await;
    server.stored("/a", "value", json!("v")).await;
    let shell = Shell::new()
        .variable("KEYWRIGHT_CLIENT_ID", "developer")
        .variable("KEYWRIGHT_CLIENT_SECRET", "developer-secret");
    let folder = shell.file(".config/keywright");
    fs::create_dir_all(&folder).unwrap();
    fs::copy(key_file("ca.pem"), folder.join("authority.pem")).unwrap();
    let settings = format!(
        "server = \"{}\"\nca_cert = \"authority.pem\"\noutput = \"yaml\"\nretries = 0\n",
        server.base_url()
    );
    fs::write(folder.join("settings.toml"), settings).unwrap();
    let yaml = shell.run("get /a").expect(0).output;
    yaml.assert_contains("\nvalue: v\n");
    for (variable, folder) in [
        ("XDG_CONFIG_HOME", "config/keywright"),
        ("KEYWRIGHT_CLIENT_DIRECTORY", "config"),
    ] {
        let shell = Shell::at(&server);
        let named = shell.file("config").display().to_string();
        let shell = shell.variable(variable, &named);
        log_in(&shell);
        let file = shell.file(folder).join("session.json");
        assert!(file.is_file(), "{variable}");
    }
}

#[test]
fn a_token_is_only_sent_to_the_server_of_its_session() {
    let one = Stub::start(|_, _, _| Reply::new(200, &versions()));
    let other = Stub::start(|_, _, _| Reply::new(200, &versions()));
    let shell = Shell::new();
    write_login(&shell, &one, "token-of-one", None);
    shell.run("get /a").expect(0);
    assert!(one.requests()[0].head.contains("bearer token-of-one"));
    let elsewhere = ["get", "/a", "--server", &other.url(), "--ca-cert", "ca.pem"];
    shell.run(&elsewhere).expect(5);
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn servers_ignore_the_variables_of_clients() {
    let options = [
        "SERVER",
        "CA_CERT",
        "ID",
        "SECRET",
        "TOKEN",
        "SCOPE",
        "OUTPUT",
        "LISTEN__PORT",
    ]
    .into_iter()
    .fold(Options::default(), |options, name| {
        options.environment(&format!("KEYWRIGHT_CLIENT_{name}"), "x")
    });
    let options = options.environment("KEYWRIGHT_TOKEN", "x");
    let server = Server::start_with(&options).await;
    server.stored("/a", "value", json!("v")).await;
    let refused = Server::refusal(&Options::default().environment("KEYWRIGHT_CLIENTS", "x"));
    assert!(refused.to_lowercase().contains("clients"), "{refused}");
}

#[tokio::test]
async fn a_token_from_a_file_or_a_variable_replaces_a_login() {
    let server = Server::reused().await;
    server.stored("/a", "value", json!("v")).await;
    let get = ["get", "/a", "--raw"];
    let with_file = [&get[..], &["--token-file", "token"]].concat();
    let shell = Shell::at(&server);
    shell.run(&with_file).expect(1);
    for text in [server.token().to_owned(), format!("{}\n", server.token())] {
        fs::write(shell.file("token"), text).unwrap();
        assert_eq!(shell.run(&with_file).expect(0).output, "v");
    }
    // Each run reads the file again.
    fs::write(shell.file("token"), "hunter2").unwrap();
    let run = shell.run(&with_file).expect(5);
    run.errors
        .assert_contains("the token in token is not valid for https://");
    run.errors.assert_lacks("hunter2");

    shell.run(&get).expect(5);
    for variable in ["KEYWRIGHT_TOKEN", "KEYWRIGHT_CLIENT_TOKEN"] {
        let shell = Shell::at(&server).variable(variable, server.token());
        assert_eq!(shell.run(&get).expect(0).output, "v");
        assert!(session(&shell).is_none());
    }
}

#[test]
fn an_expired_token_from_a_file_is_not_renewed() {
    let stub = Stub::start(|_, _, _| Reply::new(401, EXPIRED));
    let shell = stub
        .shell()
        .variable("KEYWRIGHT_CLIENT_ID", "app")
        .variable("KEYWRIGHT_CLIENT_SECRET", "secret");
    write_login(&shell, &stub, "of-login", Some("refresh"));
    fs::write(shell.file("token"), "of-file").unwrap();
    let run = shell.run("get /a --token-file token").expect(5);
    let advice = "the token in token has expired; replace it";
    run.errors.assert_contains(advice);
    run.errors.assert_lacks("keywright login");
    assert_eq!(stub.requests().len(), 1);
}

#[test]
fn unusable_certificate_and_key_files_are_named() {
    let [cert, key] =
        ["server.pem", "server-key.pem"].map(|name| key_file(name).display().to_string());
    let shell = Shell::new().variable("KEYWRIGHT_CLIENT_SERVER", "https://127.0.0.1:1");
    let encrypted = shell.file("encrypted.pem").display().to_string();
    fs::write(&encrypted, "-----BEGIN ENCRYPTED PRIVATE KEY-----\n").unwrap();
    let malformed = shell.file("malformed.pem").display().to_string();
    let pem = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    fs::write(&malformed, pem).unwrap();
    let other = key_file("ca.pem").display().to_string();
    let variable = Shell::new()
        .variable("KEYWRIGHT_CLIENT_SERVER", "https://127.0.0.1:1")
        .variable("KEYWRIGHT_CLIENT_CA_CERT", "absent.pem");
    let run = variable.run("login --device").expect(1);
    run.errors
        .assert_contains("KEYWRIGHT_CLIENT_CA_CERT: could not read absent.pem");
    for (arguments, reason) in [
        (
            &["--ca-cert", &key][..],
            format!("--ca-cert: {key} contains no PEM certificate"),
        ),
        (
            &["--ca-cert", "/dev/zero"],
            "--ca-cert: /dev/zero: must have at most 16777216 bytes".to_owned(),
        ),
        (
            &["--ca-cert", &malformed],
            format!("--ca-cert: {malformed}: certificate 1 is malformed"),
        ),
        (
            &["--cert", &malformed, "--key", &key],
            format!("{malformed}: the first certificate is malformed or not of X.509 version 3"),
        ),
        (
            &["--cert", &other, "--key", &key],
            format!("{key}: the private key does not match the certificate in {other}"),
        ),
        (
            &["--cert", &key, "--key", &key],
            format!("{key} contains no PEM certificate"),
        ),
        (
            &["--cert", &cert, "--key", &cert],
            format!("{cert} contains no PEM private key"),
        ),
        (
            &["--cert", &cert, "--key", &encrypted],
            format!("the private key in {encrypted} is encrypted"),
        ),
    ] {
        let arguments = [&["login", "--device"][..], arguments].concat();
        shell
            .run(&arguments)
            .expect(1)
            .errors
            .assert_contains(&reason);
    }
}

#[test]
fn login_refuses_a_token_file() {
    let shell = Shell::new();
    fs::write(shell.file("token"), "token").unwrap();
    let run = shell.run("login --username a --token-file token");
    let run = run.expect(2);
    run.errors.assert_contains("--token-file");
    // The option belongs after the name of the command.
    shell.run("--token-file token find").expect(2);
}
