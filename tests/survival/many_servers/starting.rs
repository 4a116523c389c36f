//! Servers that start concurrently on an empty database.

use std::collections::HashSet;

use keywright_harness::{Options, Server};
use keywright_test_postgres::PostgresServer;

const SERVERS: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_servers_start_at_once_on_an_empty_postgresql() {
    let Some(postgres) = keywright_test_postgres::shared() else {
        return;
    };
    let url = postgres.new_database();
    // Each server issues its own tokens with the same key, so that none waits for another.
    let options = Options::default().storage(&format!("url = \"{url}\""));
    assert_all_come_up(&options).await;
    assert_one_schema(postgres, &url);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_servers_start_at_once_on_a_missing_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shared.db");
    let options = Options::default().storage(&format!("file = \"{}\"", file.display()));
    assert_all_come_up(&options).await;
}

/// Starts servers with separate folders and the same database.
async fn assert_all_come_up(options: &Options) {
    let start = || Server::start_with(options);
    let servers: [Server; SERVERS] =
        tokio::join!(start(), start(), start(), start(), start()).into();
    for (number, server) in servers.iter().enumerate() {
        let name = format!("/{number}");
        let set = server.set(&name, "value", "v".into()).await.expect(200);
        // All servers agree on one record of the new key.
        for reader in &servers {
            assert_eq!(reader.versions(&name).await, [set.json()]);
        }
        assert!(!server.log().contains("\"ERROR\""), "{}", server.log());
    }
}

fn assert_one_schema(postgres: &PostgresServer, url: &str) {
    let applied = postgres.run_at(url, "select version from _sqlx_migrations");
    let versions: HashSet<&str> = applied.lines().collect();
    assert_eq!(versions.len(), applied.lines().count());
}
