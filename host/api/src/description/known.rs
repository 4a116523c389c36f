//! The schemas of what several routes read and answer, and of the types of the specification.

use std::borrow::Cow;

use keywright_core::credential::{
    CredentialType, KnownType, METADATA_CHARACTERS_MAX, NAME_CHARACTERS_MAX,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::operation::LenientBoolean;
use crate::response::VersionBody;

/// The name of a credential that is written.
pub(crate) struct Name;

impl JsonSchema for Name {
    fn schema_name() -> Cow<'static, str> {
        "CredentialName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "The name of a credential. A leading slash is prepended where it is absent, and counts. Casing is kept, and does not tell names apart.",
            "minLength": 1,
            "maxLength": NAME_CHARACTERS_MAX,
            "pattern": "^/?[A-Za-z0-9_.:()\\[\\]-]+(/[A-Za-z0-9_.:()\\[\\]-]+)*$",
        })
    }
}

/// The name of a credential that is looked up: one that is malformed is one that is not there.
pub(crate) struct LookedUpName;

impl JsonSchema for LookedUpName {
    fn schema_name() -> Cow<'static, str> {
        "LookedUpName".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "minLength": 1})
    }
}

/// A time as clients get it.
pub(crate) struct Timestamp;

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "date-time",
            "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$",
        })
    }
}

/// Any JSON that is kept beside a version.
pub(crate) struct Metadata;

impl JsonSchema for Metadata {
    fn schema_name() -> Cow<'static, str> {
        "Metadata".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": format!("Any JSON of at most {METADATA_CHARACTERS_MAX} characters, kept beside this version and no other; null for none."),
        })
    }
}

/// A version as it is answered, with the value that each type of the specification has.
pub(crate) struct Version;

impl JsonSchema for Version {
    fn schema_name() -> Cow<'static, str> {
        "CredentialVersion".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let mut version = VersionBody::json_schema(schemas);
        let by_type: Vec<_> = known()
            .map(|known| {
                let mut then = json!({"properties": {"value": known.value(schemas)}});
                if known.name == CredentialType::CERTIFICATE {
                    then["required"] = json!(CERTIFICATE_MARKS);
                }
                json!({
                    "if": {"properties": {"type": {"const": known.name}}},
                    "then": then,
                })
            })
            .collect();
        version.insert("allOf".to_owned(), Value::Array(by_type));
        version
    }
}

/// The members that every version of a certificate has.
const CERTIFICATE_MARKS: [&str; 4] = [
    "transitional",
    "certificate_authority",
    "self_signed",
    "expiry_date",
];

/// The body that sets a credential.
pub(crate) struct SetBody;

impl JsonSchema for SetBody {
    fn schema_name() -> Cow<'static, str> {
        "SetRequest".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let mut forms: Vec<_> = known()
            .map(|known| {
                let value = match known.name.as_str() {
                    CredentialType::CERTIFICATE => schemas.subschema_for::<SetCertificate>().into(),
                    name => set_value(name).unwrap_or_else(|| known.value(schemas)),
                };
                form(
                    &known.name,
                    json!({"const": known.name}),
                    &["value"],
                    [("value", value)],
                    schemas,
                )
            })
            .collect();
        let value = json!({"description": "As the type's plugin takes it."});
        forms.push(form(
            OTHER,
            other_type(),
            &["value"],
            [("value", value)],
            schemas,
        ));
        json_schema!({"anyOf": forms})
    }
}

/// The value of a certificate that is set.
pub(crate) struct SetCertificate;

impl JsonSchema for SetCertificate {
    fn schema_name() -> Cow<'static, str> {
        "SetCertificateValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text = |text: &str| json!({"type": ["string", "null"], "description": text});
        let ignored = json!({"description": "Ignored."});
        json_schema!({
            "type": "object",
            "description": "At least one of the four texts; ca and ca_name exclude each other. The empty text is absent.",
            "properties": {
                "ca": text("The certificate of the authority that signed it, PEM."),
                "ca_name": text("The name of the stored authority that signed it."),
                "certificate": text("The certificate, PEM."),
                "private_key": text("Its private key, PEM: PKCS#1, SEC1 or PKCS#8, not encrypted."),
                "transitional": ignored,
                "certificate_authority": ignored,
                "self_signed": ignored,
                "generated": ignored,
            },
            "additionalProperties": false,
        })
    }
}

/// The body that generates a credential, or regenerates one.
pub(crate) struct GenerateBody;

impl JsonSchema for GenerateBody {
    fn schema_name() -> Cow<'static, str> {
        "GenerateRequest".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let mut forms = Vec::new();
        for known in known() {
            let Some(parameters) = known.parameters(schemas) else {
                continue;
            };
            let is_certificate = known.name == CredentialType::CERTIFICATE;
            let required: &[_] = if is_certificate { &["parameters"] } else { &[] };
            let parameters = if is_certificate {
                parameters
            } else {
                json!({"anyOf": [parameters, {"type": "null"}]})
            };
            let mut members = vec![("parameters", parameters)];
            if known.name == CredentialType::USER {
                members.push(("value", former_username()));
            }
            forms.push(generate_form(
                &known.name,
                json!({"const": known.name}),
                required,
                members,
                schemas,
            ));
        }
        let parameters = json!({
            "type": ["object", "null"],
            "description": "As `GET /api/v1/types` tells for the type.",
        });
        forms.push(generate_form(
            OTHER,
            other_type(),
            &[],
            vec![("parameters", parameters)],
            schemas,
        ));
        forms.push(json!({
            "title": "regenerate",
            "deprecated": true,
            "description": "Regenerates a credential, as `POST /api/v1/regenerate` does.",
            "type": "object",
            "properties": {
                "name": schemas.subschema_for::<Name>(),
                "regenerate": {"enum": [true, "true"]},
                "type": {"description": "Ignored."},
                "metadata": schemas.subschema_for::<Metadata>(),
            },
            "required": ["name", "regenerate"],
            "additionalProperties": false,
        }));
        json_schema!({"anyOf": forms})
    }
}

