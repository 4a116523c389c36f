//! Starts without the database that existed before.

use std::{fs, path::Path};

use keywright_harness::{Server, is_on_postgres, run_command};
use serde_json::json;

use super::{options, set};

#[tokio::test]
async fn a_missing_database_is_not_replaced_by_an_empty_one() {
    if is_on_postgres() {
        return;
    }
    let server = Server::start_with(&options()).await;
    assert_eq!(set(&server, "/a", "v").await, 200);
    let directory = server.stop().await;
    let file = |end: &str| directory.path().join(format!("keywright.db{end}"));
    let backup = fs::read(file("")).unwrap();
    fs::remove_file(file("")).unwrap();
    let missing = "is missing or empty, though a server has used it before";
    refuses(directory.path(), missing);
    fs::write(file(""), "").unwrap();
    refuses(directory.path(), missing);

    // A restored back-up is used.
    fs::write(file(""), backup).unwrap();
    let server = Server::start_in(directory, &options()).await;
    let found = server.get("/api/v1/data?name=/a&current=true").await;
    assert_eq!(found.expect(200).json()["data"][0]["value"], json!("v"));

    // A leftover write-ahead log contains writes that the database needs.
    let directory = server.kill();
    let file = |end: &str| directory.path().join(format!("keywright.db{end}"));
    fs::remove_file(file(".created")).unwrap();
    fs::remove_file(file("")).unwrap();
    refuses(directory.path(), "though its write-ahead log");

    // After deleting the marker of the database, the server creates an empty one.
    for end in ["-wal", "-shm"] {
        fs::remove_file(file(end)).unwrap();
    }
    let server = Server::start_in(directory, &options()).await;
    server.get("/api/v1/data?name=/a").await.expect(404);
    assert!(server.log().contains("created a new and empty database"));
}

#[test]
fn a_missing_database_prevents_start_if_creation_is_disabled() {
    let setting = "KEYWRIGHT_STORAGE__FILE_CREATION_ENABLED";
    let options = options().environment(setting, "false");
    if is_on_postgres() {
        return;
    }
    let refusal = Server::refusal(&options);
    let words = "storage.file_creation_enabled is false";
    assert!(refusal.contains(words), "{refusal}");
}

/// Requires that neither a server nor a command creates an empty database.
#[track_caller]
fn refuses(directory: &Path, words: &str) {
    for command in [&["keys", "rotate"][..], &["serve"]] {
        let refused = run_command(directory, command).expect(1);
        assert!(refused.errors.contains(words), "{refused:?}");
    }
}
