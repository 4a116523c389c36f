//! Schemas of bodies that depend on the credential type, and example versions.

#![expect(clippy::indexing_slicing, reason = "indexing creates missing keys")]
use super::schemas::{LenientBoolean, Name, SetCertificate, specified_types};
use crate::{request::Metadata, response::VersionBody};
use keywright_core::credential::CredentialType;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// A version in a response. The schema of its value depends on its type.
pub(crate) struct Version;

impl JsonSchema for Version {
    fn schema_name() -> Cow<'static, str> {
        "CredentialVersion".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let mut version = VersionBody::json_schema(schemas);
        let by_type: Vec<_> = specified_types()
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

/// The fields that every certificate version has.
const CERTIFICATE_MARKS: [&str; 4] = [
    "transitional",
    "certificate_authority",
    "self_signed",
    "expiry_date",
];

pub(crate) struct SetBody;

impl JsonSchema for SetBody {
    fn schema_name() -> Cow<'static, str> {
        "SetRequest".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let mut forms: Vec<_> = specified_types()
            .map(|known| {
                let value = match known.name.as_str() {
                    CredentialType::CERTIFICATE => schemas.subschema_for::<SetCertificate>().into(),
                    name => set_value(name).unwrap_or_else(|| known.value(schemas)),
                };
                let parameters = known.parameters(schemas);
                let credential_type = json!({"const": known.name});
                set_form(&known.name, credential_type, value, parameters, schemas)
            })
            .collect();
        let value =
            json!({"description": "The schema depends on the type: see `GET /api/v1/types`."});
        let parameters = Some(parameters_of_another_type());
        let other = set_form(OTHER, other_type(), value, parameters, schemas);
        forms.push(other);
        json_schema!({"anyOf": forms})
    }
}

/// Returns the schema of a body to set a credential of one type. A type without parameters has no provenance.
fn set_form(
    title: &str,
    credential_type: Value,
    value: Value,
    parameters: Option<Value>,
    schemas: &mut SchemaGenerator,
) -> Value {
    let mut fields = vec![("value", value)];
    let has_provenance = parameters.is_some();
    if let Some(parameters) = parameters {
        let digest = json!({
            "type": ["string", "null"],
            "description": "The SHA-256 of the component that generated the value on another server.",
            "pattern": "^(sha256:)?[0-9A-Fa-f]{64}$",
        });
        fields.push(("generated_by", digest));
        fields.push((
            "parameters",
            json!({"anyOf": [parameters, {"type": "null"}]}),
        ));
    }
    let mut form = form(title, credential_type, &["value"], fields, schemas);
    if has_provenance {
        form["dependentRequired"] =
            json!({"generated_by": ["parameters"], "parameters": ["generated_by"]});
    }
    form
}

/// The body to generate or regenerate a credential.
pub(crate) struct GenerateBody;

