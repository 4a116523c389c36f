//! The section `encryption.rotation`, `keywright keys status` and `keywright keys rotate`.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::Path,
};

use keywright_harness::{
    Server, Text, is_on_postgres, print_message, run_command, run_program, run_sql, shared_storage,
    without_constraints,
};
use serde_json::Value;
use tempfile::TempDir;

use super::{FAST, Keys, OFF, SLOW, assert_values, counted, seed, set, usage};

#[tokio::test]
async fn the_largest_and_smallest_values_are_accepted() {
    let keys = Keys::new();
    for lines in [
        "batch_versions = 1\npause_milliseconds = 0\ninterval_seconds = 1",
        "batch_versions = 1000\npause_milliseconds = 60000\ninterval_seconds = 86400",
    ] {
        Server::start_with(&keys.options(&["a"], lines)).await;
    }
}

// `keywright keys status` and `keywright keys rotate`.

/// Replaces the keys in the configuration of a stopped server.
fn configure(keys: &Keys, folder: &Path, before: &[&str], after: &[&str]) {
    let path = folder.join("keywright.toml");
    let text = fs::read_to_string(&path).unwrap();
    let (before, after) = (keys.sections(before), keys.sections(after));
    text.assert_contains(&before);
    fs::write(path, text.replace(&before, &after)).unwrap();
}

/// Returns the state and the number of versions of each key, and whether the active key is new.
fn status(folder: &Path) -> (Vec<(String, u64)>, bool) {
    let output = run_command(folder, "keys status --json").expect(0);
    let status: Value = serde_json::from_str(&output.output).unwrap();
    let keys = status["keys"].as_array().unwrap().iter();
    let keys = keys.map(|key| {
        assert_eq!(key["provider"], "raw");
        assert_eq!(key["id"].as_str().unwrap().len(), 36);
        assert!(key["created_at"].as_str().unwrap().ends_with('Z'));
        let state = key["state"].as_str().unwrap().to_owned();
        (state, key["versions"].as_u64().unwrap())
    });
    (
        keys.collect(),
        status["active_key_is_new"].as_bool().unwrap(),
    )
}

fn expected(keys: &[(&str, u64)], is_new: bool) -> (Vec<(String, u64)>, bool) {
    let keys = keys.iter();
    let keys = keys.map(|&(state, versions)| (state.to_owned(), versions));
    (keys.collect(), is_new)
}

#[tokio::test]
async fn status_lists_every_key_ever_active_and_is_read_only() {
    let keys = Keys::new();
    let server = Server::start_with(&keys.options(&["a"], OFF)).await;
    seed(&server, 3).await;
    let server = Server::start_in(server.stop().await, &keys.options(&["b", "a"], OFF)).await;
    let caller = server.as_client("developer").await;
    set(&caller, "/b", "v").await.expect(200);
    let folder = server.stop().await;
    let folder = folder.path();
    let actual = status(folder);
    assert_eq!(actual, expected(&[("inactive", 3), ("active", 1)], false));
    let table = run_command(folder, "keys status").expect(0).output;
    let lines: Vec<&str> = table.lines().collect();
    assert!(
        lines[0].starts_with("KEY ") && lines[0].ends_with("VERSIONS  ENCRYPTIONS"),
        "{table}"
    );
    assert!(
        lines[1].contains(" inactive           3 ") && lines[1].ends_with(" 1024"),
        "{table}"
    );
    assert_eq!(lines.len(), 3, "{table}");

    // The status is available even if a server could not start.
    configure(&keys, folder, &["b", "a"], &["c"]);
    let actual = status(folder);
    assert_eq!(actual, expected(&[("unknown", 3), ("unknown", 1)], true));
    let table = run_command(folder, "keys status").expect(0).output;
    table.assert_contains("The configured active key is not listed");
    let records = run_sql(folder, "select count(*) from encryption_key").await;
    assert_eq!(records, "2");
}

#[tokio::test]
async fn rotate_works_without_a_running_server() {
    let keys = Keys::new();
    let server = Server::start_with(&keys.options(&["a"], OFF)).await;
    let values = seed(&server, 30).await;
    let folder = server.stop().await;
    configure(&keys, folder.path(), &["a"], &["b", "a"]);
    let result = run_command(folder.path(), "keys rotate").expect(0);
    result.errors.assert_contains("versions rotated: 30 of 30");
    result.errors.assert_contains("loaded encryption keys");
    let actual = status(folder.path());
    assert_eq!(actual, expected(&[("inactive", 0), ("active", 30)], false));
    let result = run_command(folder.path(), "keys rotate --wait --quiet").expect(0);
    assert_eq!((result.output.as_str(), result.errors.as_str()), ("", ""));
    let server = Server::start_in(folder, &keys.options(&["b"], FAST)).await;
    assert_values(&server, &values).await;
}

#[tokio::test]
async fn rotate_refuses_a_database_that_another_user_could_replace() {
    if is_on_postgres() {
        return;
    }
    let folder = Server::start().await.stop().await;
    if fs::metadata(folder.path()).unwrap().uid() != 0 {
        return print_message("skipped: only root can give a folder to another user");
    }
    let assert_refused = |reason: &str| {
        let result = run_command(folder.path(), "keys rotate").expect(1);
        result.errors.assert_contains(reason);
    };
    fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).unwrap();
    assert_refused("other users may write");
    chown(folder.path(), Some(65_534), None).unwrap();
    assert_refused("belongs to another user (id 65534), who could replace files");
}

