//! Generates RSA key pairs.
//!
//! - [`generate`]: the parameters, the key pair, and the check of key pairs that callers set. It is pure, so native tests call it.
//!
//! Build it with `-C target-feature=+wide-arithmetic,+simd128`: without these features, big-number arithmetic is about nine
//! times slower.

pub mod generate;

/// The JSON Schema of the parameters.
pub const PARAMETERS_SCHEMA: &str = include_str!("parameters.schema.json");

/// The JSON Schema of the value.
pub const VALUE_SCHEMA: &str = include_str!("value.schema.json");

/// The minimum number of random bits in a key pair of the default length: all bits of both primes except the first two and the
/// last bit of each.
pub const ENTROPY_BITS_MIN: u32 = 2042;

#[cfg(target_arch = "wasm32")]
keywright_plugin_support::generator_component! {
    generator: generate::Rsa,
    credential_type: "rsa",
    summary: "RSA key pairs",
    parameters_schema: PARAMETERS_SCHEMA,
    value_schema: VALUE_SCHEMA,
    entropy_bits_min: ENTROPY_BITS_MIN,
    recover: generate::recover,
}
