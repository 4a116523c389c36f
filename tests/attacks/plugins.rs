//! Hostile guests: schemas, resolvers, traps, and callers that occupy the plugin lanes.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod components;
mod faults;
mod lanes;
