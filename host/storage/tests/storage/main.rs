//! The repositories through their ports, each test on a database file of its own.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "these are tests; helper functions outside of #[test] count as production code for the lints"
)]

mod append_all;
mod certificates;
mod change_versions;
mod credentials;
mod effective_expiry;
mod encryption_keys;
mod find;
mod permissions;
mod signed_by;
mod support;
