//! Retention: automatic deletion of versions.

mod policies;
mod runs;

use keywright_harness::{Options, Server, until};
use serde_json::Value;

use crate::{audit, given};

/// Returns options of a server that runs retention every second with these policies, each a path and its settings. Retention
/// also runs while a test is still setting values, and between any two requests.
fn options(policies: &[(&str, &str)]) -> Options {
    let policies: Vec<String> = policies
        .iter()
        .map(|(path, lines)| format!("[[retention.policies]]\npath = \"{path}\"\n{lines}\n"))
        .collect();
    let section = format!("[retention]\ninterval_seconds = 1\n{}", policies.concat());
    Options::default().watched().extra(&section)
}

/// Makes the server trust the clock now instead of a day after its first check.
async fn trust_the_clock_at_once(server: &Server) {
    let checks = "select count(*) from retention_clock";
    until("check", async || server.run_sql(checks).await == "1").await;
    let trust = "update retention_clock set trusted_from = 0";
    server.run_sql(trust).await;
}

/// Waits until one of these servers, which share a database, has started and completed a run.
async fn after_a_run(servers: &[&Server]) {
    let runs = runs(servers).await;
    // The next run to complete may have started before this call.
    until("runs", async || self::runs(servers).await >= runs + 2.0).await;
}

/// Returns the number of runs that these servers have completed.
async fn runs(servers: &[&Server]) -> f64 {
    let mut runs = 0.0;
    for server in servers {
        let labels = [("outcome", "completed")];
        let scrape = server.scrape().await;
        runs += scrape.sum(RUNS, &labels).unwrap_or_default();
    }
    runs
}

/// Sets a credential this many times, to numbers from zero. Returns the ids of the versions, oldest first; some may be
/// deleted already.
async fn set_times(server: &Server, name: &str, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..count {
        let version = server.set_value(name, &number.to_string()).await;
        ids.push(given::id(&version));
    }
    ids
}

/// Returns the values of all versions, newest first.
async fn values(server: &Server, name: &str) -> Vec<String> {
    let versions = server.versions(name).await.into_iter();
    let values = versions.map(|version| version["value"].as_str().unwrap().to_owned());
    values.collect()
}

/// Returns the ids of all versions, newest first.
async fn ids(server: &Server, name: &str) -> Vec<String> {
    let versions = server.versions(name).await;
    versions.iter().map(given::id).collect()
}

fn events(server: &Server) -> Vec<Value> {
    let mut events = audit::events(server);
    events.retain(|event| event["actor"] == "keywright:retention");
    events
}

const RUNS: &str = "keywright_retention_runs_total";
