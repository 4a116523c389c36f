//! The program as a client, run as people and scripts run it: the real binary, in a pipe and on a pseudo-terminal, against a
//! real server. One file for each verb, in the folder of its noun.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod certificates;
mod completions;
mod credentials;
mod examples;
mod exit_statuses;
mod export;
mod given;
mod help;
mod import;
mod interpolation;
mod interruption;
mod library;
mod operations;
mod output;
mod permissions;
mod proxies;
mod retries;
mod session;
mod stub;
mod types;

use keywright_harness::Commanded;
use serde_json::Value;

/// The JSON that a run wrote, which must have gone well.
#[track_caller]
fn json_of(run: Commanded) -> Value {
    serde_json::from_str(&run.expect(0).output).unwrap()
}
