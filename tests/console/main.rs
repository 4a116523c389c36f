//! The console, over HTTPS: `browser.rs` behaves like a browser without scripts, and `chromium/` drives a real one.

mod attacks;
mod browser;
mod certificate_limits;
mod certificates;
mod changes;
mod chromium;
mod expiring;
mod external;
mod given;
mod keys_and_plugins;
mod login;
mod permissions;
mod reading;
mod rotation;
mod rotation_refusals;

use browser::{Browser, DEVELOPER};
use keywright_harness::{Options, ReusedServer, Server};
use serde_json::Value;

/// Returns a server with the console.
async fn server() -> ReusedServer {
    Server::reused_with(&Options::default().console("")).await
}

/// Returns a server with the console, and logs in the user with all permissions.
async fn session() -> (ReusedServer, Browser) {
    let server = server().await;
    let browser = Browser::logged_in(&server, DEVELOPER).await;
    (server, browser)
}

/// Returns the events of the audit trail with this action.
fn events(server: &Server, action: &str) -> Vec<Value> {
    let trail = server.audit_trail();
    let events = trail.lines();
    let events = events.map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["action"] == action).collect()
}
