//! Tests of the command line: the real binary, in a pipe and on a pseudo-terminal, against a real server or a stub. One
//! file or folder per group of commands.

mod certificates;
mod credentials;
mod derived;
mod export;
mod fixtures;
mod foreign_files;
mod help;
mod import;
mod interpolation;
mod interruption;
mod library;
mod network;
mod operations;
mod output;
mod permissions;
mod provenance;
mod session;
mod transfer;
mod types;

use keywright_harness::Commanded;
use serde_json::Value;

/// Returns the JSON output of a successful run.
#[track_caller]
fn json_of(run: Commanded) -> Value {
    run.expect(0).json()
}
