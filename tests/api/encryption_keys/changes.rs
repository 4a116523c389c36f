//! A new active key: the creation of its record, and its activation on one server after the other.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use keywright_harness::{Options, Server, Text, shared_storage, until};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::{active_key_id, sections, usage, used, with_keys, with_secrets};

// Creation of the record of a new active key.

#[test]
fn start_fails_when_no_server_creates_the_key_record_in_time() {
    for (lines, message) in [
        ("key_wait_seconds_max = 1", "after 1 seconds"),
        ("key_wait_seconds_max = 0", "after 0 seconds"),
    ] {
        let options = Options::default().encryption(&waiting(lines));
        let refused = Server::refusal(&with_secrets(options));
        refused.assert_contains(message);
        refused.assert_contains("encryption.key_creation_enabled is false");
    }
}

#[tokio::test]
async fn without_key_creation_a_server_waits_for_the_key_record() {
    let folder = TempDir::new().unwrap();
    let storage = shared_storage(folder.path());
    let waiting_folder = TempDir::new().unwrap();
    let log = waiting_folder.path().join("log");
    let waiting = Options::default().encryption(&waiting("key_wait_seconds_max = 600"));
    let waiting = with_secrets(waiting).storage(&storage);
    let waiting = tokio::spawn(async move { Server::start_in(waiting_folder, &waiting).await });
    signal_once_waiting(&log, "-HUP").await;
    let creating = Server::start_with(&with_keys(&["KEY_A"]).storage(&storage)).await;
    creating.set_value("/a", "1").await;
    let waited = waiting.await.unwrap();
    assert_eq!(waited.newest("/a").await["value"], "1");
    let actual = super::active_key_id(&waited);
    assert_eq!(actual, super::active_key_id(&creating));
    waited.until_logged("reloaded the plugins").await;
}

#[tokio::test]
async fn a_server_stopped_during_its_start_shuts_down() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log");
    let waiting = Options::default().encryption(&waiting("key_wait_seconds_max = 600"));
    let waiting = with_secrets(waiting);
    let starting = tokio::spawn(async move { Server::try_start_in(folder, &waiting).await });
    signal_once_waiting(&log, "-TERM").await;
    let log = starting.await.unwrap().err().unwrap();
    log.assert_contains("shutting down: the start is incomplete");
}

/// Signals a server once its log says that it waits for a key record.
async fn signal_once_waiting(log: &Path, signal: &str) {
    let is_waiting = async || {
        fs::read_to_string(log).is_ok_and(|log| log.contains("waiting for another server"))
    };
    until("waiting server", is_waiting).await;
    let mut command = Command::new("pkill");
    let command = command.args([signal, "-f"]).arg(log.parent().unwrap());
    assert!(command.status().unwrap().success());
}

#[tokio::test]
async fn a_server_without_key_creation_starts_with_an_existing_record() {
    let server = Server::start_with(&with_keys(&["KEY_A"])).await;
    let options = Options::default().encryption(&waiting("key_wait_seconds_max = 0"));
    let server = Server::start_in(server.stop().await, &with_secrets(options)).await;
    server.set_value("/a", "1").await;
}

/// Configures the key `KEY_A` for a server that does not create the key's record.
fn waiting(lines: &str) -> String {
    let keys = sections(&["KEY_A"]);
    format!("[encryption]\nkey_creation_enabled = false\n{lines}\n{keys}")
}

// Changing the active key of two servers, one after the other, without a failed request.

#[tokio::test]
async fn a_rolling_key_change_of_two_servers_fails_no_request() {
    let folder = TempDir::new().unwrap();
    let storage = shared_storage(folder.path());
    let start = |keys: &[&str]| {
        let options = with_keys(keys).storage(&storage);
        async move { Server::start_with(&options).await }
    };
    let (old, both) = (["KEY_A"], ["KEY_A", "PASSWORD"]);
    let changed = ["PASSWORD", "KEY_A"];

    let (one, two) = tokio::join!(start(&old), start(&old));
    let old_key = active_key_id(&one);
    one.set_value("/old", "1").await;

    // Both get the new key, still inactive.
    let load = Load::on(two);
    one.stop().await;
    let one = start(&both).await;
    let two = load.end().await;
    let load = Load::on(one);
    two.stop().await;
    let two = start(&both).await;
    let one = load.end().await;

    // One server activates the key. The other server detects this while running, and both read values under the key.
    let load = Load::on(two);
    one.stop().await;
    let one = start(&changed).await;
    assert_ne!(active_key_id(&one), old_key);
    one.set_value("/new", "2").await;
    let two = load.end().await;
    assert_eq!(two.newest("/new").await["value"], "2");
    two.set_value("/still-old", "3").await;
    assert_eq!(one.newest("/still-old").await["value"], "3");

    // The other server activates it, too.
    let load = Load::on(one);
    two.stop().await;
    let two = start(&changed).await;
    let one = load.end().await;
    assert_eq!(active_key_id(&two), active_key_id(&one));
    for server in [&one, &two] {
        for (name, value) in [("/old", "1"), ("/new", "2"), ("/still-old", "3")] {
            assert_eq!(server.newest(name).await["value"], value);
        }
        assert_eq!(usage(server).await["unknown_keys"], 0);
    }
}

#[tokio::test]
async fn a_key_activated_by_another_server_is_recognized_before_use() {
    let folder = TempDir::new().unwrap();
    let storage = shared_storage(folder.path());
    let old = with_keys(&["KEY_A", "KEY_B", "KEY_C"]).storage(&storage);
    let old = Server::start_with(&old).await;
    let new = with_keys(&["KEY_B", "KEY_A"]).storage(&storage);
    let new = Server::start_with(&new).await;
    new.set_value("/new", "1").await;
    let recognized = format!("\"encryption.key\":\"{}\"", active_key_id(&new));
    old.until_logged(&recognized).await;
    assert_eq!(usage(&old).await, used(0, 1, 0));
}

#[tokio::test]
async fn a_key_activated_by_another_server_is_not_counted_as_unknown() {
    let folder = TempDir::new().unwrap();
    let storage = shared_storage(folder.path());
    let old = with_keys(&["KEY_A", "KEY_B"]).storage(&storage);
    let old = Server::start_with(&old).await;
    let new = with_keys(&["KEY_B", "KEY_A"]).storage(&storage);
    let new = Server::start_with(&new).await;
    new.set_value("/new", "1").await;
    assert_eq!(usage(&old).await, used(0, 1, 0));
}

/// Sets and reads on a server until stopped; a failed request fails the test.
struct Load {
    is_stopped: Arc<AtomicBool>,
    running: JoinHandle<Server>,
}

impl Load {
    fn on(server: Server) -> Self {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&is_stopped);
        let running = tokio::spawn(async move {
            while !stopped.load(Ordering::Relaxed) {
                server.set_value("/load", "value").await;
                server.newest("/old").await;
                let newest = "/api/v1/data?name=/load&current=true";
                server.get(newest).await.expect(200);
            }
            server
        });
        Self {
            is_stopped,
            running,
        }
    }

    async fn end(self) -> Server {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.running.await.unwrap()
    }
}
