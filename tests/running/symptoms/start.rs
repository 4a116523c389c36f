//! Servers that do not start.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt};

use keywright_harness::{Options, Server, component, key_file, run_command, run_sql};
use tempfile::TempDir;

use super::nothing_provokes;
use crate::layout::Layout;

/// Provokes an error at start-up, and returns it.
pub(super) async fn provoke(text: &str) -> String {
    let plain = Options::default();
    match text {
        "there is no such setting" => checked("connections_max", "conections_max"),
        "there is no folder …" => checked("lib/keywright/keywright.db", "lib/absent/keywright.db"),
        "using it for the certificate" => checked("tls/server-key.pem", "tls/other-signing-key.pem"),
        "unknown environment variable …" => {
            Server::refusal(&plain.environment("KEYWRIGHT_PORT", "tcp://127.0.0.1:8844"))
        }
        "one encryption key must be active, and none is" => {
            Server::refusal(&plain.encryption(&key_section("")))
        }
        "the active encryption key has no record in the database, and encryption.key_creation_enabled is false" => {
            let settings = "[encryption]\nkey_creation_enabled = false\nkey_wait_seconds_max = 1\n";
            let key = key_section("active = true");
            Server::refusal(&plain.encryption(&format!("{settings}{key}")))
        }
        "the key management plugin at … failed to …" => Server::refusal(&plain.encryption(
            "[[encryption.keys]]\nprovider = \"kms\"\nactive = true\nsocket = \"absent.sock\"\nhost = \"localhost\"\n",
        )),
        "Address already in use" => {
            let taken = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = taken.local_addr().unwrap();
            Server::refusal(&plain.extra(&format!("[management]\nlisten = \"{address}\"")))
        }
        "the database file … can't be opened" => {
            let folder = TempDir::new().unwrap();
            let file = folder.path().join("garbage.db");
            fs::write(&file, "this is not a database").unwrap();
            Server::refusal(&plain.storage(&format!("file = \"{}\"", file.display())))
        }
        "is missing or empty, though a server has used it before" => without_its_database(),
        "the development identity provider is refused on …" => {
            Server::refusal(&plain.environment("KEYWRIGHT_SERVER__LISTEN", "0.0.0.0:0"))
        }
        "the cache directory … must have the mode 0700" => {
            let folder = TempDir::new().unwrap();
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
            let path = folder.path().display().to_string();
            Server::refusal(&plain.environment("KEYWRIGHT_PLUGINS__CACHE_DIRECTORY", &path))
        }
        "the file does not exist; build the component or correct the path" => {
            with_password_plugin("component = \"/absent/password.wasm\"")
        }
        "it has no digest, and what a tag names can change" => {
            with_password_plugin("component = \"oci://127.0.0.1:1/password:1.0.0\"")
        }
        "the registry does not answer" => {
            let digest = "0".repeat(64);
            let component = format!("oci://127.0.0.1:1/password@sha256:{digest}");
            with_password_plugin(&format!("component = \"{component}\""))
        }
        "it is not signed: there is no …" => with_signed_password_plugin(None),
        "its signature is by another key than the configured one" => {
            with_signed_password_plugin(Some(SIGNATURE_OF_ANOTHER))
        }
        "its SHA-256 is …, but … is configured" => with_password_plugin(&format!(
            "component = \"{}\"\ngrants = [\"random\"]\nsha256 = \"{}\"",
            component("password").display(),
            "0".repeat(64),
        )),
        "it imports …, which is not granted" => {
            let component = component("password");
            with_password_plugin(&format!("component = \"{}\"", component.display()))
        }
        "its values are not random enough: …" => {
            with_guest("careless", "settings = { breaks = \"constant\" }")
        }
        "it derives its values from its parameters alone" => with_guest("hostile", ""),
        "values are stored, and none of the configured encryption keys is the key of any of them; they need the keys …" => {
            with_another_key().await
        }
        "a newer version of the server is needed" => on_a_newer_schema().await,
        text => nothing_provokes(text),
    }
}

