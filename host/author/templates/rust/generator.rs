//! Generates values of the type `sample-token`: random bytes in hexadecimal.

use exports::keywright::generator::{descriptor, generator, settings_descriptor};
use keywright::generator::{
    notes::note,
    types::{Failure, Violation},
};
use serde_json::{Value, json};
use wasi::random::random::get_random_bytes;

/// Generates a value. EDIT THIS FUNCTION, then the schemas, the settings and the description below.
fn make_value(parameters: &Value, settings: &Value) -> Result<Value, Failure> {
    let length = parameters["length"].as_u64().unwrap_or_default();
    let length_max = settings["length_max"].as_u64().unwrap_or(64);
    if length > length_max {
        return Err(invalid("length", &format!("must be at most {length_max}")));
    }
    let bytes = get_random_bytes(length);
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(json!(digits))
}

/// The parameters of a request. The host validates them and fills in the defaults before it calls the plugin.
fn parameters_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "length": {"description": "Number of random bytes.", "type": "integer", "minimum": 16, "maximum": 64, "default": 32}
        },
        "additionalProperties": false
    })
}

/// The generated value. Mark secret parts as `writeOnly`.
fn value_schema() -> Value {
    json!({"type": "string", "pattern": "^([0-9a-f]{2}){16,64}$", "writeOnly": true})
}

/// The operator's settings, such as `settings = { length_max = 48 }` in the configuration of the plugin. A server refuses a
/// configuration with other settings.
fn settings_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "length_max": {"description": "Maximum of the parameter length.", "type": "integer", "minimum": 16}
        },
        "additionalProperties": false
    })
}

/// A failure for the caller, with status 400: a parameter breaks a rule. For a field of a value in `accept` and `recover`, use
/// `Failure::InvalidValue` in the same way.
fn invalid(parameter: &str, rule: &str) -> Failure {
    Failure::InvalidParameters(Violation {
        member: Some(parameter.to_owned()),
        rule: rule.to_owned(),
    })
}

/// A failure for the author, which a server only logs. It must not contain a secret. For a setting that the schema can't check, use
/// `Failure::Misconfigured` in the same way.
fn other(cause: impl ToString) -> Failure {
    Failure::Other(cause.to_string())
}

/// Prints panics as notes, which `keywright plugin run` and `keywright plugin test` show. Call this first in each function.
fn note_panics() {
    std::panic::set_hook(Box::new(|panic| panic.to_string().lines().for_each(note)));
}

struct Plugin;

impl descriptor::Guest for Plugin {
    fn describe() -> descriptor::Description {
        note_panics();
        descriptor::Description {
            credential_type: "sample-token".to_owned(),
            plugin_version: env!("CARGO_PKG_VERSION").to_owned(),
            summary: "Random tokens".to_owned(),
            parameters_schema: parameters_schema().to_string(),
            value_schema: value_schema().to_string(),
            issuer_parameter: None,
            // For the default parameters: 32 bytes.
            entropy_bits_min: Some(256),
        }
    }
}

impl settings_descriptor::Guest for Plugin {
    fn describe_settings() -> String {
        note_panics();
        settings_schema().to_string()
    }
}

impl generator::Guest for Plugin {
    fn generate(generation: generator::Generation) -> Result<String, Failure> {
        note_panics();
        let settings = serde_json::from_str(&generation.settings).map_err(other)?;
        let parameters = serde_json::from_str(&generation.parameters).map_err(other)?;
        Ok(make_value(&parameters, &settings)?.to_string())
    }
}

wit_bindgen::generate!({path: "wit", world: "plugin", generate_all});
export!(Plugin);
