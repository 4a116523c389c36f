//! Finds the references in documents: each string `((name))` refers to the credential `name`.

use exports::keywright::interpolation::{
    resolver::{self, Failure, Reference},
    settings_descriptor,
};
use keywright::generator::notes::note;
use serde_json::{Value, json};

/// Returns the name of the credential that a string refers to, or `None` if it is not a reference. EDIT THIS FUNCTION.
fn referenced_name(text: &str) -> Result<Option<&str>, Failure> {
    let name = text
        .strip_prefix("((")
        .and_then(|rest| rest.strip_suffix("))"));
    if name == Some("") {
        // A failure for the caller, with status 400.
        let rule = "the reference (()) has no name".to_owned();
        return Err(Failure::InvalidDocument(rule));
    }
    Ok(name)
}

/// Adds the references in the value at a JSON Pointer.
fn add_references(
    found: &mut Vec<Reference>,
    pointer: String,
    value: &Value,
) -> Result<(), Failure> {
    match value {
        Value::String(text) => {
            if let Some(name) = referenced_name(text)? {
                let name = name.to_owned();
                found.push(Reference { pointer, name });
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                add_references(found, format!("{pointer}/{index}"), item)?;
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                add_references(found, format!("{pointer}/{name}"), field)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// The operator's settings in the configuration of the plugin: none. A server refuses a configuration with other settings.
fn settings_schema() -> Value {
    json!({"type": "object", "additionalProperties": false})
}

/// A failure for the author, which a server only logs. It must not contain a part of the document. For a setting that the schema
/// can't check, use `Failure::Misconfigured` in the same way.
fn other(cause: serde_json::Error) -> Failure {
    Failure::Other(format!("malformed JSON in column {}", cause.column()))
}

/// Prints panics as notes, for the author. Call this first in each function.
fn note_panics() {
    std::panic::set_hook(Box::new(|panic| panic.to_string().lines().for_each(note)));
}

struct Plugin;

impl settings_descriptor::Guest for Plugin {
    fn describe_settings() -> String {
        note_panics();
        settings_schema().to_string()
    }
}

impl resolver::Guest for Plugin {
    fn find_references(document: String, _settings: String) -> Result<Vec<Reference>, Failure> {
        note_panics();
        let document = serde_json::from_str(&document).map_err(other)?;
        let mut found = Vec::new();
        add_references(&mut found, String::new(), &document)?;
        Ok(found)
    }
}

wit_bindgen::generate!({path: "wit", world: "plugin", generate_all});
export!(Plugin);
