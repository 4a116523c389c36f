//! The runtime through its public door: loading, calling, and what hostile guests can't do.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failure in what tests share should end the test"
)]

mod calls;
mod conformance;
mod hostile;
mod lanes;
mod load;
mod resolver;
mod signing;
mod support;
