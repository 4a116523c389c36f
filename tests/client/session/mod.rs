//! Logging in and out, and what is kept between two runs.

mod login;
mod logout;
mod mutual_tls;
mod renewal;
mod settings;

use keywright_harness::Shell;
use serde_json::Value;

/// What is kept of a login.
fn session(shell: &Shell) -> Option<Value> {
    let file = shell.file(".config/keywright/session.json");
    let text = std::fs::read_to_string(file).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}
