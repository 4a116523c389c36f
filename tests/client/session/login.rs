//! `keywright login`, with a secret or a client certificate, and `keywright logout`.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use keywright_harness::{
    Application, ReceivedRequest, Reply, ReservedPort, Server, Shell, Stub, TestCertificate, Text,
    mint::encode,
};
use serde_json::json;

use super::{
    discovery::{openid, requests_at, shell},
    log_in, logged_in, provider, session, write_login, write_session, write_session_text,
};

#[tokio::test]
async fn a_client_logs_in_with_a_secret_from_standard_input() {
    let server = Server::reused().await;
    server.stored("/a", "value", json!("v")).await;
    let shell = Shell::new();
    let url = server.base_url();
    let login = format!("login --ca-cert ca.pem --client-id developer --server {url}");
    let run = shell.run_with(&login, "developer-secret\n").expect(0);
    assert_eq!(run.output, "");
    assert_eq!(shell.run("get /a --raw").expect(0).output, "v");

    let kept = session(&shell).unwrap();
    assert_eq!(kept["server"], server.base_url());
    assert!(!kept.to_string().contains("developer-secret"));
    let folder = shell.file(".config/keywright");
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder.join("session.json")), 0o600);
    assert_eq!(mode(folder), 0o700);
}

#[tokio::test]
async fn session_files_are_private_and_their_links_are_followed() {
    let server = Server::reused().await;
    let shell = Shell::at(&server);
    let folder = shell.file(".config/keywright");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    log_in(&shell);
    let file = folder.join("session.json");
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    // The mode of an existing folder is not changed.
    assert_eq!(mode(&folder), 0o755);
    assert_eq!(shell.run("find").expect(0).errors, "");
    for open in [0o640, 0o604, 0o660] {
        fs::set_permissions(&file, fs::Permissions::from_mode(open)).unwrap();
        let run = shell.run("find").expect(0);
        run.errors
            .assert_contains("other users can read this login");
        run.errors.assert_contains("session.json");
    }
    log_in(&shell);
    assert_eq!(mode(&file), 0o600);
    assert_eq!(shell.run("find").expect(0).errors, "");

    let shell = Shell::at(&server);
    let folder = shell.file(".config/keywright");
    fs::create_dir_all(&folder).unwrap();
    let (link, target) = (folder.join("session.json"), shell.file("elsewhere.json"));
    symlink(&target, &link).unwrap();
    log_in(&shell);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let mode = fs::metadata(&target).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    shell.run("find").expect(0);
    shell.run("logout").expect(0);
    assert!(!target.exists());
}

#[tokio::test]
async fn a_user_logs_in_with_a_password_without_echo() {
    let server = Server::reused().await;
    let shell = Shell::at(&server);
    let mut terminal = shell.on_terminal("login");
    terminal.expect("Username: ").type_line("developer");
    let provider = format!("{}/identity", server.base_url());
    terminal.expect(&format!("Logging in at the identity provider {provider}."));
    terminal.expect("Password: ");
    assert!(!terminal.echoes());
    terminal.type_line("developer-password");
    let (status, screen) = terminal.end();
    assert_eq!(status, Some(0), "{screen}");
    screen.assert_lacks("developer-password");
    shell.run("find").expect(0);

    let other = logged_in(&server);
    other.run("find").expect(0);
    let refresh_token = session(&other).unwrap()["refresh_token"].clone();
    let third = Shell::at(&server);
    let refresh_token = refresh_token.as_str().unwrap();
    third
        .run_with("login --refresh-token", refresh_token)
        .expect(0);
    third.run("find").expect(0);
}

