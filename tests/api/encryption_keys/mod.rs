//! Configuring, recognising and changing encryption keys.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod configuration;
mod creation;
mod kms;
mod refusals;
mod rolling_change;
mod stored;

use std::fmt::Write;

use keywright_harness::{Options, Server};
use serde_json::{Value, json};

/// Raw test keys in base64, each in an environment variable of the server.
const KEYS: [(&str, &str); 3] = [
    ("KEY_A", "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="),
    ("KEY_B", "QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI="),
    ("KEY_C", "Q0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0M="),
];

/// A password, in the server's environment variable `PASSWORD`.
const PASSWORD: &str = "a password of the tests that is long enough";

/// Adds the environment of a server. Set values need no plugins.
fn with_secrets(options: Options) -> Options {
    let secrets = [
        ("PASSWORD", PASSWORD),
        ("SHORT_PASSWORD", "hunter2-hunter2"),
    ];
    KEYS.iter()
        .chain(&secrets)
        .fold(options.without_plugins(), |options, (name, secret)| {
            options.environment(name, secret)
        })
}

/// A server that encrypts with the first of these keys, and only decrypts with the others. Each is an environment
/// variable, or the path of a key management plugin's socket.
fn with_keys(names: &[&str]) -> Options {
    with_secrets(Options::default().encryption(&sections(names)))
}

/// The sections of keys, the first of which is active. Nothing is rotated, so that each value stays under its key.
fn sections(names: &[&str]) -> String {
    let mut sections = "[encryption.rotation]\nenabled = false\n".to_owned();
    for (place, name) in names.iter().enumerate() {
        let source = match *name {
            socket if socket.contains('/') => format!("provider = \"kms\"\nsocket = \"{socket}\""),
            key if key.starts_with("KEY") => {
                format!("provider = \"raw\"\nenvironment = \"{key}\"")
            }
            password => format!("provider = \"password\"\nenvironment = \"{password}\""),
        };
        let is_active = place == 0;
        // Writing to a string does not fail.
        let _ = writeln!(
            sections,
            "[[encryption.keys]]\n{source}\nactive = {is_active}"
        );
    }
    sections
}

async fn usage(server: &Server) -> Value {
    server.get("/api/v1/key-usage").await.expect(200).json()
}

fn used(active: u64, inactive: u64, unknown: u64) -> Value {
    json!({"active_key": active, "inactive_keys": inactive, "unknown_keys": unknown})
}

/// The id of the active key in the server's log.
fn active_key_id(server: &Server) -> String {
    let log = server.log();
    let mark = "\"encryption.active_key\":\"";
    let (_, rest) = log.split_once(mark).unwrap();
    rest.split('"').next().unwrap().to_owned()
}
