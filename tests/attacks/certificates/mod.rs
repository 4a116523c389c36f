//! Malformed and overreaching certificates: what the issuer must refuse to sign and the server must refuse to store.

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
