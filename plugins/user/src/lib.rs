//! Makes users: a name, a random password, and the password's hash in the form of crypt(3).
//!
//! - [`generate`]: the parameters, the user, and what may be set as one. Pure, and tested natively.
//! - [`recover`]: the parameters with which a stored user is made anew.
//! - [`hash`]: the hash of a password.
//! - `component`: the WIT side, for `wasm32` alone.
//!
//! The salt is drawn once and kept within the hash, so a version's hash is the same at every reading.

#[cfg(target_arch = "wasm32")]
mod component;
pub mod generate;
pub mod hash;
pub mod recover;

/// The JSON Schema of the parameters.
pub const PARAMETERS_SCHEMA: &str = include_str!("parameters.schema.json");

/// The JSON Schema of the value.
pub const VALUE_SCHEMA: &str = include_str!("value.schema.json");

/// How many random bits, at least, go into a user made with default parameters: those of the password; the name and
/// the salt come on top.
pub const ENTROPY_BITS_MIN: u32 = 160;
