//! `GET /api/v1/types`: the types that this server knows, and what each takes and holds.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use keywright_core::credential::KnownType;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    Api,
    request::compact,
    response::{ApiFailure, rendered},
};

#[derive(Serialize)]
struct TypesResponse<'a> {
    types: Vec<TypeBody<'a>>,
}

#[derive(Serialize)]
struct TypeBody<'a> {
    name: &'a str,
    summary: &'a str,
    plugin: Option<PluginBody<'a>>,
    parameters: Option<Box<RawValue>>,
    value: Box<RawValue>,
}

#[derive(Serialize)]
struct PluginBody<'a> {
    name: &'a str,
    version: &'a str,
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

/// Answers with the types, their schemas as the plugins have them.
pub(crate) async fn handler(State(api): State<Arc<Api>>) -> Result<Response, ApiFailure> {
    let known = api.credentials.types();
    let types = known.iter().map(TypeBody::of).collect::<Result<_, _>>()?;
    rendered(&TypesResponse { types })
}
