//! Survival tests: killed servers, several servers on one database, and unavailable databases.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic fails the test"
)]

mod database_away;
mod kills;
mod many_servers;
