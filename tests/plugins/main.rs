//! Plugins from the point of view of operators and callers: isolation, rejection, and the containment of misbehaving plugins.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic fails the test"
)]

mod author;
mod calls;
mod canaries;
mod components;
mod derived;
mod examples;
mod hostile;
mod input_actors;
mod inputs;
mod refusals;
mod registry;
mod released;
mod reload;
mod signing;
mod types;