#[tokio::test]
async fn rotate_ignores_a_malformed_activation() {
    let keys = Keys::new();
    let server = Server::start_with(&keys.options(&["a"], OFF)).await;
    seed(&server, 3).await;
    let folder = server.stop().await;
    let last = "update encryption_key_activation set ordinal = 9223372036854775807";
    run_sql(folder.path(), last).await;
    configure(&keys, folder.path(), &["a"], &["b", "a"]);
    let result = run_command(folder.path(), "keys rotate").expect(0);
    result.errors.assert_contains("versions rotated: 3 of 3");
    let server = Server::start_in(folder, &keys.options(&["a", "b"], OFF)).await;
    server.run_command("keys rotate").expect(0);
    assert_eq!(usage(&server).await, [3, 0, 0]);
}

#[tokio::test]
async fn rotate_works_while_a_server_runs() {
    let keys = Keys::new();
    let server = Server::start_with(&keys.options(&["a"], OFF)).await;
    let values = seed(&server, 30).await;
    let server = Server::start_in(server.stop().await, &keys.options(&["b", "a"], OFF)).await;
    server.run_command("keys rotate --wait").expect(0);
    assert_eq!(usage(&server).await, [30, 0, 0]);
    assert_values(&server, &values).await;
    assert_eq!(counted(&server).await, (0.0, 0.0));
}

#[tokio::test]
async fn rotate_waits_for_a_server_that_is_rotating() {
    let keys = Keys::new();
    let server = Server::start_with(&keys.options(&["a"], OFF)).await;
    seed(&server, 100).await;
    let slow = keys.options(&["b", "a"], SLOW);
    let server = Server::start_in(server.stop().await, &slow).await;
    super::until_inactive(&server, |left| left < 100).await;
    let result = server.run_command("keys rotate").expect(0);
    result
        .errors
        .assert_contains("another process is rotating the keys");
    // The command itself rotates fast.
    let path = server.directory().to_owned();
    let file = path.join("keywright.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(file, text.replace(SLOW, FAST)).unwrap();
    let rotate = move || run_command(&path, "keys rotate --wait");
    let waiting = tokio::task::spawn_blocking(rotate);
    // The server continues alone, and the command takes over when it stops.
    let before = usage(&server).await[1];
    super::until_inactive(&server, |left| left < before - 2).await;
    assert!(!waiting.is_finished(), "{:?}", waiting.await);
    let folder = server.stop().await;
    waiting.await.unwrap().expect(0);
    let actual = status(folder.path());
    assert_eq!(actual, expected(&[("inactive", 0), ("active", 100)], false));
}

#[tokio::test]
async fn rotate_reports_versions_under_an_unknown_key() {
    let keys = Keys::new();
    let server = Server::start_with(&keys.options(&["a"], OFF)).await;
    seed(&server, 3).await;
    let server = Server::start_in(server.stop().await, &keys.options(&["b", "a"], OFF)).await;
    seed(&server, 1).await;
    let server = Server::start_in(server.stop().await, &keys.options(&["b"], OFF)).await;
    let delete_record = "delete from encryption_key where id = (
        select encryption_key_id from credential_version order by sequence limit 1)";
    for damage in ["", delete_record] {
        server.run_sql(&without_constraints(damage)).await;
        let result = server.run_command("keys rotate --wait").expect(3);
        let reason = "3 versions not rotated: encrypted with keys that are not configured";
        result.errors.assert_contains(reason);
        let check = "check-config --no-plugins --connect keywright.toml";
        let checked = run_program(server.directory(), check, &[]).expect(0);
        let warning = "warning: encryption.keys: stored values can't be read";
        checked.output.assert_contains(warning);
    }
}

#[tokio::test]
async fn rotate_refuses_a_key_older_than_the_active_one() {
    let keys = Keys::new();
    let server = Server::start_with(&keys.options(&["a"], OFF)).await;
    let server = Server::start_in(server.stop().await, &keys.options(&["b", "a"], OFF)).await;
    seed(&server, 3).await;
    let folder = server.stop().await;
    configure(&keys, folder.path(), &["b", "a"], &["a", "b"]);
    let result = run_command(folder.path(), "keys rotate --wait").expect(1);
    let reason = "a server has started later with another active key";
    result.errors.assert_contains(reason);
    let actual = status(folder.path());
    assert_eq!(actual, expected(&[("active", 0), ("inactive", 3)], false));
}

#[tokio::test]
async fn rotate_stops_when_a_server_activates_another_key() {
    let keys = Keys::new();
    let server = Server::start_with(&keys.options(&["a"], SLOW)).await;
    seed(&server, 100).await;
    let folder = server.stop().await;
    configure(&keys, folder.path(), &["a"], &["b", "a"]);
    let path = folder.path().to_owned();
    let rotating = tokio::task::spawn_blocking(move || run_command(&path, "keys rotate"));
    // Once the first version is rotated, the command has set its key as the target.
    let rotated = "select count(distinct encryption_key_id) from credential_version";
    while run_sql(folder.path(), rotated).await != "2" {
        assert!(!rotating.is_finished(), "{:?}", rotating.await);
        tokio::time::sleep(super::POLL).await;
    }
    let options = keys.options(&["a", "b"], OFF);
    let options = options.storage(&shared_storage(folder.path()));
    let server = Server::start_in(TempDir::new().unwrap(), &options).await;
    let result = rotating.await.unwrap().expect(1);
    let reason = "a server has started later with another active key";
    result.errors.assert_contains(reason);
    let [_, rotated, unknown] = usage(&server).await;
    assert!((1..100).contains(&rotated) && unknown == 0, "{rotated}");
}
