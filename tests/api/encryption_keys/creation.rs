//! Creation of the record of a new active key.

use std::{fs, time::Duration};

use keywright_harness::{Options, Server, shared_storage};
use tempfile::TempDir;

use super::{sections, usage, used, with_keys, with_secrets};
use crate::given;

#[tokio::test]
async fn servers_starting_together_with_a_new_key_share_one_record() {
    let folder = TempDir::new().unwrap();
    let storage = shared_storage(folder.path());
    // Migrates the schema.
    let first = Server::start_with(&with_keys(&["KEY_A"]).storage(&storage)).await;
    first.stop().await;
    // A slowly derived key, so that all servers find no record and create one.
    let options = with_keys(&["PASSWORD"]).storage(&storage);
    let start = || Server::start_with(&options);
    let (one, two, three, four) = tokio::join!(start(), start(), start(), start());
    let servers = [one, two, three, four];
    let mut ids: Vec<_> = servers.iter().map(super::active_key_id).collect();
    ids.dedup();
    assert_eq!(ids.len(), 1, "{ids:?}");
    for (number, server) in servers.iter().enumerate() {
        given::set_value(server, &format!("/{number}"), "value").await;
    }
    for server in &servers {
        assert_eq!(usage(server).await, used(4, 0, 0));
        for number in 0..servers.len() {
            given::newest(server, &format!("/{number}")).await;
        }
    }
}

#[test]
fn start_fails_when_no_server_creates_the_key_record_in_time() {
    for (lines, said) in [
        ("key_wait_seconds_max = 1", "after 1 seconds"),
        ("key_wait_seconds_max = 0", "after 0 seconds"),
    ] {
        let options = Options::default().encryption(&waiting(lines));
        let refused = Server::refusal(&with_secrets(options));
        assert!(refused.contains(said), "{refused}");
        assert!(
            refused.contains("encryption.key_creation_enabled is false"),
            "{refused}"
        );
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
    while !fs::read_to_string(&log).is_ok_and(|log| log.contains("waiting for another server")) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let making = Server::start_with(&with_keys(&["KEY_A"]).storage(&storage)).await;
    given::set_value(&making, "/a", "1").await;
    let waited = waiting.await.unwrap();
    assert_eq!(given::newest(&waited, "/a").await["value"], "1");
    assert_eq!(super::active_key_id(&waited), super::active_key_id(&making));
}

#[tokio::test]
async fn a_server_without_key_creation_starts_with_an_existing_record() {
    let server = Server::start_with(&with_keys(&["KEY_A"])).await;
    let options = Options::default().encryption(&waiting("key_wait_seconds_max = 0"));
    let server = Server::start_in(server.stop().await, &with_secrets(options)).await;
    given::set_value(&server, "/a", "1").await;
}

/// The key `KEY_A`, for a server that does not create its record.
fn waiting(lines: &str) -> String {
    let keys = sections(&["KEY_A"]);
    format!("[encryption]\nkey_creation_enabled = false\n{lines}\n{keys}")
}