#[test]
fn a_password_goes_only_to_the_provider_shown_before_the_prompt() {
    let addresses = Arc::new(AtomicUsize::new(0));
    let stub = Stub::start(move |request, _, url| {
        if request.line != "GET /info" {
            return Reply::new(404, "{}");
        }
        let path = addresses.fetch_add(1, Ordering::SeqCst);
        let info = json!({"auth-server": {"url": format!("{url}/{path}")}, "app": {"name": "x"}});
        Reply::new(200, &info.to_string())
    });
    let shell = shell(&stub);
    let mut terminal = shell.on_terminal("login --username u");
    terminal
        .expect("/0.")
        .expect("Password: ")
        .type_line("hunter2");
    let (status, screen) = terminal.end();
    assert_eq!(status, Some(5), "{screen}");
    screen.assert_contains("identity provider has changed");
    let requests = stub.requests().into_iter();
    let mut lines = requests.map(|request| request.line);
    assert!(lines.all(|line| line == "GET /info"));
}

#[test]
fn a_settings_file_or_session_over_1_mib_is_refused() {
    let shell = Shell::new();
    let folder = shell.file(".config/keywright");
    fs::create_dir_all(&folder).unwrap();
    for name in ["settings.toml", "session.json"] {
        let file = folder.join(name);
        fs::write(&file, " ".repeat(1024 * 1024 + 1)).unwrap();
        let run = shell.run("find").expect(1);
        run.errors
            .assert_contains("it is longer than 1048576 bytes");
        fs::remove_file(file).unwrap();
    }
}

#[tokio::test]
async fn a_refused_login_keeps_the_previous_session() {
    let server = Server::reused().await;
    let shell = Shell::at(&server);
    let (as_client, wrong) = ("login --client-id developer", "wrong-secret");
    let login = shell.run_with(as_client, "developer-secret");
    login.expect(0);
    let before = session(&shell);
    for (line, input, status, message) in [
        (as_client, wrong, 5, "invalid_client"),
        ("login --username developer", wrong, 5, "invalid_grant"),
        ("login --refresh-token", wrong, 5, "invalid_grant"),
        (as_client, "", 1, "standard input is empty"),
        (
            "login",
            "",
            2,
            "missing option; use --client-id, --username",
        ),
        ("login --device --username b", "", 2, "cannot be used"),
    ] {
        let run = shell.run_with(line, input).expect(status);
        run.errors.assert_contains(message);
        run.errors.assert_lacks(wrong);
        assert_eq!(session(&shell), before);
    }
}

#[test]
fn an_endless_secret_is_refused() {
    let line = "keywright login --server https://127.0.0.1:1 --client-id app </dev/zero";
    let run = Shell::new().bash(line).expect(1);
    let message = "the first line is longer than 65536 bytes";
    run.errors.assert_contains(message);
}

#[test]
fn an_address_with_a_password_is_refused_without_repeating_it() {
    for address in [
        "https://user:hunter2@keywright.example",
        "user:hunter2@keywright.example",
    ] {
        let login = ["login", "--server", address, "--client-id", "app"];
        let run = Shell::new().run_with(&login, "hunter2").expect(1);
        run.errors.assert_contains("must not contain");
        run.errors.assert_lacks("hunter2");
    }
}

#[tokio::test]
async fn a_server_without_an_identity_provider_is_reported() {
    let application = Application::issued();
    let options = application.options().without_tokens();
    let server = Server::start_with(&options).await;
    let run = Shell::at(&server).run_with("login --username a", "b");
    assert!(run.expect(1).errors.contains("no identity provider"));
}

#[tokio::test]
async fn a_server_with_an_untrusted_ca_is_refused() {
    let server = Server::reused().await;
    let shell = Shell::at(&server);
    let other = TestCertificate::root("other").certificate;
    fs::write(shell.file("other.pem"), other).unwrap();
    let arguments = "login --client-id developer --ca-cert other.pem";
    let run = shell.run_with(arguments, "developer-secret").expect(6);
    assert!(run.errors.to_lowercase().contains("certificate"), "{run:?}");
    assert!(session(&shell).is_none());
}

const CERTIFICATE: [&str; 4] = ["--cert", "app.pem", "--key", "app-key.pem"];

