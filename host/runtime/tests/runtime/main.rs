//! Tests of the runtime's public API: loading and calling plugins, and containing hostile guests.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failure in shared test code should end the test"
)]

mod calls;
mod conformance;
mod hostile;
mod lanes;
mod load;
mod signing;
mod support;
