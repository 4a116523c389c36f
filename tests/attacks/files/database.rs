//! Database files that are moved, deleted or replaced under a running server.

use std::{
    fs,
    path::{Path, PathBuf},
};

use keywright_harness::{Server, is_on_postgres};

use super::{assert_stored, become_healthy, get, is_healthy, options, set};

/// The ways to remove a file.
#[derive(Clone, Copy, Debug)]
enum Taking {
    /// Renamed.
    Rename,
    /// Renamed, and replaced with a copy.
    Replace,
    /// Renamed, and replaced with an empty file.
    Truncate,
    /// Renamed, and replaced with a symbolic link to another file.
    Link,
}

#[tokio::test]
async fn a_moved_database_is_not_used_until_it_is_restored() {
    if is_on_postgres() {
        return;
    }
    let server = Server::start_with(&options()).await;
    let mut stored = Vec::new();
    let mut number = 0;
    for end in ["", "-wal", "-shm"] {
        for taking in [
            Taking::Rename,
            Taking::Replace,
            Taking::Truncate,
            Taking::Link,
        ] {
            let file = server.directory().join(format!("keywright.db{end}"));
            number += 1;
            let name = format!("/before/{number}");
            assert_eq!(set(&server, &name, &name).await, 200);
            stored.push(name);
            let taken = take(&file, taking);
            // Even the first write is not acknowledged.
            for attempt in 0..3 {
                let name = format!("/away/{number}/{attempt}");
                assert_eq!(set(&server, &name, "v").await, 503, "{taking:?} of {end}");
            }
            become_healthy(&server, 503).await;
            assert_eq!(get(&server, &stored[0]).await, 503, "{taking:?} of {end}");
            assert!(!is_healthy(&server, "database_file").await);
            fs::rename(&taken, &file).unwrap();
            become_healthy(&server, 200).await;
            assert_stored(&server, &stored).await;
            assert_eq!(get(&server, &format!("/away/{number}/0")).await, 404);
        }
    }
    assert!(is_healthy(&server, "database_file").await);
    let log = server.log();
    assert!(log.contains("stopped using the database: its file was moved or replaced"));
    // The files contain all data.
    let server = Server::start_in(server.kill(), &options()).await;
    assert_stored(&server, &stored).await;
}

#[tokio::test]
async fn a_deleted_database_stops_writes_and_the_next_start() {
    if is_on_postgres() {
        return;
    }
    let server = Server::start_with(&options()).await;
    assert_eq!(set(&server, "/a", "v").await, 200);
    fs::remove_file(server.directory().join("keywright.db")).unwrap();
    assert_eq!(set(&server, "/b", "v").await, 503);
    become_healthy(&server, 503).await;
    let refused = Server::try_start_in(server.stop().await, &options()).await;
    let log = refused.err().unwrap();
    assert!(log.contains("is missing"), "{log}");
}

/// Removes a file, and returns its new path.
fn take(file: &Path, taking: Taking) -> PathBuf {
    let taken = file.with_extension("taken");
    fs::rename(file, &taken).unwrap();
    match taking {
        Taking::Rename => {}
        Taking::Replace => {
            fs::copy(&taken, file).unwrap();
        }
        Taking::Truncate => fs::write(file, "").unwrap(),
        Taking::Link => {
            let copy = file.with_extension("copy");
            fs::copy(&taken, &copy).unwrap();
            std::os::unix::fs::symlink(&copy, file).unwrap();
        }
    }
    taken
}
