//! Several servers on one PostgreSQL database: their histories violate no rule of a single server, changes are effective
//! at the others immediately, conflicting writers get no errors, and servers can start concurrently.

mod checker;
mod clients;

use std::{collections::HashSet, io::Write, sync::Arc, time::Duration};

use keywright_harness::{Caller, Options, Server};
use keywright_test_postgres::PostgresServer;
use reqwest::Method;
use serde_json::json;
use tokio::task::JoinSet;

use checker::{Call, Outcome, findings};
use clients::{CALLS_MIN, run_clients};

/// The default duration of the clients.
const SECONDS: u64 = 20;
const SECONDS_ON_A_FILE: u64 = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers_on_one_postgresql_respond_like_one_server() {
    let Some(postgres) = keywright_test_postgres::shared() else {
        return;
    };
    let storage = format!("url = \"{}\"", postgres.new_database());
    assert_responses_like_one_server(&storage, seconds(SECONDS)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_processes_on_one_file_respond_like_one_server() {
    assert_responses_like_one_server("file = \"keywright.db\"", seconds(SECONDS_ON_A_FILE)).await;
}

async fn assert_responses_like_one_server(storage: &str, duration: Duration) {
    let options = Options::default().storage(storage).watched();
    let servers = three_servers(&options).await;
    let history = run_clients(&servers, duration).await;
    let retried = transactions_retried(&servers).await;
    print(&history, retried);
    let responded = history
        .iter()
        .filter(|call| call.outcome != Outcome::Unknown);
    assert!(
        responded.count() > CALLS_MIN,
        "too few calls have a clear outcome"
    );
    let found = findings(&history);
    let broken = found.violations;
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
    // Undecided names neither prove nor disprove that the servers follow the rules, so the test fails.
    let undecided = found.undecided;
    assert!(undecided.is_empty(), "{}", undecided.join("\n\n"));
}

/// Starts three servers on one database; the first one issues tokens.
async fn three_servers(options: &Options) -> Vec<Arc<Server>> {
    let first = Server::start_with(options).await;
    let (second, third) = tokio::join!(first.start_another(), first.start_another());
    [first, second, third].map(Arc::new).into()
}

/// Returns how often all servers together retried a transaction.
async fn transactions_retried(servers: &[Arc<Server>]) -> f64 {
    let mut retried = 0.0;
    for server in servers {
        let scrape = server.scrape().await;
        let own = scrape.sum("keywright_database_transactions_retried_total", &[]);
        retried += own.unwrap();
    }
    retried
}

/// Bypasses the test harness, which captures the output of passing tests.
fn print(history: &[Call], retried: f64) {
    let unknown = history
        .iter()
        .filter(|call| call.outcome == Outcome::Unknown);
    let _ = writeln!(
        std::io::stderr(),
        "{} calls, {} of them without a clear response; {retried} transactions retried",
        history.len(),
        unknown.count()
    );
}

fn seconds(default: u64) -> Duration {
    let wanted = std::env::var(SECONDS_VARIABLE).ok();
    Duration::from_secs(wanted.map_or(default, |seconds| seconds.parse().unwrap()))
}

/// The environment variable for the duration of each history, in seconds.
const SECONDS_VARIABLE: &str = "KEYWRIGHT_TEST_HISTORY_SECONDS";

const PERMISSIONS: &str = "/api/v2/permissions";

/// Servers on PostgreSQL, if installed, and then on a file.
async fn each_engine() -> Vec<Vec<Arc<Server>>> {
    let mut all = vec![three_servers(&Options::default().storage("file = \"keywright.db\"")).await];
    if let Some(postgres) = keywright_test_postgres::shared() {
        let storage = format!("url = \"{}\"", postgres.new_database());
        all.push(three_servers(&Options::default().storage(&storage)).await);
    }
    all
}

#[tokio::test]
async fn a_permission_change_is_effective_at_other_servers() {
    for servers in each_engine().await {
        servers[0].set("/a", "value", "v".into()).await.expect(200);
        let mut at_each: Vec<Caller> = Vec::new();
        for server in &servers {
            let client = servers[0].as_client("other").await;
            at_each.push(client.at(server));
        }
        let read = "/api/v1/data?name=/a";
        for round in 0..servers.len() * 2 {
            let (one, other) = (&servers[round % 3], &servers[(round + 1) % 3]);
            let body = json!({"path": "/a", "actor": at_each[0].actor(), "operations": ["read"]});
            let given = one.post(PERMISSIONS, body).await.expect(201).json();
            for client in &at_each {
                client.get(read).await.expect(200);
            }
            let path = format!("{PERMISSIONS}/{}", given["uuid"].as_str().unwrap());
            other.delete(&path).await.expect(200);
            for client in &at_each {
                client.get(read).await.expect(404);
            }
        }
    }
}

#[tokio::test]
async fn read_only_mode_applies_to_one_process() {
    for servers in each_engine().await {
        let body = json!({"read_only_mode": true}).to_string();
        let request = servers[0]
            .authorized(Method::POST, "/management")
            .body(body);
        servers[0].send(request).await.expect(200);
        servers[0].set("/a", "value", "v".into()).await.expect(503);
        servers[1].set("/a", "value", "v".into()).await.expect(200);
        assert_eq!(servers[0].versions("/a").await.len(), 1);
    }
}

const WRITERS_PER_SERVER: usize = 16;
const WRITES: usize = 8;
const NAMES: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conflicting_writers_get_no_errors() {
    let Some(postgres) = keywright_test_postgres::shared() else {
        return;
    };
    // Long enough for all writers one after the other on any machine, so that no request times out.
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
        "{} writes; {retried} transactions retried",
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

const SERVERS: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_servers_start_at_once_on_an_empty_postgresql() {
    let Some(postgres) = keywright_test_postgres::shared() else {
        return;
    };
    let url = postgres.new_database();
    // Each server issues its own tokens with the same key, so that no server waits for another.
    let options = Options::default().storage(&format!("url = \"{url}\""));
    assert_all_start(&options).await;
    assert_one_schema(postgres, &url);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_servers_start_at_once_on_a_missing_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shared.db");
    let options = Options::default().storage(&format!("file = \"{}\"", file.display()));
    assert_all_start(&options).await;
}

/// Starts servers with separate folders and the same database.
async fn assert_all_start(options: &Options) {
    let start = || Server::start_with(options);
    let servers: [Server; SERVERS] =
        tokio::join!(start(), start(), start(), start(), start()).into();
    for (number, server) in servers.iter().enumerate() {
        let name = format!("/{number}");
        let set = server.stored(&name, "value", "v".into()).await;
        // All servers use the same record of the new encryption key.
        for reader in &servers {
            assert_eq!(reader.versions(&name).await, std::slice::from_ref(&set));
        }
        assert!(!server.log().contains("\"ERROR\""), "{}", server.log());
    }
}

fn assert_one_schema(postgres: &PostgresServer, url: &str) {
    let applied = postgres.run_at(url, "select version from _sqlx_migrations");
    let versions: HashSet<&str> = applied.lines().collect();
    assert_eq!(versions.len(), applied.lines().count());
}
