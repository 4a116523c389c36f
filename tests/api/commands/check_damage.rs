//! `keywright check` where something is wrong: each kind of damage is done past the server, found, and named.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Server, is_on_postgres, run_command, run_sql};
use serde_json::{Value, json};

use crate::given;

/// One thing that somebody did to the database.
struct Damage {
    /// The names of the credentials that are there before, each with its type and how many versions it has.
    given: &'static [(&'static str, &'static str)],
    /// What is done. `{name}` stands for the sequence of the credential of that name.
    sql: &'static str,
    /// The kinds of the findings, each with the name that it must bear.
    found: &'static [(&'static str, &'static str)],
}

/// Done by each on credentials of its own, and all of them before the check.
const DAMAGES: [Damage; 1] = [Damage {
    given: &[],
    sql: "",
    found: &[],
}];