/// Returns the output of `check-config` for the example with one change.
fn checked(from: &str, to: &str) -> String {
    let layout = Layout::new();
    let example = layout.example();
    assert!(example.contains(from), "{from}");
    layout.write_configuration(&example.replacen(from, to, 1));
    layout.check(&["--no-plugins"], &[]).expect(1).output
}

fn key_section(lines: &str) -> String {
    let file = key_file("encryption.key");
    let file = file.display();
    format!("[[encryption.keys]]\nprovider = \"raw\"\nfile = \"{file}\"\n{lines}\n")
}

/// Returns the error of a server whose plugin must have a minisign signature, with this file next to it.
fn with_signed_password_plugin(signature: Option<&str>) -> String {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("password.wasm");
    fs::copy(component("password"), &file).unwrap();
    if let Some(signature) = signature {
        fs::write(folder.path().join("password.wasm.minisig"), signature).unwrap();
    }
    with_password_plugin(&format!(
        "component = \"{}\"\ngrants = [\"random\"]\nsignature = {{ minisign_public_key = \"{KEY}\" }}",
        file.display(),
    ))
}

fn with_password_plugin(section: &str) -> String {
    Server::refusal(&Options::default().generator("password", section))
}

/// Configures a test guest as the generator of its type.
fn with_guest(name: &str, more: &str) -> String {
    let component = component(name);
    let component = component.display();
    let section =
        format!("component = \"{component}\"\ngrants = [\"random\", \"signing\"]\n{more}");
    Server::refusal(
        &Options::default()
            .without_plugins()
            .generator(name, &section),
    )
}

async fn with_another_key() -> String {
    let server = Server::start_with(&Options::default().without_plugins()).await;
    server
        .set("/a", "value", serde_json::json!("v"))
        .await
        .expect(200);
    let directory = server.stop().await;
    let file = directory.path().join("keywright.toml");
    let configuration = fs::read_to_string(&file).unwrap();
    let own = key_file("encryption.key").display().to_string();
    let other = directory.path().join("other.key");
    fs::write(&other, "b3RoZXIga2V5LCBvdGhlciBrZXksIG90aGVyIGtleSE=").unwrap();
    fs::write(
        &file,
        configuration.replace(&own, &other.display().to_string()),
    )
    .unwrap();
    served(directory.path())
}

async fn on_a_newer_schema() -> String {
    let server = Server::start_with(&Options::default().without_plugins()).await;
    let directory = server.stop().await;
    run_sql(
        directory.path(),
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         values (8001, 'later', true, '', 0), (8002, 'drop salt needs 8001', true, '', 0)",
    )
    .await;
    served(directory.path())
}

/// Returns the error of a server that does not start in this folder.
fn served(directory: &std::path::Path) -> String {
    let ended = run_command(directory, &["serve"]).expect(1);
    ended.output + &ended.errors
}

/// A minisign public key.
const KEY: &str = "RWQjnseflmHS0zxBY7eWI46R658f4jDlSgPh/r6We2nF6K+Vmaq6c1Pq";

/// A signature with another key.
const SIGNATURE_OF_ANOTHER: &str = "\
untrusted comment: signature from minisign secret key\n\
RUQ9twG3hyx0qsJQ030E2cqmgi7AB6uertGWimhGixgfFvqTjE4bZSEdupH5Qjac+8II7dPtQYpoZyO2kxiHxqPWS0gRkH85PwM=\n\
trusted comment: timestamp:1795337464	file:g	hashed\n\
BaIBDj4m6ynBUQO4+K89ryxpF/u/QspLotmxwCXLkoVIj0FiDaQHR3ZC3pTx8HicYEydm6u5n+Qf8sO0BkOjAQ==\n";

/// Returns the error of a server whose database is missing although its marker exists.
fn without_its_database() -> String {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("moved.db");
    fs::write(file.with_extension("db.created"), "").unwrap();
    let storage = format!("file = \"{}\"", file.display());
    Server::refusal(&Options::default().storage(&storage))
}
