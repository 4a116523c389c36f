//! Concurrent writers of the same names at several servers: the database aborts some transactions, without an error for
//! clients.

use std::{io::Write, sync::Arc};

use keywright_harness::{Options, Server};
use serde_json::json;
use tokio::task::JoinSet;

use super::{three_servers, transactions_retried};

const WRITERS_PER_SERVER: usize = 16;
const WRITES: usize = 8;
const NAMES: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflicting_writers_get_no_errors() {
    let Some(postgres) = keywright_test_postgres::shared() else {
        return;
    };
    // Longer than all writers need one after the other on any machine, so that none times out.
    let storage = format!(
        "url = \"{}\"\nwait_seconds_max = 60",
        postgres.new_database()
    );
    let servers = three_servers(&Options::default().storage(&storage).watched()).await;
    let mut writers = JoinSet::new();
    for number in 0..WRITERS_PER_SERVER * servers.len() {
        let server = Arc::clone(&servers[number % servers.len()]);
        writers.spawn(async move { write(&server, number).await });
    }
    let statuses: Vec<u16> = writers.join_all().await.into_iter().flatten().collect();
    let retried = transactions_retried(&servers).await;
    let _ = writeln!(
        std::io::stderr(),
        "{} writes; {retried} transactions done again",
        statuses.len()
    );
    assert!(statuses.iter().all(|&status| status == 200), "{statuses:?}");
    assert!(retried > 0.0, "there were no conflicts");
    let mut stored = 0;
    for name in 0..NAMES {
        stored += servers[0].versions(&format!("/{name}")).await.len();
    }
    assert_eq!(stored, statuses.len());
}

async fn write(server: &Server, number: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for round in 0..WRITES {
        let name = format!("/{}", (number + round) % NAMES);
        let body = json!({"name": name, "type": "value", "value": format!("{number} {round}")});
        statuses.push(server.put("/api/v1/data", body).await.status);
    }
    statuses
}
