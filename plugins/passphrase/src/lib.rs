//! Makes passphrases: words of a list, each chosen at random.
//!
//! - [`generate`]: the parameters, the passphrase, and what may be set as one. Pure, and tested natively.
//! - `component`: the WIT side, for `wasm32` alone.
//!
//! The list, `words.txt`, is the EFF's "long" list for random passphrases, by Joseph Bonneau (Electronic Frontier Foundation,
//! 2016, <https://www.eff.org/dice>), under the licence Creative Commons Attribution 3.0 United States
//! (<https://creativecommons.org/licenses/by/3.0/us/>). The numbers of the dice were left out; the words and their order are
//! those of the list.
//!
//! A passphrase that was set can't be regenerated, so the plugin has no `recoverer`.

#[cfg(target_arch = "wasm32")]
mod component;
pub mod generate;

/// The JSON Schema of the parameters.
pub const PARAMETERS_SCHEMA: &str = include_str!("parameters.schema.json");

/// The JSON Schema of the value.
pub const VALUE_SCHEMA: &str = include_str!("value.schema.json");

/// How many random bits, at least, go into a passphrase made with default parameters: six choices among 7,776 words, of 12.925
/// bits each.
pub const ENTROPY_BITS_MIN: u32 = 77;
