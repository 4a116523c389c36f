//! Derives lines of htpasswd files from stored passwords: a user's name, and the password's hash in crypt(3) format.
//!
//! - [`generate`]: the parameters, the inputs and the line. It is pure, so native tests call it.
//!
//! The salt is generated once and stored in the hash, so each read of a version returns the same line.

pub mod generate;

/// The JSON Schema of the parameters.
pub const PARAMETERS_SCHEMA: &str = include_str!("parameters.schema.json");

/// The JSON Schema of the value.
pub const VALUE_SCHEMA: &str = include_str!("value.schema.json");

/// The number of random bits of the salt. The password adds none, because it is not generated here.
pub const ENTROPY_BITS_MIN: u32 = 48;

/// The parameter that names the credential with the password.
pub const CREDENTIAL: &str = "credential";

/// The input with which the host tests the plugin.
pub const EXAMPLE: &str = r#"{"username": "example", "password": "an example"}"#;

#[cfg(target_arch = "wasm32")]
keywright_plugin_support::derived_generator_component! {
    credential_type: "htpasswd",
    summary: "Lines of htpasswd files, derived from stored passwords",
    parameters_schema: PARAMETERS_SCHEMA,
    value_schema: VALUE_SCHEMA,
    entropy_bits_min: Some(ENTROPY_BITS_MIN),
    input_parameter: CREDENTIAL,
    example_type: "user",
    example_value: EXAMPLE,
    generate: generate::generate,
}
