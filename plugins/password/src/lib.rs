//! Makes passwords: random text with at least one character of each character set that the caller wants.
//!
//! - [`generate`]: the parameters, the password, and what may be set as one. Pure, and tested natively.
//! - `component`: the WIT side, for `wasm32` alone.
//!
//! A password that was set can't be regenerated, so the plugin has no `recoverer`.

#[cfg(target_arch = "wasm32")]
mod component;
pub mod generate;

/// The JSON Schema of the parameters.
pub const PARAMETERS_SCHEMA: &str = include_str!("parameters.schema.json");

/// The JSON Schema of the value.
pub const VALUE_SCHEMA: &str = include_str!("value.schema.json");

/// How many random bits, at least, go into a password made with default parameters: 27 of its 30 characters are free
/// choices among 62, the other three among their own sets.
pub const ENTROPY_BITS_MIN: u32 = 160;
