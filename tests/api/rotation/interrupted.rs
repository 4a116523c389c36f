//! Rotations by several servers, killed servers, reversed directions, and damaged versions.

use keywright_harness::{
    Server, Text, is_on_postgres, run_sql, shared_storage, without_constraints,
};
use tempfile::TempDir;

use super::{
    FAST, Keys, OFF, SLOW, assert_values, counted, result_line, seed, set, until_inactive, usage,
};
use crate::given;

#[tokio::test]
async fn two_servers_rotate_each_version_once_even_if_one_stops() {
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

    // Keeps the folder: on SQLite, it contains the file that both servers use.
    let folder = one.stop().await;
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let rotated_by_one = result_line(&log)["rotation.versions_rotated"]
        .as_u64()
        .unwrap();
    let all = until_inactive(&two, |inactive| inactive == 0).await;
    assert_eq!(all, [VERSIONS as u64, 0, 0]);
    two.until_logged("stopped rotating encryption keys").await;
    let rotated_by_two = result_line(&two.log())["rotation.versions_rotated"]
        .as_u64()
        .unwrap();
    assert!(rotated_by_one > 0 && rotated_by_two > 0);
    assert_eq!(rotated_by_one + rotated_by_two, VERSIONS as u64);
    assert_values(&two, &values).await;
}

#[tokio::test]
async fn with_different_active_keys_the_last_started_server_rotates() {
    let keys = Keys::new();
    // Creates the records of both keys before the servers with both keys start.
    let first = Server::start_with(&keys.options(&["b"], FAST)).await;
    let folder = first.stop().await;
    let old = Server::start_in(folder, &keys.options(&["a", "b"], FAST)).await;
    let values = seed(&old, 40).await;
    let storage = shared_storage(old.directory());
    let options = keys.options(&["b", "a"], FAST).storage(&storage);
    let new = Server::start_in(TempDir::new().unwrap(), &options).await;
    assert_eq!(until_inactive(&new, |left| left == 0).await, [40, 0, 0]);
    old.until_logged("encryption keys are not rotated here")
        .await;
    assert_eq!(usage(&old).await, [0, 40, 0]);

    // Writes of the old server are rotated too.
    let caller = old.as_client("developer").await;
    set(&caller, "/later", "v").await.expect(200);
    assert_eq!(until_inactive(&new, |left| left == 0).await, [41, 0, 0]);
    assert_eq!(counted(&old).await, (0.0, 0.0));
    assert_values(&old, &values).await;

    // To reverse the rotation, start a server with the old key again.
    let back = keys.options(&["a", "b"], FAST);
    let old = Server::start_in(old.stop().await, &back).await;
    assert_eq!(until_inactive(&old, |left| left == 0).await, [41, 0, 0]);
    new.until_logged("encryption keys are not rotated here")
        .await;
    assert_values(&old, &values).await;
}

const VERSIONS: usize = 150;

#[tokio::test]
async fn a_killed_rotation_resumes_after_its_last_batch() {
    let keys = Keys::new();
    let server = Server::start_with(&keys.options(&["a"], FAST)).await;
    let values = seed(&server, VERSIONS).await;
    let slow = keys.options(&["b", "a"], SLOW);
    let server = Server::start_in(server.stop().await, &slow).await;
    let [rotated, ..] = until_inactive(&server, |inactive| inactive < LEFT).await;
    assert!((1..VERSIONS as u64).contains(&rotated), "{rotated}");
    let directory = server.kill();

    // Rotated and other versions can be read.
    let off = keys.options(&["b", "a"], OFF);
    let server = Server::start_in(directory, &off).await;
    assert_values(&server, &values).await;
    let [rotated, left, unknown] = usage(&server).await;
    assert!(
        rotated > 0 && left > 0 && unknown == 0,
        "{rotated} {left} {unknown}"
    );

    // The lease of the killed process expires.
    let fast = keys.options(&["b", "a"], FAST);
    let server = Server::start_in(server.stop().await, &fast).await;
    let all = until_inactive(&server, |inactive| inactive == 0).await;
    assert_eq!(all, [VERSIONS as u64, 0, 0]);
    let (rotated, failed) = counted(&server).await;
    #[expect(clippy::cast_precision_loss, reason = "there are few versions")]
    let left = left as f64;
    assert!((rotated - left).abs() < f64::EPSILON && failed.abs() < f64::EPSILON);
    assert_values(&server, &values).await;
}

/// The server is killed once fewer versions than this are left to rotate.
const LEFT: u64 = 148;

