//! Makes ECDSA key pairs on the curves P-256, P-384 and P-521 (FIPS 186-5), in the form that SSH reads or as PKCS#8.
//!
//! - [`generate`]: the parameters and the key pair. Pure, and tested natively.
//! - [`recover`]: the parameters with which a stored key pair is made anew.
//! - [`curve`]: the curves, and which of them a public key is on.
//! - `component`: the WIT side, for `wasm32` alone.

#[cfg(target_arch = "wasm32")]
mod component;
pub mod curve;
pub mod generate;
pub mod recover;

/// The JSON Schema of the parameters.
pub const PARAMETERS_SCHEMA: &str = include_str!("parameters.schema.json");

/// The JSON Schema of the value.
pub const VALUE_SCHEMA: &str = include_str!("value.schema.json");

/// How many random bits, at least, go into a key pair on the default curve, P-256: the order of its group is hardly below 2 to
/// the power of 256.
pub const ENTROPY_BITS_MIN: u32 = 255;