impl JsonSchema for GenerateBody {
    fn schema_name() -> Cow<'static, str> {
        "GenerateRequest".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let mut forms = Vec::new();
        for known in specified_types() {
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
            let mut fields = vec![("parameters", parameters)];
            if known.name == CredentialType::USER {
                fields.push(("value", deprecated_user_value()));
            }
            forms.push(generate_form(
                &known.name,
                json!({"const": known.name}),
                required,
                fields,
                schemas,
            ));
        }
        forms.push(generate_form(
            OTHER,
            other_type(),
            &[],
            vec![("parameters", parameters_of_another_type())],
            schemas,
        ));
        forms.push(json!({
            "title": "regenerate",
            "deprecated": true,
            "description": "Regenerates a credential, as `POST /api/v1/regenerate` does.",
            "type": "object",
            "properties": {
                "name": schemas.subschema_for::<Name>(),
                "regenerate": {"anyOf": [
                    {"enum": [true, 1]},
                    {"type": "string", "pattern": "^[Tt][Rr][Uu][Ee]$"},
                ]},
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
    fields: Vec<(&str, Value)>,
    schemas: &mut SchemaGenerator,
) -> Value {
    let mode = json!({
        "enum": ["converge", "no-overwrite", "overwrite", null],
        "default": "converge",
        "description": "Whether to add a version if the credential exists. `converge` adds one only if the parameters differ or the signing CA has another active certificate. `no-overwrite` keeps the existing version. `overwrite` always adds one.",
    });
    let mut overwrite = json!({"anyOf": [LenientBoolean::json_schema(schemas), {"type": "null"}]});
    overwrite["deprecated"] = json!(true);
    overwrite["description"] = json!(
        "`true` is equivalent to the mode `overwrite`, `false` to the mode `no-overwrite`. Ignored if `mode` is given."
    );
    let fields = fields
        .into_iter()
        .chain([("mode", mode), ("overwrite", overwrite)]);
    form(title, credential_type, required, fields, schemas)
}

/// Returns the schema of a body for one type: the common properties and `fields`.
fn form<'a>(
    title: &str,
    credential_type: Value,
    required: &[&str],
    fields: impl IntoIterator<Item = (&'a str, Value)>,
    schemas: &mut SchemaGenerator,
) -> Value {
    let mut properties = Map::new();
    properties.insert("name".to_owned(), schemas.subschema_for::<Name>().into());
    properties.insert("type".to_owned(), credential_type);
    for (name, field) in fields {
        properties.insert(name.to_owned(), field);
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

fn other_type() -> Value {
    json!({
        "type": "string",
        "description": "A type that `GET /api/v1/types` lists.",
        "pattern": "^[A-Za-z][A-Za-z0-9-]{0,62}$",
        "not": {"enum": CredentialType::SPECIFIED},
    })
}

fn parameters_of_another_type() -> Value {
    json!({
        "type": ["object", "null"],
        "description": "The schema depends on the type: see `GET /api/v1/types`.",
    })
}

const OTHER: &str = "another type";

/// Returns the schema of the deprecated field `value` in requests to generate a user. The username is now a parameter.
fn deprecated_user_value() -> Value {
    json!({
        "type": ["object", "null"],
        "deprecated": true,
        "properties": {"username": {"type": ["string", "number", "boolean", "null"]}},
        "additionalProperties": false,
    })
}

/// Returns the schema for setting values of a type, if it differs from the schema for reading them.
fn set_value(name: &str) -> Option<Value> {
    let key = json!({"type": ["string", "null"]});
    let computed = json!({"description": "Ignored; computed by the server."});
    let keys = |more: &[(&str, Value)]| {
        let mut schema = json!({
            "type": "object",
            "description": "At least one key is required. Empty strings count as absent; the format of keys is not checked.",
            "properties": {"public_key": key, "private_key": key},
            "additionalProperties": false,
        });
        for (name, field) in more {
            schema["properties"][*name] = field.clone();
        }
        schema
    };
    match name {
        CredentialType::USER => Some(json!({
            "type": "object",
            "properties": {
                "username": {"type": ["string", "null"]},
                "password": {
                    "type": ["string", "number", "boolean"],
                    "description": "A number or a boolean is stored as its JSON text.",
                    "minLength": 1,
                },
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

/// Example versions from a real server.
pub(crate) mod example {
    use serde_json::{Value, json};

    pub(crate) fn json_version() -> Value {
        json!({
            "type": "json",
            "version_created_at": "2026-11-22T01:27:52Z",
            "id": "2ae1d8fe-5561-4d84-a447-1bb4003bece7",
            "name": "/demo/database",
            "metadata": {"owner": "shop"},
            "value": {"host": "db.example", "port": 5432},
        })
    }

    pub(crate) fn user_version() -> Value {
        json!({
            "type": "user",
            "version_created_at": "2026-11-22T01:27:52Z",
            "id": "2202d20a-20f5-4cc7-890d-6a5f3c993e94",
            "name": "/demo/user",
            "metadata": null,
            "value": {
                "username": "ada",
                "password": "correct horse",
                "password_hash": "$6$VxJxalOy$B7uLKkFnWgFxZBd9TwUZJk/19g8f/Fj0ZA.WXLNTas7c9WP.vvirxdyPDYlH4aO/1DbKh.QGN9iqOqEfICCJa.",
            },
        })
    }

    pub(crate) fn password_version() -> Value {
        json!({
            "type": "password",
            "version_created_at": "2026-11-22T01:27:52Z",
            "id": "df2ede65-9a21-46e4-9d67-878a81f41b95",
            "name": "/demo/password",
            "metadata": null,
            "value": "pnvKaNLR4Tj0",
        })
    }

    /// Returns a version of type certificate, without its key.
    pub(crate) fn certificate_version() -> Value {
        json!({
            "type": "certificate",
            "version_created_at": "2026-11-22T01:27:53Z",
            "id": "8f3b4de4-b821-46d6-a28c-52f21f21a18e",
            "name": "/demo/root",
            "metadata": null,
            "value": {"ca": null, "certificate": CERTIFICATE, "private_key": null},
            "transitional": true,
            "certificate_authority": true,
            "self_signed": true,
            "expiry_date": "2027-11-22T01:27:53Z",
        })
    }

    /// The certificate of [`certificate_version`], in PEM.
    pub(crate) const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----\n\
MIIBfjCCASOgAwIBAgIUGROaCC3oJcCDjBKcBnbmuQKDC6cwCgYIKoZIzj0EAwIw\n\
FDESMBAGA1UEAwwJRGVtbyByb290MB4XDTI2MTEyMjAxMjc1M1oXDTI3MTEyMjAx\n\
Mjc1M1owFDESMBAGA1UEAwwJRGVtbyByb290MFkwEwYHKoZIzj0CAQYIKoZIzj0D\n\
AQcDQgAELeB6CUhGpU+GqKbkEs7v2lS64NhpsdBhJtoz++CzSG7Q7rvT9jptzg7q\n\
TzGYf3Tq70JLUnMeW1ImvV7q+Fci5qNTMFEwHwYDVR0jBBgwFoAUYcAVDtiOHdYc\n\
DteqP84Unh5TLqEwHQYDVR0OBBYEFGHAFQ7Yjh3WHA7Xqj/OFJ4eUy6hMA8GA1Ud\n\
EwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhALOtGdSlQkEk8rDdHbB3xUQl\n\
qJ7vlsi3xFyW2tlrH3tvAiEApry8HchrmdheHFrh2+quh2LofheZ0hwcmzAmnZwk\n\
YEQ=\n\
-----END CERTIFICATE-----\n";
}
