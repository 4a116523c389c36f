//! `GET /version`: the level of the API.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    Api,
    description::{Described, Tag},
    response::{ApiFailure, rendered},
};
use serde_json::json;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ServerVersion")]
struct VersionResponse<'a> {
    version: &'a str,
}

/// What the description says of it.
pub(crate) fn describe() -> Described {
    Described::new(
        "getVersion",
        Tag::Operations,
        "Tells the level of the API, which clients compare",
    )
    .text("It is not the version of the product, which the header `Server` has.")
    .answer::<VersionResponse<'_>>(200, "The level.")
    .answered("version", json!({"version": "2.15.0"}))
}

/// Answers with the level of the API, which clients compare.
pub(crate) async fn handler(State(api): State<Arc<Api>>) -> Result<Response, ApiFailure> {
    rendered(&VersionResponse {
        version: &api.information.api_level,
    })
}
