//! `GET /version`: the level of the API.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::{
    Api,
    description::{Described, Tag},
    response::{ApiFailure, rendered},
    route::{Access::Identity, NOT_AUDITED, Route, route},
};

/// The route.
pub(crate) fn route() -> Route {
    route!(GET "/version", Identity, NOT_AUDITED, handler, describe)
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ServerVersion")]
struct VersionResponse<'a> {
    version: &'a str,
}

/// Describes the operation.
fn describe() -> Described {
    Described::new(
        "getVersion",
        Tag::Operations,
        "Returns the API level, which clients compare",
    )
    .text("This is not the version of the server, which is in the header `Server`.")
    .answer::<VersionResponse<'_>>(200, "The level.")
    .answered("version", json!({"version": "2.15.0"}))
}

/// Responds with the API level, which clients compare.
async fn handler(State(api): State<Arc<Api>>) -> Result<Response, ApiFailure> {
    rendered(&VersionResponse {
        version: &api.information.api_level,
    })
}
