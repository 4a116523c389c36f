//! The console, over HTTPS: `browser.rs` behaves like a browser without scripts.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a panic fails the test")]

mod attacks;
mod browser;
mod certificate_limits;
mod certificates;
mod changes;
mod expiring;
mod external;
mod login;
mod reading;
mod rotation;
mod rotation_refusals;

use keywright_harness::{Options, Server};
use serde_json::Value;

/// Starts a server with the console.
async fn server() -> Server {
    Server::start_with(&Options::default().console("")).await
}

/// Returns the events of the audit trail with this action.
fn events(server: &Server, action: &str) -> Vec<Value> {
    let trail = server.audit_trail();
    let events = trail
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["action"] == action).collect()
}
