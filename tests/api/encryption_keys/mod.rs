//! Configuring, recognizing and changing encryption keys.

mod changes;
mod kms;

use std::fmt::Write;

use keywright_harness::{Options, Server, Text, shared_storage};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Raw test keys in base64, each in an environment variable of the server.
const KEYS: [(&str, &str); 3] = [
    ("KEY_A", "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="),
    ("KEY_B", "QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI="),
    ("KEY_C", "Q0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0M="),
];

/// A password, in the server's environment variable `PASSWORD`.
const PASSWORD: &str = "a password of the tests that is long enough";

/// Adds the keys to the server's environment, and removes the plugins, which set values do not need.
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

/// Returns options of a server that encrypts with the first of these keys, and only decrypts with the others. Each name is an
/// environment variable, or the path of a key management plugin's socket.
pub(crate) fn with_keys(names: &[&str]) -> Options {
    with_secrets(Options::default().encryption(&sections(names)))
}

/// Returns the sections of keys, the first of which is active. Rotation is disabled, so that each value stays under its key.
fn sections(names: &[&str]) -> String {
    let mut sections = "[encryption.rotation]\nenabled = false\n".to_owned();
    for (position, name) in names.iter().enumerate() {
        let source = match *name {
            socket if socket.contains('/') => format!("provider = \"kms\"\nsocket = \"{socket}\""),
            key if key.starts_with("KEY") => {
                format!("provider = \"raw\"\nenvironment = \"{key}\"")
            }
            password => format!("provider = \"password\"\nenvironment = \"{password}\""),
        };
        let is_active = position == 0;
        // Writing to a string does not fail.
        let _ = writeln!(
            sections,
            "[[encryption.keys]]\n{source}\nactive = {is_active}"
        );
    }
    sections
}

/// Returns the response to a request for the usage of keys.
pub(crate) async fn usage(server: &Server) -> Value {
    server.get_json("/api/v1/key-usage").await
}

/// Returns the expected response to a request for the usage of keys.
pub(crate) fn used(active: u64, inactive: u64, unknown: u64) -> Value {
    json!({"active_key": active, "inactive_keys": inactive, "unknown_keys": unknown})
}

