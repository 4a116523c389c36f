//! `/management` and read-only mode.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs can't be had"
)]

mod callers;
mod read_only;
mod requests;

use keywright_harness::Server;
use serde_json::json;

/// Switches read-only mode on or off, from the server's own address.
async fn switch(server: &Server, is_on: bool) {
    let answer = server
        .post("/management", json!({"read_only_mode": is_on}))
        .await;
    assert_eq!(answer.expect(200).json(), json!({"read_only_mode": is_on}));
}
