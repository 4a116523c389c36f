//! The specified types, with the schemas of their parameters and values.

use std::borrow::Cow;

use keywright_core::credential::{CredentialType, KnownType};
use schemars::SchemaGenerator;
use serde_json::{Value, json};

use super::scalars::LenientBoolean;

/// A specified type, with its schemas as JSON text.
pub(super) struct Known {
    pub(super) name: String,
    parameters: Option<Cow<'static, str>>,
    value: Cow<'static, str>,
}

impl Known {
    /// Returns a reference to the schema of the parameters.
    pub(super) fn parameters(&self, schemas: &mut SchemaGenerator) -> Option<Value> {
        let mut schema = read(self.parameters.as_deref()?);
        accept_converted_scalars(&mut schema);
        Some(named(schemas, &self.name, "Parameters", schema))
    }

    /// Returns a reference to the schema of the values.
    pub(super) fn value(&self, schemas: &mut SchemaGenerator) -> Value {
        named(schemas, &self.name, "Value", read(&self.value))
    }
}

/// Returns the specified types: those without a plugin, and those of the shipped plugins.
pub(super) fn known() -> impl Iterator<Item = Known> {
    let set_only = KnownType::set_only().into_iter().map(|known| Known {
        name: known.name,
        parameters: None,
        value: known.value_schema.into(),
    });
    let shipped = SHIPPED.into_iter().map(|(name, parameters, value)| Known {
        name: name.to_owned(),
        parameters: Some(parameters.into()),
        value: value.into(),
    });
    set_only.chain(shipped)
}

/// Adds a schema to the definitions, and returns a reference to it.
fn named(
    schemas: &mut SchemaGenerator,
    credential_type: &str,
    what: &str,
    mut schema: Value,
) -> Value {
    let (first, rest) = credential_type.split_at(1);
    let name = format!("{}{rest}{what}", first.to_ascii_uppercase());
    as_described(&mut schema);
    schemas.definitions_mut().insert(name.clone(), schema);
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn read(schema: &str) -> Value {
    keywright_json::read(schema).unwrap_or_default()
}

/// Adds the scalars that the host converts to the declared types (`runtime/src/schema/parameters.rs`).
fn accept_converted_scalars(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.values_mut().for_each(accept_converted_scalars);
    }
    if let Some(items) = members.get_mut("items") {
        accept_converted_scalars(items);
    }
    let mut types: Vec<Value> = match members.get("type") {
        Some(Value::Array(types)) => types.clone(),
        Some(one) => vec![one.clone()],
        None => return,
    };
    if types.contains(&json!("string")) {
        types.extend([json!("number"), json!("boolean")]);
        members.insert("type".to_owned(), json!(types));
        return;
    }
    let converted = if types.contains(&json!("boolean")) {
        LenientBoolean::converted().to_vec()
    } else if types.contains(&json!("integer")) {
        vec![json!({"type": "string", "pattern": "^[+-]?[0-9]+$"})]
    } else {
        return;
    };
    let description = members.shift_remove("description");
    let declared = std::mem::take(members);
    let mut accepted = vec![Value::Object(declared)];
    accepted.extend(converted);
    members.extend(description.map(|text| ("description".to_owned(), text)));
    members.insert("anyOf".to_owned(), json!(accepted));
}

/// Converts a plugin's schema for the description: removes properties that callers can't send, and marks secrets with the format
/// `password`, because `writeOnly` in `OpenAPI` means that a property is never returned.
fn as_described(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    members.shift_remove("$schema");
    if members.shift_remove("writeOnly").is_some() && members.get("type") != Some(&json!("object"))
    {
        members.insert("format".to_owned(), json!("password"));
    }
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.retain(|_, property| property.get("readOnly") != Some(&Value::Bool(true)));
        properties.values_mut().for_each(as_described);
    }
}

/// The types of the shipped plugins, with the schemas of their parameters and values.
const SHIPPED: [(&str, &str, &str); 5] = [
    (
        CredentialType::PASSWORD,
        include_str!("../../../../plugins/password/src/parameters.schema.json"),
        include_str!("../../../../plugins/password/src/value.schema.json"),
    ),
    (
        CredentialType::USER,
        include_str!("../../../../plugins/user/src/parameters.schema.json"),
        include_str!("../../../../plugins/user/src/value.schema.json"),
    ),
    (
        CredentialType::CERTIFICATE,
        include_str!("../../../../plugins/certificate/src/parameters.schema.json"),
        include_str!("../../../../plugins/certificate/src/value.schema.json"),
    ),
    (
        CredentialType::RSA,
        include_str!("../../../../plugins/rsa/src/parameters.schema.json"),
        include_str!("../../../../plugins/rsa/src/value.schema.json"),
    ),
    (
        CredentialType::SSH,
        include_str!("../../../../plugins/ssh/src/parameters.schema.json"),
        include_str!("../../../../plugins/ssh/src/value.schema.json"),
    ),
];
