//! Warnings in the log.

use std::{fs, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use keywright_harness::{Options, Server, key_file};
use serde_json::json;
use tempfile::TempDir;

use super::nothing_provokes;

/// Provokes a warning, and returns the server's log.
pub(super) async fn provoke(text: &str) -> String {
    let plain = Options::default().without_plugins();
    let options = match text {
        "could not reload the TLS files: new connections use the previous ones" => {
            return after_the_authorities_went().await;
        }
        "the new plugins can't be used: calls use those that were loaded before" => {
            let server = Server::start_with(&plain).await;
            let absent = plain.generator("absent", "component = \"nowhere.wasm\"");
            return server.reload_plugins(&absent).await;
        }
        "could not fetch the identity provider's keys" => {
            plain.identity_provider("https://127.0.0.1:1/uaa")
        }
        "an encryption key is ignored until a server has made it active" => {
            let file = key_file("encryption.key");
            let own = format!("provider = \"raw\"\nfile = \"{}\"\nactive = true", file.display());
            let other = "provider = \"raw\"\nenvironment = \"OTHER_KEY\"";
            plain
                .encryption(&format!("[[encryption.keys]]\n{own}\n[[encryption.keys]]\n{other}\n"))
                .environment("OTHER_KEY", &STANDARD.encode([1; 32]))
        }
        "authorization.permissions names …, which no caller can be" => plain.extra(
            "[[authorization.permissions]]\npath = \"/*\"\nactors = [\"admin\"]\noperations = [\"read\"]\n",
        ),
        "permissions are not enforced: every authenticated caller may do everything" => {
            plain.without_enforcement()
        }
        "the audit trail is off: reads and changes are not recorded" => {
            plain.audit("[audit]\nsink = \"off\"\n")
        }
        "an encryption password has fewer than … characters: who has the database could guess it" => {
            let key = "provider = \"password\"\nenvironment = \"PASSWORD\"\nactive = true";
            plain
                .encryption(&format!("[[encryption.keys]]\n{key}\n"))
                .environment("PASSWORD", "short")
        }
        "stored an RSA key that is shorter than 2048 bits" => return after_a_short_key().await,
        text => nothing_provokes(text),
    };
    let server = Server::start_with(&options).await;
    let (words, _) = text.split_once('…').unwrap_or((text, ""));
    for _ in 0..POLLS_MAX {
        if server.log().contains(words) {
            break;
        }
        tokio::time::sleep(POLL).await;
    }
    server.log()
}

async fn after_a_short_key() -> String {
    let server = Server::start().await;
    let value = json!({"certificate": RSA_1024});
    server.set("/short", "certificate", value).await.expect(200);
    server.log()
}

async fn after_the_authorities_went() -> String {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("clients.pem");
    fs::copy(key_file("ca.pem"), &file).unwrap();
    let settings = format!("client_authorities = \"{}\"", file.display());
    let options = Options::default().without_plugins().tls_settings(&settings);
    let server = Server::start_with(&options).await;
    fs::remove_file(&file).unwrap();
    server.reload_tls_files().await
}

/// A certificate with an RSA key of 1024 bits.
const RSA_1024: &str = include_str!("../../../plugins/certificate/tests/keys/rsa_1024.pem");

/// The number of checks of the log, for several minutes: some warnings come from background work.
const POLLS_MAX: usize = 30_000;
const POLL: Duration = Duration::from_millis(10);