#[tokio::test]
async fn an_application_logs_in_with_a_certificate_without_a_token() {
    let application = Application::issued();
    let options = application.options().without_tokens();
    let server = Server::start_with(&options).await;
    let shell = Shell::at(&server);
    application.equip(&shell);
    let set = ["set", "/a", "-t", "value", "--value", "v"];
    shell.run(&set).expect(5);
    shell.run(&[&set[..], &CERTIFICATE].concat()).expect(0);
    shell
        .run(&[&["login"][..], &CERTIFICATE].concat())
        .expect(0);
    assert!(session(&shell).unwrap().get("access_token").is_none());
    assert_eq!(shell.run("get /a --raw").expect(0).output, "v");
    shell.run("logout").expect(0);
    shell.run("get /a").expect(5);
}

#[tokio::test]
async fn a_certificate_of_an_untrusted_ca_is_refused() {
    let application = Application::issued();
    let server = Server::reused().await;
    server.stored("/a", "value", json!("v")).await;
    let shell = Shell::at(&server);
    application.equip(&shell);
    let refused = shell.run(&[&["login"][..], &CERTIFICATE].concat());
    let refused = refused.expect(5).errors;
    refused.assert_contains("the server does not accept the client certificate; ");
    assert!(session(&shell).is_none());
    let server = Server::start_with(&Application::issued().options().without_tokens()).await;
    let other = Shell::at(&server);
    application.equip(&other);
    let refused = other.run(&[&["login"][..], &CERTIFICATE].concat());
    let refused = refused.expect(5).errors;
    refused.assert_contains(" refuses the client certificate");
    refused.assert_lacks("retrying");
    shell.run("login --cert app.pem").expect(1);
    let run = shell.run("get /a --cert ca.pem --key ca.pem").expect(1);
    run.errors
        .assert_contains("ca.pem contains no PEM private key");
}

#[tokio::test]
async fn a_logout_revokes_the_login_and_reports_the_server() {
    let server = Server::reused().await;
    let shell = logged_in(&server);
    let kept = session(&shell).unwrap();
    let refresh_token = kept["refresh_token"].as_str().unwrap().to_owned();
    shell.run("logout").expect(0);
    assert!(session(&shell).is_none());
    shell.run("find").expect(5);
    let again = "login --refresh-token";
    shell.run_with(again, &refresh_token).expect(5);
    let run = shell.run("logout").expect(0);
    run.errors.assert_contains("not logged in");

    let shell = logged_in(&server);
    let shell = shell.variable("NO_COLOR", "1");
    let message = format!("Logged out of {}.\n", server.base_url());
    assert_eq!(shell.on_terminal("logout").end(), (Some(0), message));
    assert!(session(&shell).is_none());
    shell.run("find").expect(5);
    let none = "You are not logged in.\n".to_owned();
    assert_eq!(shell.on_terminal("logout").end(), (Some(0), none));
}

#[test]
fn the_session_is_deleted_even_if_the_provider_is_down() {
    // The port is reserved, so no server listens there.
    let port = ReservedPort::any();
    let shell = Shell::new();
    let kept = json!({
        "server": format!("https://127.0.0.1:{}", port.number()), "ca_cert": [shell.file("ca.pem")],
        "access_token": token("old"), "refresh_token": "refresh",
    });
    write_session(&shell, &kept);
    let run = shell.run("logout").expect(3);
    run.errors.assert_contains("could not reach ");
    assert!(session(&shell).is_none());
}

/// Returns an access token with an id.
fn token(id: &str) -> String {
    format!("e30.{}.c2ln", encode(&json!({"jti": id})))
}

