//! Generates ECDSA key pairs on the curves P-256, P-384 and P-521 (FIPS 186-5), in SSH format or as PKCS#8.
//!
//! - [`generate`]: the parameters and the key pair. It is pure, so native tests call it.

pub mod generate;

/// The JSON Schema of the parameters.
pub const PARAMETERS_SCHEMA: &str = include_str!("parameters.schema.json");

/// The JSON Schema of the value.
pub const VALUE_SCHEMA: &str = include_str!("value.schema.json");

/// The minimum number of random bits in a key pair on the default curve, P-256: the order of its group is slightly below 2 to the
/// power of 256.
pub const ENTROPY_BITS_MIN: u32 = 255;

#[cfg(target_arch = "wasm32")]
keywright_plugin_support::generator_component! {
    generator: generate::Ecdsa,
    credential_type: "ecdsa",
    summary: "ECDSA key pairs, in SSH format or as PKCS#8",
    parameters_schema: PARAMETERS_SCHEMA,
    value_schema: VALUE_SCHEMA,
    entropy_bits_min: ENTROPY_BITS_MIN,
    recover: generate::recover,
}
