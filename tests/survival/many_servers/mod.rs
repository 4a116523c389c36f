//! Several servers on one PostgreSQL database: their histories violate no rule of a single server.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod at_once;
mod checker;
mod clients;
mod conflicts;
mod recorder;
mod starting;

use std::{io::Write, sync::Arc, time::Duration};

use keywright_harness::{Options, Server};

use checker::{Call, Outcome, findings};
use clients::run_clients;

/// The default duration of the clients.
const SECONDS: u64 = 20;
const SECONDS_ON_A_FILE: u64 = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers_on_one_postgresql_break_no_rule() {
    let Some(postgres) = keywright_test_postgres::shared() else {
        return;
    };
    let storage = format!("url = \"{}\"", postgres.new_database());
    assert_no_rule_is_broken(&storage, seconds(SECONDS)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_processes_on_one_file_break_no_rule() {
    assert_no_rule_is_broken("file = \"keywright.db\"", seconds(SECONDS_ON_A_FILE)).await;
}

async fn assert_no_rule_is_broken(storage: &str, duration: Duration) {
    let options = Options::default().storage(storage).watched();
    let servers = three_servers(&options).await;
    let history = run_clients(&servers, duration).await;
    let retried = transactions_retried(&servers).await;
    print(&history, retried);
    let answered = history
        .iter()
        .filter(|call| call.outcome != Outcome::Unknown);
    assert!(answered.count() > CALLS_MIN, "too little was done");
    let found = findings(&history);
    let broken = found.violations;
    assert!(broken.is_empty(), "{}", broken.join("\n\n"));
    // Undecided names prove nothing, neither for nor against the servers.
    let undecided = found.undecided;
    assert!(undecided.is_empty(), "{}", undecided.join("\n\n"));
}

/// Three servers on one database; the first one issues tokens.
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

/// Writes past the test harness, which hides the output of passing tests.
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

/// The minimum number of calls of a meaningful history.
const CALLS_MIN: usize = 100;
