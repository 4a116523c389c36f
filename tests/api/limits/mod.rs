//! Limits on what one client may use: sizes, times, connections, requests. Each limit is tested one past it.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when a client can't do its part"
)]

mod bodies;
mod connections;
mod ending;
mod heads;
mod http2;
mod raw;
mod requests;
mod settings;
mod slow_clients;
mod times;
mod unread;
mod writes;

use keywright_harness::Options;

/// A server with timeouts that never expire, except those in the given lines of settings.
fn patient(lines: &str) -> Options {
    let times = [
        "handshake_seconds_max",
        "header_seconds_max",
        "body_seconds_max",
        "write_seconds_max",
        "idle_seconds_max",
        "connection_seconds_max",
        "ping_interval_seconds",
        "ping_seconds_max",
    ];
    let long = times.iter().filter(|time| !lines.contains(*time));
    long.fold(
        Options::default().server_settings(lines),
        |options, time| options.server_settings(&format!("{time} = 3600")),
    )
}
