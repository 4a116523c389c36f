//! Tests of running the server: service, configuration and documents. A test program of its own, so that it is not run
//! for each database.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod announcement;
mod check_config;
mod config_reference;
mod documents;
mod layout;
mod listening;
mod manager;
mod ports;
mod service;
mod symptoms;
mod systemd;
mod unprivileged;
