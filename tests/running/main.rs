//! Running it: what an operator has besides the server itself. Here is one test program, so that nothing of it is run once
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