fn generate_form(
    title: &str,
    credential_type: Value,
    required: &[&str],
    members: Vec<(&str, Value)>,
    schemas: &mut SchemaGenerator,
) -> Value {
    let mode = json!({
        "enum": ["converge", "no-overwrite", "overwrite", null],
        "default": "converge",
        "description": "What becomes of a credential that is there: with converge, a version is added where the parameters differ from its own; with no-overwrite, never; with overwrite, always.",
    });
    let mut overwrite = Value::from(LenientBoolean::json_schema(schemas));
    overwrite["deprecated"] = json!(true);
    overwrite["description"] =
        json!("Stands for the modes overwrite and no-overwrite where no mode is given.");
    let members = members
        .into_iter()
        .chain([("mode", mode), ("overwrite", overwrite)]);
    form(title, credential_type, required, members, schemas)
}

/// One form of a body: what all have, and these members.
fn form<'a>(
    title: &str,
    credential_type: Value,
    required: &[&str],
    members: impl IntoIterator<Item = (&'a str, Value)>,
    schemas: &mut SchemaGenerator,
) -> Value {
    let mut properties = Map::new();
    properties.insert("name".to_owned(), schemas.subschema_for::<Name>().into());
    properties.insert("type".to_owned(), credential_type);
    for (name, member) in members {
        properties.insert(name.to_owned(), member);
    }
    properties.insert(
        "metadata".to_owned(),
        schemas.subschema_for::<Metadata>().into(),
    );
    let required: Vec<_> = ["name", "type"].iter().chain(required).collect();
    json!({
        "title": title,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// A type that is not among those of the specification.
fn other_type() -> Value {
    json!({
        "type": "string",
        "description": "A type that `GET /api/v1/types` lists.",
        "pattern": "^[A-Za-z][A-Za-z0-9-]{0,62}$",
        "not": {"enum": CredentialType::SPECIFIED},
    })
}

const OTHER: &str = "another type";

/// Where a user's name stood before it became a parameter.
fn former_username() -> Value {
    json!({
        "type": ["object", "null"],
        "deprecated": true,
        "properties": {"username": {"type": ["string", "null"]}},
        "additionalProperties": false,
    })
}

/// What callers set of a type, where that is not what is read of it.
fn set_value(name: &str) -> Option<Value> {
    let key = json!({"type": ["string", "null"]});
    let computed = json!({"description": "Ignored: the server computes it."});
    let keys = |more: &[(&str, Value)]| {
        let mut schema = json!({
            "type": "object",
            "description": "At least one of the keys. The empty text is absent; the form of a key is not looked at.",
            "properties": {"public_key": key, "private_key": key},
            "additionalProperties": false,
        });
        for (name, member) in more {
            schema["properties"][*name] = member.clone();
        }
        schema
    };
    match name {
        CredentialType::USER => Some(json!({
            "type": "object",
            "properties": {
                "username": {"type": ["string", "null"]},
                "password": {"type": "string", "minLength": 1},
                "password_hash": computed,
            },
            "required": ["password"],
            "additionalProperties": false,
        })),
        CredentialType::RSA => Some(keys(&[])),
        CredentialType::SSH => Some(keys(&[("public_key_fingerprint", computed.clone())])),
        _ => None,
    }
}

/// A type of the specification, with its schemas as texts.
struct Known {
    name: String,
    parameters: Option<Cow<'static, str>>,
    value: Cow<'static, str>,
}

impl Known {
    /// A reference to the schema of its parameters.
    fn parameters(&self, schemas: &mut SchemaGenerator) -> Option<Value> {
        let text = self.parameters.as_deref()?;
        Some(named(schemas, &self.name, "Parameters", text))
    }

    /// A reference to the schema of its values.
    fn value(&self, schemas: &mut SchemaGenerator) -> Value {
        named(schemas, &self.name, "Value", &self.value)
    }
}

/// The types of the specification: those that no plugin makes, and those of the shipped plugins.
fn known() -> impl Iterator<Item = Known> {
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

/// Puts a schema among those that are referred to, under the name of a type and of what it is of.
fn named(schemas: &mut SchemaGenerator, credential_type: &str, what: &str, text: &str) -> Value {
    let (first, rest) = credential_type.split_at(1);
    let name = format!("{}{rest}{what}", first.to_ascii_uppercase());
    let mut schema: Value = serde_json::from_str(text).unwrap_or_default();
    as_described(&mut schema);
    schemas.definitions_mut().insert(name.clone(), schema);
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Makes a plugin's schema one of the description: what no caller may send is left out, and what is secret is marked as OpenAPI
/// marks it. `writeOnly` means there that a member is never answered.
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

/// The types that the shipped plugins make, with the schemas of their parameters and their values.
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
