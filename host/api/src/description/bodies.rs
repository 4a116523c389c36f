//! What the bodies that depend on the credential type share: the schema of a version, forms of requests, and example versions.

#![expect(clippy::indexing_slicing, reason = "indexing creates missing keys")]
use super::schemas::{Name, specified_types};
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

/// Returns the schema of a request for one specified type, or for all other types: the common properties and `fields`.
pub(crate) fn form<'a>(
    specified_type: Option<&str>,
    required: &[&str],
    fields: impl IntoIterator<Item = (&'a str, Value)>,
    schemas: &mut SchemaGenerator,
) -> Schema {
    let mut properties = Map::new();
    properties.insert("name".to_owned(), schemas.subschema_for::<Name>().into());
    let credential_type = specified_type.map_or_else(other_type, |name| json!({"const": name}));
    properties.insert("type".to_owned(), credential_type);
    for (name, field) in fields {
        properties.insert(name.to_owned(), field);
    }
    properties.insert(
        "metadata".to_owned(),
        schemas.subschema_for::<Metadata>().into(),
    );
    let required: Vec<_> = ["name", "type"].iter().chain(required).collect();
    json_schema!({
        "title": specified_type.unwrap_or("another type"),
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

pub(crate) fn parameters_of_another_type() -> Value {
    json!({
        "type": ["object", "null"],
        "description": "The schema depends on the type: see `GET /api/v1/types`.",
    })
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
