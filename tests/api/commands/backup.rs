//! Backups during writes, and their restoration: by `keywright backup` on SQLite, by `pg_dump` on PostgreSQL.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use std::{
    fs,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use keywright_harness::{Options, Server, copied_by_backup, is_on_postgres, run_command};
use serde_json::{Value, json};

use super::check::fill;
use crate::given;

/// The acknowledged writes of a server.
#[derive(Clone, Default)]
struct Acknowledged {
    /// Versions as returned in responses.
    written: Vec<Value>,
    /// The names of deleted credentials.
    deleted: Vec<String>,
}

#[tokio::test]
async fn a_backup_contains_all_previously_acknowledged_writes() {
    let server = Server::start().await;
    fill(&server).await;
    let acknowledged = Mutex::new(Acknowledged::default());
    let is_over = AtomicBool::new(false);
    let write = async |writer: usize| {
        let mut round = 0;
        while !is_over.load(Ordering::Relaxed) {
            write_once(&server, &acknowledged, writer, round).await;
            round += 1;
        }
    };
    let back_up = async {
        let mut backups = Vec::new();
        for number in 1..=BACKUPS {
            while acknowledged.lock().unwrap().deleted.len() < number * DELETED_BETWEEN {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let before = acknowledged.lock().unwrap().clone();
            let directory = server.directory().to_owned();
            let copying = tokio::task::spawn_blocking(move || copied_by_backup(&directory));
            backups.push((copying.await.unwrap(), before));
        }
        is_over.store(true, Ordering::Relaxed);
        backups
    };
    let ((), (), (), backups) = tokio::join!(write(0), write(1), write(2), back_up);
    for (copy, before) in backups {
        run_command_clean(copy.path());
        let restored = Server::start_in(copy, &Options::default()).await;
        for version in before.written {
            let id = given::id(&version);
            let read = restored.get(&format!("/api/v1/data/{id}")).await;
            assert_eq!(read.expect(200).json(), version);
        }
        for name in before.deleted {
            let gone = restored.get(&format!("/api/v1/data?name={name}")).await;
            gone.expect(404);
        }
        given::set_value(&restored, "/after", "v").await;
        run_command_clean(restored.directory());
    }
}

#[tokio::test]
async fn a_restored_backup_has_the_state_of_the_killed_server() {
    if is_on_postgres() {
        return;
    }
    let server = Server::start().await;
    fill(&server).await;
    let everything = given::everything(&server).await;
    let copy = copied_by_backup(server.directory());
    for round in 0..10 {
        given::set_value(&server, &format!("/since/{round}"), "v").await;
    }
    // A killed server leaves a log that would be applied to the copy.
    let directory = server.kill();
    let database = directory.path().join("keywright.db");
    fs::copy(copy.path().join("keywright.db"), &database).unwrap();
    for end in ["-wal", "-shm"] {
        fs::remove_file(format!("{}{end}", database.display())).unwrap();
    }
    run_command_clean(directory.path());
    let restored = Server::start_in(directory, &Options::default()).await;
    assert_eq!(given::everything(&restored).await, everything);
    run_command_clean(restored.directory());
}

#[track_caller]
fn run_command_clean(directory: &Path) {
    let said = run_command(directory, &["check"]).expect(0);
    assert!(said.output.ends_with(": 0 findings\n"), "{said:?}");
}

/// A set, a generate, a regenerate and a delete, each recorded once acknowledged.
async fn write_once(
    server: &Server,
    acknowledged: &Mutex<Acknowledged>,
    writer: usize,
    round: usize,
) {
    let note = |version| acknowledged.lock().unwrap().written.push(version);
    let name = format!("/load/{writer}");
    note(given::set_value(server, &format!("{name}/value"), &"v".repeat(2_000)).await);
    let password = format!("{name}/password");
    note(given::generate(server, &password, "password", json!({})).await);
    note(server.regenerate(&password).await.expect(200).json());
    let deleted = format!("{name}/{round}");
    given::set_value(server, &deleted, "v").await;
    let path = format!("/api/v1/data?name={deleted}");
    server.delete(&path).await.expect(204);
    acknowledged.lock().unwrap().deleted.push(deleted);
}

const BACKUPS: usize = 3;

/// The minimum number of deletions between two backups.
const DELETED_BETWEEN: usize = 10;