/// Returns the id of the active key in the server's log.
fn active_key_id(server: &Server) -> String {
    let log = server.log();
    let mark = "\"encryption.active_key\":\"";
    let (_, rest) = log.split_once(mark).unwrap();
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_short_password_is_warned_about_but_not_logged() {
    for (password, is_warned_about) in [("SHORT_PASSWORD", true), ("PASSWORD", false)] {
        let server = Server::start_with(&with_keys(&[password])).await;
        let log = server.log();
        let is_logged = log.contains("an encryption password has fewer than 20 characters");
        assert_eq!(is_logged, is_warned_about, "{password}");
        log.assert_lacks("hunter2");
    }
}

#[tokio::test]
async fn a_key_that_never_was_active_is_ignored_with_a_warning() {
    let server = Server::start_with(&with_keys(&["KEY_A", "KEY_B"])).await;
    let log = server.log();
    let warning = log
        .lines()
        .find(|line| line.contains("ignored an encryption key"));
    assert!(warning.is_some_and(|line| line.contains("\"encryption.key_number\":2")));
}

// A server refuses to start with keys that decrypt no stored value.

#[tokio::test]
async fn unusable_keys_are_refused_with_the_ids_of_the_needed_keys() {
    let folder = TempDir::new().unwrap();
    let storage = shared_storage(folder.path());
    let mut needed = Vec::new();
    for (keys, name) in [(vec!["KEY_A"], "/a"), (vec!["KEY_B", "KEY_A"], "/b")] {
        let server = Server::start_with(&with_keys(&keys).storage(&storage)).await;
        server.set_value(name, "1").await;
        needed.push(active_key_id(&server));
        server.stop().await;
    }
    for keys in [vec!["KEY_C"], vec!["PASSWORD", "KEY_C"]] {
        let message = Server::refusal(&with_keys(&keys).storage(&storage));
        message
            .assert_contains("no configured encryption key can decrypt any of the stored values");
        for id in &needed {
            assert!(message.contains(id), "{id}: {message}");
        }
    }
    // The refused start changed nothing, and one of the two keys is enough.
    let server = Server::start_with(&with_keys(&["KEY_B"]).storage(&storage)).await;
    assert_eq!(server.newest("/b").await["value"], "1");
    server.stop().await;
    let server = Server::start_with(&with_keys(&["KEY_C", "KEY_A"]).storage(&storage)).await;
    assert_eq!(server.newest("/a").await["value"], "1");
}

#[tokio::test]
async fn a_malformed_record_of_a_key_is_named_with_its_table() {
    let server = Server::start().await;
    let key_id = active_key_id(&server);
    let named = format!("the row {key_id} of the table encryption_key is malformed");
    let damage = "update encryption_key set created_at = 9223372036854775807";
    server.run_sql(damage).await;
    for command in [&["check"][..], &["keys", "status"]] {
        let refused = server.run_command(command).expect(1);
        refused.errors.assert_contains(&named);
    }
}

#[tokio::test]
async fn an_empty_store_accepts_any_key() {
    let server = Server::start_with(&with_keys(&["KEY_A"])).await;
    let server = Server::start_in(server.stop().await, &with_keys(&["KEY_B"])).await;
    server.set_value("/a", "1").await;
}

// Stored values that can't be decrypted.

#[tokio::test]
async fn a_value_under_an_unconfigured_key_is_refused_with_the_key_id() {
    let server = Server::start_with(&with_keys(&["KEY_A"])).await;
    let one = server.set_value("/one", "canary-one").await;
    let key_id = active_key_id(&server);
    let server = Server::start_in(server.stop().await, &with_keys(&["KEY_B", "KEY_A"])).await;
    server.set_value("/two", "canary-two").await;

    let server = Server::start_in(server.stop().await, &with_keys(&["KEY_B"])).await;
    let by_id = format!("/api/v1/data/{}", one["id"].as_str().unwrap());
    for path in ["/api/v1/data?name=/one", &by_id] {
        let refused = server.get(path).await.expect(500).error();
        assert_eq!(
            refused,
            format!("the encryption key {key_id} is not configured")
        );
    }
    let log = server.log();
    let warning = log
        .lines()
        .find(|line| line.contains("stored values can't be read"));
    assert!(warning.is_some_and(|line| line.contains(&key_id)), "{log}");
    assert_eq!(server.newest("/two").await["value"], "canary-two");
    assert_eq!(usage(&server).await, used(1, 0, 1));
    // A new version replaces the unreadable one.
    server.set_value("/one", "canary-three").await;
    let newest = "/api/v1/data?name=/one&current=true";
    let newest: Value = server.get_json(newest).await;
    assert_eq!(newest["data"][0]["value"], "canary-three");
    assert!(!server.log().contains("canary-"));
}

/// Copies the ciphertext of one row to another.
const COPY: &str = "update credential_version
    set (encryption_key_id, nonce, ciphertext) = (
        select v.encryption_key_id, v.nonce, v.ciphertext from credential_version v where v.sequence = FROM)
    where sequence = TO";

#[tokio::test]
async fn a_copied_ciphertext_is_refused_without_disclosing_its_value() {
    let server = Server::start().await;
    server.set_value("/one", "canary-one").await;
    server.set_value("/two", "canary-two").await;
    server.set_value("/two", "canary-three").await;
    let sequences = "select sequence from credential_version order by sequence";
    let sequences = server.run_sql(sequences).await;
    let [one, two, three] = sequences.lines().collect::<Vec<_>>()[..] else {
        panic!("expected three versions: {sequences}");
    };
    // From one credential to another, and from one version of a credential to another.
    for (from, to, path) in [
        (three, one, "/api/v1/data?name=/one"),
        (two, three, "/api/v1/data?name=/two&current=true"),
    ] {
        let copy = COPY.replace("FROM", from).replace("TO", to);
        server.run_sql(&copy).await;
        let refused = server.get(path).await.expect(500);
        assert_eq!(
            refused.error(),
            "could not decrypt the stored value: its ciphertext was modified or moved from another record"
        );
        assert!(!refused.body.contains("canary-"), "{}", refused.body);
    }
    assert!(!server.log().contains("canary-"));
}

#[tokio::test]
async fn versions_with_a_changed_type_or_casing_are_refused() {
    let options = Options::default().hostile("", "recover = \"echo\"");
    let server = Server::start_with(&options).await;
    server.generate_authority("/root", None).await;
    let get = "/api/v1/data?name=/ROOT";
    for change in ["credential_type = 'hostile'", "name = '/ROOT'"] {
        server
            .run_sql(&format!("update credential set {change}"))
            .await;
        // Regenerating a credential of another type would pass the private key to its plugin.
        for response in [server.get(get).await, server.regenerate("/root").await] {
            let refused = response.expect(500);
            let expected = "could not decrypt the stored value: its ciphertext was modified or moved from another record";
            assert_eq!(refused.error(), expected, "{change}");
        }
        server
            .run_sql("update credential set credential_type = 'certificate', name = '/root'")
            .await;
        server.get(get).await.expect(200);
    }
}
