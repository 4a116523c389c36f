//! Makes RSA key pairs in the form that SSH reads.
//!
//! - [`generate`]: the parameters and the key pair. Pure, and tested natively.
//! - [`recover`]: the parameters with which a stored key pair is made anew.
//! - `component`: the WIT side, for `wasm32` alone.
//!
//! Build it with `-C target-feature=+wide-arithmetic,+simd128`: without them the arithmetic of large numbers takes some
//! nine times as long.

#[cfg(target_arch = "wasm32")]
mod component;
pub mod generate;
pub mod recover;

/// The JSON Schema of the parameters.
pub const PARAMETERS_SCHEMA: &str = include_str!("parameters.schema.json");

/// The JSON Schema of the value.
pub const VALUE_SCHEMA: &str = include_str!("value.schema.json");

/// How many random bits, at least, go into a key pair of the default length: all those of both primes but the first
/// two and the last of each.
pub const ENTROPY_BITS_MIN: u32 = 2042;
