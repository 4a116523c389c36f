//! Generates passwords: random text with at least one character of each requested character set.
//!
//! - [`generate`]: the parameters, the password, and the check of passwords that callers set. It is pure, so native tests call it.
//!
//! A password that was set can't be regenerated, so the plugin has no `recoverer`.

pub mod generate;

/// The JSON Schema of the parameters.
pub const PARAMETERS_SCHEMA: &str = include_str!("parameters.schema.json");

/// The JSON Schema of the value.
pub const VALUE_SCHEMA: &str = include_str!("value.schema.json");

/// The minimum number of random bits in a password with default parameters: 27 of its 30 characters are chosen from 62, the other
/// three from their own sets.
pub const ENTROPY_BITS_MIN: u32 = 160;

#[cfg(target_arch = "wasm32")]
keywright_plugin_support::generator_component! {
    generator: generate::Password,
    credential_type: "password",
    summary: "Random passwords",
    parameters_schema: PARAMETERS_SCHEMA,
    value_schema: VALUE_SCHEMA,
    entropy_bits_min: ENTROPY_BITS_MIN,
}