#[test]
fn an_expired_token_is_renewed_once_for_the_logout() {
    let refresh = Some("refresh");
    for (refresh_token, renewed_id, status, expected) in [
        (refresh, Some("fresh"), 0, "DELETE old, POST, DELETE fresh"),
        // The client renews the token only once.
        (refresh, Some("old"), 3, "DELETE old, POST, DELETE old"),
        (refresh, None, 3, "DELETE old, POST"),
        (None, None, 3, "DELETE old"),
    ] {
        let stub = Stub::start(move |request, before, url| match request.line.as_str() {
            "DELETE /uaa/oauth/token/revoke/fresh" => Reply::new(200, ""),
            "DELETE /uaa/oauth/token/revoke/old" => {
                Reply::new(401, "{\"error\":\"invalid_token\"}")
            }
            "POST /uaa/oauth/token" => match renewed_id {
                Some(id) => Reply::new(200, &json!({"access_token": token(id)}).to_string()),
                None => Reply::new(400, "{\"error\":\"invalid_grant\"}"),
            },
            _ => provider(request, before, url).unwrap(),
        });
        let shell = Shell::new();
        write_login(&shell, &stub, &token("old"), refresh_token);
        shell.run("logout").expect(status);
        assert!(session(&shell).is_none());
        let requests = stub.requests().into_iter().filter_map(|request| {
            let (method, path) = request.line.split_once(' ').unwrap();
            match method {
                "DELETE" => {
                    let (_, id) = path.rsplit_once('/').unwrap();
                    request.head.assert_contains(&token(id).to_lowercase());
                    Some(format!("DELETE {id}"))
                }
                "POST" => {
                    request.body.assert_contains("refresh_token=refresh");
                    Some(method.to_owned())
                }
                _ => None,
            }
        });
        assert_eq!(requests.collect::<Vec<_>>().join(", "), expected);
    }
}

#[tokio::test]
async fn a_malformed_session_prevents_neither_logout_nor_login() {
    let server = Server::reused().await;
    let without_token = b"{\"server\": \"hunter2\"}";
    for text in [&b""[..], b"{", without_token, b"hunter2 \xff"] {
        let shell = Shell::at(&server);
        write_session_text(&shell, text);
        let run = shell.run("find").expect(1);
        run.errors.assert_contains("log in again");
        run.errors.assert_lacks("hunter2");
        let run = shell.run("logout").expect(3);
        run.errors.assert_contains("could not be revoked");
        assert!(!shell.file(".config/keywright/session.json").exists());
        write_session_text(&shell, text);
        log_in(&shell);
        shell.run("find").expect(0);
    }
}

#[test]
fn revoking_a_login_of_a_client_requires_its_secret() {
    let form = Some("token=access&token_type_hint=access_token");
    for (id, status, revocation, words) in [
        (None, 200, None, "stays valid until it expires"),
        (Some("other"), 200, None, "stays valid until it expires"),
        (Some("ci"), 200, form, "Logged out of"),
        (Some("ci"), 400, form, "refuses the revocation"),
    ] {
        let stub = Stub::start(move |request, _, url| match request.line.as_str() {
            "POST /token" => Reply::new(200, r#"{"access_token":"access"}"#),
            "POST /revoke" => Reply::new(status, "{}"),
            _ => openid(request, url, &json!({})).unwrap_or_else(|| Reply::new(404, "")),
        });
        let shell = shell(&stub);
        let login = "login --client-id ci";
        shell.run_with(login, "secret").expect(0);
        let shell = match id {
            Some(id) => shell
                .variable("KEYWRIGHT_CLIENT_ID", id)
                .variable("KEYWRIGHT_CLIENT_SECRET", "secret"),
            None => shell,
        };
        let run = shell.run("logout");
        let run = run.expect(if status == 200 { 0 } else { 3 });
        run.errors.assert_contains(words);
        assert!(session(&shell).is_none());
        let requests = requests_at(&stub, "POST /revoke");
        let actual = requests.first().map(|request| request.body.as_str());
        assert_eq!(actual, revocation, "{id:?}");
        // ci:secret in base64, in lower case like the recorded head.
        let with_secret = |request: &ReceivedRequest| request.head.contains("basic y2k6c2vjcmv0");
        assert!(requests.iter().all(with_secret), "{requests:?}");
    }
}
