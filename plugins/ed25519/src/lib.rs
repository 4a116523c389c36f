//! Generates Ed25519 key pairs (RFC 8032), in SSH format or as PKCS#8.
//!
//! - [`generate`]: the parameters and the key pair. It is pure, so native tests call it.

pub mod generate;

/// The JSON Schema of the parameters.
pub const PARAMETERS_SCHEMA: &str = include_str!("parameters.schema.json");

/// The JSON Schema of the value.
pub const VALUE_SCHEMA: &str = include_str!("value.schema.json");

/// The number of random bits in a key pair: the bits of the secret key.
pub const ENTROPY_BITS_MIN: u32 = 256;

#[cfg(target_arch = "wasm32")]
keywright_plugin_support::generator_component! {
    generator: generate::Ed25519,
    credential_type: "ed25519",
    summary: "Ed25519 key pairs, in SSH format or as PKCS#8",
    parameters_schema: PARAMETERS_SCHEMA,
    value_schema: VALUE_SCHEMA,
    entropy_bits_min: ENTROPY_BITS_MIN,
    recover: generate::recover,
}
