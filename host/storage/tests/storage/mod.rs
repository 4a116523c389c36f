//! Tests the repositories through their ports, each test on its own database. `sqlite.rs` and `postgres.rs` both run these tests,
//! and add tests for one engine.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "these are tests; helper functions outside of #[test] count as production code for the lints"
)]

mod certificates;
mod change_versions;
mod concurrent;
mod credentials;
mod encryption_keys;
mod find;
mod permissions;
mod retention;
mod servers;
pub(crate) mod support;
