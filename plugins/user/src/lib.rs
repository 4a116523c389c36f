//! Generates users: a name, a random password, and the password's hash in crypt(3) format.
//!
//! - [`generate`]: the parameters, the user, and the check of users that callers set. It is pure, so native tests call it.
//!
//! The salt is generated once and stored in the hash, so each read of a version returns the same hash.

pub mod generate;

/// The JSON Schema of the parameters.
pub const PARAMETERS_SCHEMA: &str = include_str!("parameters.schema.json");

/// The JSON Schema of the value.
pub const VALUE_SCHEMA: &str = include_str!("value.schema.json");

/// The minimum number of random bits in a user with default parameters. Only the password counts, not the name or the salt.
pub const ENTROPY_BITS_MIN: u32 = 160;

#[cfg(target_arch = "wasm32")]
keywright_plugin_support::generator_component! {
    generator: generate::User,
    credential_type: "user",
    summary: "Users with a random password and its hash",
    parameters_schema: PARAMETERS_SCHEMA,
    value_schema: VALUE_SCHEMA,
    entropy_bits_min: ENTROPY_BITS_MIN,
    recover: generate::recover,
}
