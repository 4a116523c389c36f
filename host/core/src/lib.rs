//! The domain of Keywright: what a credential is, what may be done with it, and what that needs from outside.
//!
//! This crate knows no HTTP, no SQL and no WebAssembly, and does no I/O. Everything it needs from outside it asks of a
//! trait in [`ports`]; the other crates of the host implement those traits and meet in the server's wiring.
//!
//! Read [`credential`] first (names, types, versions, and one file for each use case), then [`authorization`], which every
//! use case asks, and [`interpolation`]. [`retention`] is what the server does by itself.
//!
//! To add a use case: write it as a method in a file of its own beside the others, against the ports that are there; add a
//! method to a port only when the use case can't be said without it; then give it a route in `keywright-api`.

pub mod authorization;
pub mod certificate;
pub mod check;
pub mod credential;
pub mod encryption_key;
pub mod failure;
pub mod interpolation;
pub mod permission;
pub mod ports;
pub mod response_memory;
pub mod retention;
pub mod secret;

pub use failure::Failure;
pub use secret::Secret;
