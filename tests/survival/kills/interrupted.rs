//! Servers that are killed during start-up, and backups that are killed.

use std::{fs, path::Path, time::Instant};

use keywright_harness::{Server, Text, kill_command, run_command, run_program, run_sql};
use rand::RngExt;
use tempfile::TempDir;

use super::store::{Engine, Seed, Store};

#[tokio::test]
async fn a_store_survives_kills_during_its_first_start_on_sqlite() {
    survive_killed_starts(Engine::Sqlite).await;
}

#[tokio::test]
async fn a_store_survives_kills_during_its_first_start_on_postgres() {
    survive_killed_starts(Engine::Postgres).await;
}

/// Creates stores whose first servers are killed at times spread over the duration of start-up.
async fn survive_killed_starts(engine: Engine) {
    let Some(mut store) = Store::new(engine) else {
        return;
    };
    let mut choices = Seed::of_this_run().choices(0);
    let begun = Instant::now();
    let server = store.start().await;
    let start = begun.elapsed();
    store.kill(server).await;
    for _ in 0..STARTS {
        store.empty();
        for _ in 0..choices.random_range(1..4) {
            let after = start.mul_f64(choices.random_range(0.0..1.0));
            store.kill_while_it_starts(after).await;
        }
        let server = store.start().await;
        let set = server.stored("/a", "value", "v".into()).await;
        store.kill(server).await;
        let server = store.start().await;
        assert_eq!(server.versions("/a").await, [set]);
        store.kill(server).await;
    }
    println!("{engine:?}: a start takes {start:?}");
}

/// The number of stores.
const STARTS: usize = 12;

/// A server that is killed while it makes a new file a database with a write-ahead log leaves a rollback journal.
#[tokio::test]
async fn an_interrupted_creation_of_a_database_is_rolled_back() {
    let mut store = Store::new(Engine::Sqlite).unwrap();
    let server = store.start().await;
    store.kill(server).await;
    let file = |suffix| store.directory().join(format!("keywright.db{suffix}"));
    for suffix in [".created", "-wal", "-shm"] {
        fs::remove_file(file(suffix)).unwrap();
    }
    fs::write(file(""), [0; 4096]).unwrap();
    // The header: magic number, no records, a random number, a file without pages before, and the sizes of sectors and pages.
    let magic = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    let numbers = [0, 0, 0, 512, 4096_u32].map(u32::to_be_bytes);
    let mut journal = [&magic[..], numbers.as_flattened()].concat();
    journal.resize(512, 0);
    fs::write(file("-journal"), journal).unwrap();

    let connects = ["check-config", "--connect", "keywright.toml"];
    let advice = "start a server if the database is new, or move the journal away";
    let checked = run_command(store.directory(), "check").expect(1);
    checked.errors.assert_contains(advice);
    run_program(store.directory(), &connects, &[]).expect(0);
    // The journal would truncate a backup that was restored here.
    fs::write(file(""), [0; 8192]).unwrap();
    for arguments in [&connects[..], &["serve", "--config", "keywright.toml"]] {
        let refused = run_program(store.directory(), arguments, &[]).expect(1);
        format!("{refused:?}").assert_contains(advice);
    }
    fs::write(file(""), [0; 4096]).unwrap();
    let server = store.start().await;
    server.stored("/a", "value", "v".into()).await;
    store.kill(server).await;
    store.check();
}

#[tokio::test]
async fn a_killed_backup_leaves_no_incomplete_target() {
    let mut store = Store::new(Engine::Sqlite).unwrap();
    let server = store.start().await;
    fill(&server).await;
    let source = server.directory();
    let mut choices = Seed::of_this_run().choices(0);
    let folder = TempDir::new().unwrap();
    let target = folder.path().join("keywright.db");
    let arguments = ["backup", target.to_str().unwrap()];
    let begun = Instant::now();
    run_command(source, &arguments).expect(0);
    let needed = begun.elapsed();
    let expected = version_count(source).await;
    let configuration = fs::read(source.join("keywright.toml")).unwrap();
    fs::write(folder.path().join("keywright.toml"), configuration).unwrap();
    let mut finished = 0;
    for _ in 0..KILLS {
        fs::remove_file(&target).unwrap_or_default();
        let after = needed.mul_f64(choices.random_range(0.0..1.2));
        kill_command(source, &arguments, after);
        if target.exists() {
            finished += 1;
            run_command(folder.path(), "check").expect(0);
            assert_eq!(version_count(folder.path()).await, expected);
        }
    }
    println!("a backup takes {needed:?}; {finished} of {KILLS} killed backups were complete");
    fs::remove_file(&target).unwrap_or_default();
    run_command(source, &arguments).expect(0);
    assert_eq!(version_count(folder.path()).await, expected);
    run_command(source, "check").expect(0);
}

async fn fill(server: &Server) {
    for number in 0..CREDENTIALS {
        let value = "x".repeat(VALUE_BYTES).into();
        let name = format!("/{number}");
        server.stored(&name, "value", value).await;
    }
}

/// Returns the number of versions in the database in a folder.
async fn version_count(directory: &Path) -> String {
    run_sql(directory, "select count(*) from credential_version").await
}

const KILLS: usize = 20;

/// A few megabytes in total, so that copying takes a noticeable part of the command's time.
const CREDENTIALS: usize = 200;
const VALUE_BYTES: usize = 40_000;