#[tokio::test]
async fn a_failed_start_does_not_reverse_a_rotation() {
    let keys = Keys::new();
    let first = Server::start_with(&keys.options(&["a"], OFF)).await;
    seed(&first, 5).await;
    let storage = shared_storage(first.directory());
    let both = keys.options(&["b", "a"], FAST);
    let server = Server::start_in(first.stop().await, &both).await;
    let address = server.base_url().replace("https://", "");
    let port = address.rsplit(':').next().unwrap();

    // If these servers started, they would rotate towards the old key.
    let old = || keys.options(&["a", "b"], FAST).storage(&storage);
    for (failing, reason) in [
        (
            old().generator("absent", "component = \"absent.wasm\""),
            "loading the plugins",
        ),
        (
            old().environment("KEYWRIGHT_SERVER__LISTEN", &format!("\"{address}\"")),
            "Address already in use",
        ),
        (
            old().environment(
                "KEYWRIGHT_MANAGEMENT__LISTEN",
                &format!("\"127.0.0.1:{port}\""),
            ),
            "Address already in use",
        ),
    ] {
        let before = last_activated(&server).await;
        let result = Server::refusal(&failing);
        result.assert_contains(reason);
        assert_eq!(last_activated(&server).await, before);
        result.assert_lacks("started rotating encryption keys");
    }
    assert_eq!(until_inactive(&server, |left| left == 0).await, [5, 0, 0]);
    server.run_command("keys rotate").expect(0);
}

/// Returns the number of key activations and the latest ordinal.
async fn last_activated(server: &Server) -> String {
    let sql = "select count(*) || ' ' || max(ordinal) from encryption_key_activation";
    server.run_sql(sql).await
}

/// Copies the nonce and the ciphertext of the first version to the versions of two credentials, which damages them.
const COPY: &str = "update credential_version set
    nonce = (select nonce from credential_version order by sequence limit 1),
    ciphertext = (select ciphertext from credential_version order by sequence limit 1)
    where credential_sequence in (select sequence from credential where name in ('/damaged/1', '/damaged/2'))";

#[tokio::test]
async fn undecryptable_versions_are_logged_once_and_skipped() {
    let keys = Keys::new();
    let server = Server::start_with(&keys.options(&["a"], FAST)).await;
    let mut values = seed(&server, 30).await;
    let caller = server.as_client("developer").await;
    let mut damaged = Vec::new();
    for name in ["/damaged/1", "/damaged/2"] {
        damaged.push(given::id(&set(&caller, name, "v").await.expect(200).json()));
    }
    set(&caller, "/last", "v").await.expect(200);
    values.insert("/last".to_owned(), vec!["v".to_owned()]);
    let folder = server.stop().await;
    let damage = format!(
        "{COPY}; update credential_version set sequence = -1
         where sequence = (select min(sequence) from credential_version)"
    );
    run_sql(folder.path(), &without_constraints(&damage)).await;

    let options = keys.options(&["b", "a"], "batch_versions = 4\ninterval_seconds = 1");
    let server = Server::start_in(folder, &options).await;
    assert_eq!(until_inactive(&server, |left| left == 2).await, [31, 2, 0]);
    server
        .until_logged("stopped rotating encryption keys")
        .await;
    assert_values(&server, &values).await;
    for id in &damaged {
        let reported = "can't be rotated to the active encryption key";
        let log = server.log();
        let lines = log.lines().filter(|line| line.contains(reported));
        assert_eq!(lines.filter(|line| line.contains(id)).count(), 1, "{id}");
        server.get(&format!("/api/v1/data/{id}")).await.expect(500);
    }
    assert_eq!(counted(&server).await, (31.0, 2.0));
    let remaining = "keywright_key_rotation_versions_remaining";
    let scrape = server.scrape().await;
    assert_eq!(scrape.sum(remaining, &[]), Some(2.0));
    let result_fields = result_line(&server.log());
    assert_eq!(result_fields["rotation.versions_failed"], 2);
    assert_eq!(result_fields["rotation.versions_remaining"], 2);

    if !is_on_postgres() {
        let sql = "update credential set name = cast(x'2fff' as text) where name = '/damaged/2'";
        server.run_sql(sql).await;
    }
    assert_eq!(server.found_names("path=/damaged").await.len(), 2);

    // The command reports these versions by its exit status, and lists their ids.
    for arguments in [["keys", "rotate", "--quiet"], ["keys", "rotate", "--wait"]] {
        let result = server.run_command(&arguments).expect(3);
        assert!(
            damaged.iter().all(|id| result.errors.contains(id)),
            "{result:?}"
        );
    }

    let restored = "update credential set name = name_folded where name_folded = '/damaged/2'";
    server.run_sql(restored).await;

    // After the damaged versions are deleted, the rotation completes.
    for name in ["/damaged/1", "/damaged/2"] {
        let response = server.delete(&format!("/api/v1/data?name={name}")).await;
        response.expect(204);
    }
    assert_eq!(until_inactive(&server, |left| left == 0).await, [31, 0, 0]);
    server.run_command("keys rotate").expect(0);
}
