//! Back-ups that are killed.

use std::{fs, path::Path, time::Instant};

use keywright_harness::{Server, kill_command, run_command, run_sql};
use rand::RngExt;
use tempfile::TempDir;

use super::{
    seed::Seed,
    store::{Engine, Store},
};

#[tokio::test]
async fn a_backup_that_is_killed_leaves_nothing_in_its_place_that_is_not_whole() {
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
    let expected = counted(source).await;
    let configuration = fs::read(source.join("keywright.toml")).unwrap();
    fs::write(folder.path().join("keywright.toml"), configuration).unwrap();
    let mut finished = 0;
    for _ in 0..KILLS {
        fs::remove_file(&target).unwrap_or_default();
        let after = needed.mul_f64(choices.random_range(0.0..1.2));
        kill_command(source, &arguments, after);
        if target.exists() {
            finished += 1;
            run_command(folder.path(), &["check"]).expect(0);
            assert_eq!(counted(folder.path()).await, expected);
        }
    }
    println!("a back-up takes {needed:?}; of {KILLS} that were killed, {finished} were there");
    fs::remove_file(&target).unwrap_or_default();
    run_command(source, &arguments).expect(0);
    assert_eq!(counted(folder.path()).await, expected);
    run_command(source, &["check"]).expect(0);
}

async fn fill(server: &Server) {
    for number in 0..CREDENTIALS {
        let value = "x".repeat(VALUE_BYTES).into();
        let name = format!("/{number}");
        server.set(&name, "value", value).await.expect(200);
    }
}

/// How many versions the database in a folder has.
async fn counted(directory: &Path) -> String {
    run_sql(directory, "select count(*) from credential_version").await
}

const KILLS: usize = 20;

/// Together some megabytes, so that copying them takes a part of the time that the command takes.
const CREDENTIALS: usize = 200;
const VALUE_BYTES: usize = 40_000;
