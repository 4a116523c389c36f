//! Plugins from the point of view of operators and callers: their isolation, their rejection, and the containment of bad ones.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic fails the test"
)]

mod author;
mod calls;
mod canaries;
mod components;
mod examples;
mod hostile;
mod refusals;
mod registry;
mod released;
mod reload;
mod signing;
mod types;
