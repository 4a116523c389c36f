//! Settings from the file and the environment.

use std::fs;

use keywright_harness::{Options, Server, Shell, key_file};
use serde_json::json;

use crate::stub::{Reply, Stub, versions};

#[tokio::test]
async fn the_settings_file_complements_the_environment() {
    let server = Server::start().await;
    server.set("/a", "value", json!("v")).await.expect(200);
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
    let yaml = shell.run(&["get", "/a"]).expect(0).output;
    assert!(yaml.contains("\nvalue: v\n"), "{yaml}");
    fs::write(folder.join("settings.toml"), "servr = \"x\"").unwrap();
    let run = shell.run(&["get", "/a"]).expect(1);
    assert!(
        run.errors.contains("settings.toml") && run.errors.contains("servr"),
        "{run:?}"
    );
}

#[tokio::test]
async fn the_settings_folder_follows_the_platform_or_a_variable() {
    let server = Server::start().await;
    let login = ["login", "--username", "developer"];
    for (variable, folder) in [
        ("XDG_CONFIG_HOME", "config/keywright"),
        ("KEYWRIGHT_CLIENT_DIRECTORY", "config"),
    ] {
        let shell = Shell::at(&server);
        let named = shell.file("config").display().to_string();
        let shell = shell.variable(variable, &named);
        shell.run_with(&login, "developer-password").expect(0);
        let file = shell.file(folder).join("session.json");
        assert!(file.is_file(), "{variable}");
    }
}

#[test]
fn a_token_is_only_sent_to_the_server_of_its_session() {
    let one = Stub::start(|_, _, _| Reply::new(200, &versions()));
    let other = Stub::start(|_, _, _| Reply::new(200, &versions()));
    let shell = Shell::new();
    let folder = shell.file(".config/keywright");
    fs::create_dir_all(&folder).unwrap();
    let session = json!({
        "server": one.url(), "ca_cert": [shell.file("ca.pem")], "access_token": "token-of-one",
    });
    fs::write(folder.join("session.json"), session.to_string()).unwrap();
    shell.run(&["get", "/a"]).expect(0);
    assert!(one.asked()[0].head.contains("bearer token-of-one"));
    let elsewhere = ["get", "/a", "--server", &other.url(), "--ca-cert", "ca.pem"];
    shell.run(&elsewhere).expect(5);
    assert!(other.asked().is_empty());
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
    server.set("/a", "value", json!("v")).await.expect(200);
    let refused = Server::refusal(&Options::default().environment("KEYWRIGHT_CLIENTS", "x"));
    assert!(refused.to_lowercase().contains("clients"), "{refused}");
}

#[test]
fn clients_ignore_server_variables_and_refuse_unknown_ones() {
    let stub = Stub::start(|_, _, _| Reply::new(200, &versions()));
    let shell = stub.shell().variable("KEYWRIGHT_SERVER__LISTEN", "x");
    shell.run(&["get", "/a"]).expect(0);
    let shell = shell.variable("KEYWRIGHT_CLIENT_SERVR", "x");
    let run = shell.run(&["get", "/a"]).expect(1);
    assert!(run.errors.contains("KEYWRIGHT_CLIENT_SERVR"), "{run:?}");
}
