//! Malformed and overreaching certificates: the issuer must not sign them, and the server must not store them.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod bodies;
mod issued;
mod mutants;
mod overreaching;
mod set;
mod stored;
mod tree;
