//! `keywright login`.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use keywright_harness::{Application, Server, Shell};
use serde_json::json;

use super::session;

#[tokio::test]
async fn a_client_logs_in_with_a_secret_from_standard_input() {
    let server = Server::start().await;
    server.set("/a", "value", json!("v")).await.expect(200);
    let shell = Shell::new();
    let login = [
        "login",
        "--server",
        server.base_url(),
        "--ca-cert",
        "ca.pem",
    ];
    let as_client = [&login[..], &["--client-id", "developer"]].concat();
    let run = shell.run_with(&as_client, "developer-secret\n").expect(0);
    assert_eq!(run.output, "");
    assert_eq!(shell.run(&["get", "/a", "--raw"]).expect(0).output, "v");

    let kept = session(&shell).unwrap();
    assert_eq!(kept["server"], server.base_url());
    assert!(!kept.to_string().contains("developer-secret"));
    let folder = shell.file(".config/keywright");
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder.join("session.json")), 0o600);
    assert_eq!(mode(folder), 0o700);
}

#[tokio::test]
async fn a_session_readable_by_others_is_reported_and_repaired() {
    let server = Server::start().await;
    let shell = Shell::at(&server);
    let login = ["login", "--username", "developer"];
    let folder = shell.file(".config/keywright");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    shell.run_with(&login, "developer-password").expect(0);
    let file = folder.join("session.json");
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    // The mode of an existing folder is not changed.
    assert_eq!(mode(&folder), 0o755);
    assert_eq!(shell.run(&["find"]).expect(0).errors, "");
    for open in [0o640, 0o604, 0o660] {
        fs::set_permissions(&file, fs::Permissions::from_mode(open)).unwrap();
        let run = shell.run(&["find"]).expect(0);
        assert!(
            run.errors.contains("other users can read this login"),
            "{run:?}"
        );
        assert!(run.errors.contains("session.json"), "{run:?}");
    }
    shell.run_with(&login, "developer-password").expect(0);
    assert_eq!(mode(&file), 0o600);
    assert_eq!(shell.run(&["find"]).expect(0).errors, "");
}

#[tokio::test]
async fn a_session_behind_a_link_is_written_and_deleted_there() {
    let server = Server::start().await;
    let shell = Shell::at(&server);
    let folder = shell.file(".config/keywright");
    fs::create_dir_all(&folder).unwrap();
    let (link, target) = (folder.join("session.json"), shell.file("elsewhere.json"));
    symlink(&target, &link).unwrap();
    let login = ["login", "--username", "developer"];
    shell.run_with(&login, "developer-password").expect(0);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let mode = fs::metadata(&target).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    shell.run(&["find"]).expect(0);
    shell.run(&["logout"]).expect(0);
    assert!(!target.exists());
}

#[tokio::test]
async fn a_user_logs_in_with_a_password_without_echo() {
    let server = Server::start().await;
    let shell = Shell::at(&server);
    let mut terminal = shell.on_terminal(&["login"]);
    terminal.expect("Username: ").type_line("developer");
    terminal.expect("Password: ");
    assert!(!terminal.echoes());
    terminal.type_line("developer-password");
    let (status, screen) = terminal.end();
    assert_eq!(status, Some(0), "{screen}");
    assert!(!screen.contains("developer-password"), "{screen}");
    shell.run(&["find"]).expect(0);

    let other = Shell::at(&server);
    let arguments = ["login", "--username", "developer"];
    other.run_with(&arguments, "developer-password\n").expect(0);
    other.run(&["find"]).expect(0);
    let refresh_token = session(&other).unwrap()["refresh_token"].clone();
    let third = Shell::at(&server);
    let refresh_token = refresh_token.as_str().unwrap();
    third
        .run_with(&["login", "--refresh-token"], refresh_token)
        .expect(0);
    third.run(&["find"]).expect(0);
}

#[tokio::test]
async fn a_refused_login_keeps_the_previous_session() {
    let server = Server::start().await;
    let shell = Shell::at(&server);
    let as_client = ["login", "--client-id", "developer"];
    shell.run_with(&as_client, "developer-secret").expect(0);
    let before = session(&shell);
    for (arguments, input, status, words) in [
        (&as_client[..], "wrong-secret", 5, "invalid_client"),
        (
            &["login", "--username", "developer"],
            "wrong-secret",
            5,
            "invalid_grant",
        ),
        (
            &["login", "--refresh-token"],
            "wrong-secret",
            5,
            "invalid_grant",
        ),
        (&as_client, "", 1, "standard input is empty"),
        (&["login"], "", 2, "missing identity"),
        (
            &["login", "--device", "--username", "b"],
            "",
            2,
            "cannot be used",
        ),
    ] {
        let run = shell.run_with(arguments, input).expect(status);
        assert!(run.errors.contains(words), "{run:?}");
        assert!(!run.errors.contains("wrong-secret"), "{run:?}");
        assert_eq!(session(&shell), before);
    }
}

#[test]
fn an_endless_secret_is_refused() {
    let line = "keywright login --server https://127.0.0.1:1 --client-id app </dev/zero";
    let run = Shell::new().bash(line).expect(1);
    let message = "the first line is longer than 65536 bytes";
    assert!(run.errors.contains(message), "{run:?}");
}

#[test]
fn an_address_with_a_password_is_refused_without_repeating_it() {
    for address in [
        "https://user:hunter2@keywright.example",
        "user:hunter2@keywright.example",
    ] {
        let login = ["login", "--server", address, "--client-id", "app"];
        let run = Shell::new().run_with(&login, "hunter2").expect(1);
        assert!(run.errors.contains("must not contain"), "{run:?}");
        assert!(!run.errors.contains("hunter2"), "{run:?}");
    }
}

#[tokio::test]
async fn a_server_without_an_identity_provider_is_reported() {
    let application = Application::issued();
    let options = application.options().without_tokens();
    let server = Server::start_with(&options).await;
    let run = Shell::at(&server).run_with(&["login", "--username", "a"], "b");
    assert!(run.expect(1).errors.contains("no identity provider"));
}

#[tokio::test]
async fn a_server_with_an_untrusted_ca_is_refused() {
    let server = Server::start().await;
    let shell = Shell::at(&server);
    fs::write(shell.file("other.pem"), other_authority()).unwrap();
    let arguments = [
        "login",
        "--client-id",
        "developer",
        "--ca-cert",
        "other.pem",
    ];
    let run = shell.run_with(&arguments, "developer-secret").expect(6);
    assert!(run.errors.to_lowercase().contains("certificate"), "{run:?}");
    assert!(session(&shell).is_none());
}

fn other_authority() -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::default();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    parameters.self_signed(&key).unwrap().pem()
}
