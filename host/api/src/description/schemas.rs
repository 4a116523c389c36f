//! The schemas of names, times and other common fields, and of the parameters and values of the specified types.

use std::borrow::Cow;

use keywright_core::{
    credential::{CredentialType, KnownType, NAME_CHARACTERS_MAX},
    permission::{Operation, PERMISSION_PATH_CHARACTERS_MAX},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// Defines types that only represent a schema: the type, its name in the description, whether it is inlined, and its schema.
macro_rules! schemas {
    ($($(#[$doc:meta])* $type:ident, $name:literal, $is_inline:literal, $schema:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $type;

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn inline_schema() -> bool {
                $is_inline
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    )*};
}

schemas! {
    /// The name of a credential in a write request.
    Name, "CredentialName", false, absolute(
        "The name of a credential. A missing leading slash is added and counts towards the length. Case is preserved but not significant.",
        NAME,
        NAME_CHARACTERS_MAX,
    );
    /// The path of a permission in a write request.
    GrantedPath, "PermissionPath", false, absolute(
        "The full name of one credential, or a path that ends in `/*` for all names below it. A missing leading slash is added and counts towards the length. Case-sensitive.",
        &format!(r"({NAME}(/\*)?|\*)"),
        PERMISSION_PATH_CHARACTERS_MAX,
    );
    /// The name of a credential in a lookup. Malformed names match no credential.
    LookedUpName, "LookedUpName", true, json_schema!({"type": "string", "minLength": 1});
    /// A time in a response.
    Timestamp, "Timestamp", true, json_schema!({
        "type": "string",
        "format": "date-time",
        "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$",
    });
    /// A boolean, or a value that is converted to one.
    LenientBoolean, "Boolean", true, {
        let [number, text] = LenientBoolean::converted();
        json_schema!({"anyOf": [{"type": "boolean"}, number, text]})
    };
    /// A positive integer, or a string that is converted to one.
    LenientInteger, "Integer", true, json_schema!({
        "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": r"^\+?[0-9]+$"}],
    });
    /// The name of an operation.
    OperationName, "Operation", false, json_schema!({
        "type": "string",
        "enum": Operation::ALL.map(Operation::as_str),
        "description": "The name of an operation.",
    });
    /// The id of a version, or `latest`.
    VersionToFlag, "VersionToFlag", true, json_schema!({
        "anyOf": [{"type": "string", "format": "uuid"}, {"type": "string", "enum": ["latest"]}],
        "description": "The id of a version, or `latest`.",
    });
    /// The value for setting a certificate.
    SetCertificate, "SetCertificateValue", false, set_certificate();
}

fn set_certificate() -> Schema {
    let text = |text: &str| json!({"type": ["string", "null"], "description": text});
    let ignored = json!({"description": "Ignored."});
    json_schema!({
        "type": "object",
        "description": "At least one of `ca`, `ca_name`, `certificate` and `private_key` is required; `ca` and `ca_name` are mutually exclusive. Empty strings count as absent.",
        "properties": {
            "ca": text("The certificate of the signing CA, in PEM."),
            "ca_name": text("The name of the stored CA that signed the certificate."),
            "certificate": text("The certificate, in PEM."),
            "private_key": text("The private key, in PEM: PKCS#1, SEC1 or PKCS#8, not encrypted."),
            "transitional": ignored,
            "certificate_authority": ignored,
            "self_signed": ignored,
            "generated": ignored,
        },
        "additionalProperties": false,
    })
}

/// Returns the schema of a string with an optional leading slash, which counts towards the length if missing.
fn absolute(description: &str, form: &str, characters_max: usize) -> Schema {
    json_schema!({
        "type": "string",
        "description": description,
        "minLength": 1,
        "maxLength": characters_max,
        "pattern": format!("^/?{form}$"),
        "if": {"pattern": "^[^/]"},
        "then": {"maxLength": characters_max - 1},
    })
}

/// The name of a credential without its leading slash, as a regular expression.
const NAME: &str = r"[A-Za-z0-9_.:()\[\]-]+(/[A-Za-z0-9_.:()\[\]-]+)*";

impl LenientBoolean {
    fn converted() -> [Value; 2] {
        [
            json!({"enum": [0, 1]}),
            json!({"type": "string", "pattern": "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$"}),
        ]
    }
}

/// A specified type, with its schemas as JSON text.
pub(crate) struct SpecifiedType {
    pub(crate) name: String,
    parameters: Option<Cow<'static, str>>,
    value: Cow<'static, str>,
}

impl SpecifiedType {
    pub(crate) fn parameters(&self, schemas: &mut SchemaGenerator) -> Option<Value> {
        let mut schema = read(self.parameters.as_deref()?);
        accept_converted_scalars(&mut schema);
        Some(named(schemas, &self.name, "Parameters", schema))
    }

    pub(crate) fn value(&self, schemas: &mut SchemaGenerator) -> Value {
        named(schemas, &self.name, "Value", read(&self.value))
    }
}

/// Returns the specified types: types without a plugin, and types of the shipped plugins.
pub(crate) fn specified_types() -> impl Iterator<Item = SpecifiedType> {
    let set_only = KnownType::set_only()
        .into_iter()
        .map(|known| SpecifiedType {
            name: known.name,
            parameters: None,
            value: known.value_schema.into(),
        });
    let shipped = SHIPPED
        .into_iter()
        .map(|(name, parameters, value)| SpecifiedType {
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
    suffix: &str,
    mut schema: Value,
) -> Value {
    let (first, rest) = credential_type.split_at(1);
    let name = format!("{}{rest}{suffix}", first.to_ascii_uppercase());
    convert_for_description(&mut schema);
    schemas.definitions_mut().insert(name.clone(), schema);
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn read(schema: &str) -> Value {
    keywright_json::read(schema).unwrap_or_default()
}

/// Adds the scalars that the host converts to the declared types (`runtime/src/schema/parameters.rs`).
fn accept_converted_scalars(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        return;
    };
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(accept_converted_scalars);
    }
    if let Some(items) = fields.get_mut("items") {
        accept_converted_scalars(items);
    }
    let mut types: Vec<Value> = match fields.get("type") {
        Some(Value::Array(types)) => types.clone(),
        Some(one) => vec![one.clone()],
        None => return,
    };
    if types.contains(&json!("string")) {
        types.extend([json!("number"), json!("boolean")]);
        fields.insert("type".to_owned(), json!(types));
        return;
    }
    let converted = if types.contains(&json!("boolean")) {
        LenientBoolean::converted().to_vec()
    } else if types.contains(&json!("integer")) {
        vec![json!({"type": "string", "pattern": "^[+-]?[0-9]+$"})]
    } else {
        return;
    };
    let description = fields.shift_remove("description");
    let declared = std::mem::take(fields);
    let mut accepted = vec![Value::Object(declared)];
    accepted.extend(converted);
    fields.extend(description.map(|text| ("description".to_owned(), text)));
    fields.insert("anyOf".to_owned(), json!(accepted));
}

/// Converts a plugin's schema for the description: removes properties that callers can't send, and marks secrets with the format
/// `password`, because `writeOnly` in `OpenAPI` means that a property is never returned.
fn convert_for_description(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        return;
    };
    fields.shift_remove("$schema");
    if fields.shift_remove("writeOnly").is_some() && fields.get("type") != Some(&json!("object")) {
        fields.insert("format".to_owned(), json!("password"));
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.retain(|_, property| property.get("readOnly") != Some(&Value::Bool(true)));
        properties.values_mut().for_each(convert_for_description);
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
