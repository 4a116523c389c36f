//! The program as a client, run as people and scripts run it: the real binary, in a pipe and on a pseudo-terminal, against a
//! real server. One file for each verb, in the folder of its noun.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod application;
mod completions;
mod credentials;
mod examples;
mod exit_statuses;
mod export;
mod given;
mod help;
mod import;
mod library;
mod output;
mod proxies;
mod retries;
mod session;
mod stub;
