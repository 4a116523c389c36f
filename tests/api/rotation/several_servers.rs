//! Several servers on one database.

use keywright_harness::{Server, shared_storage};
use tempfile::TempDir;

use super::{
    FAST, Keys, SLOW, assert_values, counted, ended_line, seed, set, until_inactive, until_logged,
    usage,
};

#[tokio::test]
async fn two_servers_rotate_each_version_once_and_take_over() {
    let keys = Keys::new();
    let one = Server::start_with(&keys.options(&["a"], FAST)).await;
    let values = seed(&one, VERSIONS).await;
    let slow = keys.options(&["b", "a"], SLOW);
    let one = Server::start_in(one.stop().await, &slow).await;
    let storage = shared_storage(one.directory());
    let fast = keys.options(&["b", "a"], FAST).storage(&storage);
    let two = Server::start_in(TempDir::new().unwrap(), &fast).await;
    until_inactive(&two, |inactive| inactive < VERSIONS as u64 - 2).await;
    assert_eq!(counted(&two).await, (0.0, 0.0));

    // The folder contains the file that both share on SQLite.
    let folder = one.stop().await;
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let rotated_by_one = ended_line(&log)["rotation.versions_rotated"]
        .as_u64()
        .unwrap();
    let all = until_inactive(&two, |inactive| inactive == 0).await;
    assert_eq!(all, [VERSIONS as u64, 0, 0]);
    until_logged(&two, "stopped rotating encryption keys").await;
    let rotated_by_two = ended_line(&two.log())["rotation.versions_rotated"]
        .as_u64()
        .unwrap();
    assert!(rotated_by_one > 0 && rotated_by_two > 0);
    assert_eq!(rotated_by_one + rotated_by_two, VERSIONS as u64);
    assert_values(&two, &values).await;
}

#[tokio::test]
async fn with_different_active_keys_the_last_started_server_rotates() {
    let keys = Keys::new();
    // Both keys have records before the servers start that have them.
    let first = Server::start_with(&keys.options(&["b"], FAST)).await;
    let folder = first.stop().await;
    let old = Server::start_in(folder, &keys.options(&["a", "b"], FAST)).await;
    let values = seed(&old, 40).await;
    let storage = shared_storage(old.directory());
    let options = keys.options(&["b", "a"], FAST).storage(&storage);
    let new = Server::start_in(TempDir::new().unwrap(), &options).await;
    assert_eq!(until_inactive(&new, |left| left == 0).await, [40, 0, 0]);
    until_logged(&old, "encryption keys are not rotated here").await;
    assert_eq!(usage(&old).await, [0, 40, 0]);

    // Writes of the old server are rotated too.
    let caller = old.as_client("developer").await;
    set(&caller, "/later", "v").await.expect(200);
    assert_eq!(until_inactive(&new, |left| left == 0).await, [41, 0, 0]);
    assert_eq!(counted(&old).await, (0.0, 0.0));
    assert_values(&old, &values).await;

    // To go back, start a server with the old key again.
    let back = keys.options(&["a", "b"], FAST);
    let old = Server::start_in(old.stop().await, &back).await;
    assert_eq!(until_inactive(&old, |left| left == 0).await, [41, 0, 0]);
    until_logged(&new, "encryption keys are not rotated here").await;
    assert_values(&old, &values).await;
}

const VERSIONS: usize = 150;
