//! Generates passphrases: random words from a list.
//!
//! - [`generate`]: the parameters, the passphrase, and the check of passphrases that callers set. It is pure, so native tests
//!   call it.
//!
//! The list, `words.txt`, is the EFF's "long" list for random passphrases, by Joseph Bonneau (Electronic Frontier Foundation,
//! 2016, <https://www.eff.org/dice>), under the licence Creative Commons Attribution 3.0 United States
//! (<https://creativecommons.org/licenses/by/3.0/us/>). The dice numbers were removed; the words and their order are unchanged.
//!
//! A passphrase that was set can't be regenerated, so the plugin has no `recoverer`.

pub mod generate;

/// The JSON Schema of the parameters.
pub const PARAMETERS_SCHEMA: &str = include_str!("parameters.schema.json");

/// The JSON Schema of the value.
pub const VALUE_SCHEMA: &str = include_str!("value.schema.json");

/// The minimum number of random bits in a passphrase with default parameters: six words from a list of 7,776, with 12.925 bits
/// each.
pub const ENTROPY_BITS_MIN: u32 = 77;

#[cfg(target_arch = "wasm32")]
keywright_plugin_support::generator_component! {
    generator: generate::Passphrase,
    credential_type: "passphrase",
    summary: "Random words from a list",
    parameters_schema: PARAMETERS_SCHEMA,
    value_schema: VALUE_SCHEMA,
    entropy_bits_min: ENTROPY_BITS_MIN,
}
