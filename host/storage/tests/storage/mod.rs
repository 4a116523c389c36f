//! The repositories through their ports, each test on its own database. `sqlite.rs` and `postgres.rs` run the same tests, and
//! add those for a single engine.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "these are tests; helper functions outside of #[test] count as production code for the lints"
)]

mod append_all;
mod certificates;
mod change_versions;
mod concurrent;
mod credentials;
mod dropped_after;
mod effective_expiry;
mod encryption_keys;
mod find;
mod key_rotation;
mod leases;
mod migrations;
mod permissions;
mod permitted_reads;
mod retention;
mod signed_by;
mod sizes;
pub(crate) mod support;
