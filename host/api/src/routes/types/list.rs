//! `GET /api/v1/types`: the types that this server knows, and what each takes and holds.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use keywright_core::credential::KnownType;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    Api,
    description::{Described, Tag},
    request::compact,
    response::{ApiFailure, rendered},
};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "KnownTypes")]
struct TypesResponse<'a> {
    types: Vec<TypeBody<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "KnownType")]
struct TypeBody<'a> {
    /// The type's name, as requests have it.
    name: &'a str,
    /// What it is, on one line.
    summary: &'a str,
    /// What makes its values; null where they can only be set.
    plugin: Option<PluginBody<'a>>,
    /// The JSON Schema (draft 2020-12) of the parameters of a generate; null where values can only be set. What is `readOnly` in
    /// it can't be sent.
    #[schemars(with = "Option<Map<String, Value>>")]
    parameters: Option<Box<RawValue>>,
    /// The JSON Schema of its values as they are read. What is `writeOnly` in it is secret.
    #[schemars(with = "Value")]
    value: Box<RawValue>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct PluginBody<'a> {
    /// The name under which it is configured.
    name: &'a str,
    /// Its own version.
    version: &'a str,
    /// The SHA-256 of its component, in hexadecimal.
    digest: &'a str,
}

impl<'a> TypeBody<'a> {
    fn of(known: &'a KnownType) -> Result<Self, ApiFailure> {
        let schema =
            |text: &String| RawValue::from_string(compact(text)).map_err(ApiFailure::unrenderable);
        Ok(Self {
            name: &known.name,
            summary: &known.summary,
            plugin: known.plugin.as_ref().map(|plugin| PluginBody {
                name: &plugin.name,
                version: &plugin.version,
                digest: &plugin.digest,
            }),
            parameters: known.parameters_schema.as_ref().map(schema).transpose()?,
            value: schema(&known.value_schema)?,
        })
    }
}

/// What the description says of it.
pub(crate) fn describe() -> Described {
    let text = "Types are open: each generator that is configured is one more. What parameters one takes, and what its values \
        hold, its plugin says by JSON Schemas.";
    Described::new("listTypes", Tag::Operations, "Lists the types of credentials that this server knows")
        .text(text)
        .answer::<TypesResponse<'_>>(200, "Those that can only be set, then those that plugins make, by name.")
        .answered(
            "some",
            json!({"types": [
                {
                    "name": "value",
                    "summary": "A text that callers set.",
                    "plugin": null,
                    "parameters": null,
                    "value": {"type": "string", "minLength": 1, "writeOnly": true},
                },
                {
                    "name": "rsa",
                    "summary": "RSA key pairs",
                    "plugin": {
                        "name": "rsa",
                        "version": "0.1.0",
                        "digest": "a920db1cf1d55e175bd5a81064b2c41f12e33e63e0aace47c9a5027cb92fdee1",
                    },
                    "parameters": {
                        "type": "object",
                        "properties": {"key_length": {"type": "integer", "enum": [2048, 3072, 4096], "default": 2048}},
                        "additionalProperties": false,
                    },
                    "value": {"type": "object"},
                },
            ]}),
        )
}

/// Answers with the types, their schemas as the plugins have them.
pub(crate) async fn handler(State(api): State<Arc<Api>>) -> Result<Response, ApiFailure> {
    let known = api.credentials.types();
    let types = known.iter().map(TypeBody::of).collect::<Result<_, _>>()?;
    rendered(&TypesResponse { types })
}
