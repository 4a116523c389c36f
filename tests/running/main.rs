//! Tests of running the server: service, configuration and documents. A test program of its own, so that it is not run
//! for each database.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic fails the test"
)]

mod announcement;
mod check_config;
mod documents;
mod layout;
mod listening;
mod service;
mod symptoms;
mod unprivileged;
