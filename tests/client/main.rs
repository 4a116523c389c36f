//! Tests of the command line: the real binary, in a pipe and on a pseudo-terminal, against a real server or a stub. One file per
//! verb, in the folder of its noun.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic fails the test"
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

/// The JSON output of a successful run.
#[track_caller]
fn json_of(run: Commanded) -> Value {
    serde_json::from_str(&run.expect(0).output).unwrap()
}
