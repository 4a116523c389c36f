//! The verbs of credentials.

mod delete;
mod find;
mod generate;
mod get;
mod regenerate;
mod set;

use keywright_harness::Commanded;
use serde_json::Value;

/// The JSON output of a successful run.
#[track_caller]
fn shown(run: Commanded) -> Value {
    let run = run.expect(0);
    serde_json::from_str(&run.output).unwrap_or_else(|cause| panic!("{cause}: {run:#?}"))
}
