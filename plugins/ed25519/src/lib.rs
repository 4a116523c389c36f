//! Makes Ed25519 key pairs (RFC 8032), in the form that SSH reads or as PKCS#8.
//!
//! - [`generate`]: the parameters and the key pair. Pure, and tested natively.
//! - [`recover`]: the parameters with which a stored key pair is made anew.
//! - `component`: the WIT side, for `wasm32` alone.

#[cfg(target_arch = "wasm32")]
mod component;
pub mod generate;
pub mod recover;

/// The JSON Schema of the parameters.
pub const PARAMETERS_SCHEMA: &str = include_str!("parameters.schema.json");

/// The JSON Schema of the value.
pub const VALUE_SCHEMA: &str = include_str!("value.schema.json");

/// How many random bits go into a key pair: those of the secret key.
pub const ENTROPY_BITS_MIN: u32 = 256;
