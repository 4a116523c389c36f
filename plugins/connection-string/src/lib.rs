//! Derives connection strings from a template and stored credentials.
//!
//! - [`generate`]: the parameters, the inputs and the connection string. It is pure, so native tests call it.
//! - [`template`]: the parts of a template.

pub mod generate;
pub mod template;

/// The JSON Schema of the parameters.
pub const PARAMETERS_SCHEMA: &str = include_str!("parameters.schema.json");

/// The JSON Schema of the value.
pub const VALUE_SCHEMA: &str = include_str!("value.schema.json");

/// The parameter that names the credentials.
pub const CREDENTIALS: &str = "credentials";

/// The input with which the host tests the plugin.
pub const EXAMPLE: &str = r#"{"username": "example", "password": "an example"}"#;

#[cfg(target_arch = "wasm32")]
keywright_plugin_support::derived_generator_component! {
    credential_type: "connection-string",
    summary: "Connection strings, derived from stored credentials",
    parameters_schema: PARAMETERS_SCHEMA,
    value_schema: VALUE_SCHEMA,
    entropy_bits_min: None,
    input_parameter: CREDENTIALS,
    example_type: "user",
    example_value: EXAMPLE,
    generate: (|parameters: &str, settings: &str, inputs: &[_], _: &mut _| {
        generate::generate(parameters, settings, inputs)
    }),
}
