//! The audit trail: one event for each resource that a request touches.

mod actions;
mod cef;
mod events;
mod sinks;

use keywright_harness::{Response, Server};
use serde_json::Value;

/// Returns all events in the server's trail, oldest first.
pub(crate) fn events(server: &Server) -> Vec<Value> {
    parsed(&server.audit_trail())
}

pub(crate) fn events_of(server: &Server, response: &Response) -> Vec<Value> {
    let request_id = response.header("x-request-id").unwrap();
    let mut events = events(server);
    events.retain(|event| event["request_id"] == request_id);
    events
}

/// Returns the events of a trail in JSON, each of which must be one line.
fn parsed(trail: &str) -> Vec<Value> {
    assert!(trail.is_empty() || trail.ends_with('\n'), "{trail}");
    trail
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| unreachable!("{line}")))
        .collect()
}

/// Returns each distinct operation and resource, sorted.
fn touched(events: &[Value]) -> Vec<String> {
    let mut touched: Vec<String> = events
        .iter()
        .filter(|event| !event["resource_name"].is_null())
        .map(|event| {
            let text = |field: &str| event[field].as_str().unwrap().to_owned();
            format!("{} {}", text("operation"), text("resource_name"))
        })
        .collect();
    touched.sort();
    touched.dedup();
    touched
}
