//! Files that disappear, are replaced, are full, or point elsewhere.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod database;
mod export;
mod health;
mod key_usage;
mod missing_database;

use std::time::Duration;

use keywright_harness::{Options, Server};
use reqwest::Method;
use serde_json::json;

/// Options of a server that starts fast, with a management address.
fn options() -> Options {
    Options::default()
        .without_plugins()
        .watched()
        .environment("KEYWRIGHT_LOG__FILTER", "info")
}

async fn set(server: &Server, name: &str, value: &str) -> u16 {
    server.set(name, "value", json!(value)).await.status
}

async fn get(server: &Server, name: &str) -> u16 {
    let path = format!("/api/v1/data?name={name}&current=true");
    server.get(&path).await.status
}

/// Requires that the value of each credential is its name.
async fn assert_stored(server: &Server, names: &[String]) {
    for name in names {
        let path = format!("/api/v1/data?name={name}&current=true");
        let found = server.get(&path).await.expect(200).json();
        assert_eq!(found["data"][0]["value"], json!(name));
    }
}

/// Returns the statuses of `/health` on both listeners.
async fn health(server: &Server) -> [u16; 2] {
    let main = server.request(Method::GET, "/health");
    let main = server.send(main).await.status;
    let management = server.ask_management(Method::GET, "/health").await;
    [main, management.status]
}

/// Waits until `/health` has this status on both listeners.
async fn become_healthy(server: &Server, status: u16) {
    for _ in 0..POLLS_MAX {
        if health(server).await == [status; 2] {
            return;
        }
        tokio::time::sleep(POLL).await;
    }
    unreachable!("health did not become {status}:\n{}", server.log());
}

/// Returns whether the metrics report a part of the server as healthy.
async fn is_healthy(server: &Server, check: &str) -> bool {
    let scrape = server.scrape().await;
    let found = scrape.sum("keywright_health_check", &[("check", check)]);
    found.unwrap() > 0.5
}

const POLL: Duration = Duration::from_millis(20);
/// For more than two minutes.
const POLLS_MAX: usize = 6_000;
