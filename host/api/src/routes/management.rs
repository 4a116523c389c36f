//! `/management` reads and switches read-only mode. [`ServerMode::refusal`](crate::ServerMode::refusal) authorizes the caller beforehand.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    Api,
    admission::MANAGEMENT,
    description::LenientBoolean,
    request::StrictJson,
    response::{ApiError, rendered},
    route::{Access::Identity, Call, Route, route},
};

pub(crate) fn get_route() -> Route {
    route!(GET MANAGEMENT, Identity, "GET_MANAGEMENT", get,
        "getServerMode", Operations, "Returns whether the server is in read-only mode",
        403 => "The caller is on another machine, and not in `management.actors`.")
    .response::<ManagementResponse>(200, "The mode.")
    .response_example("writing", json!({"read_only_mode": false}))
}

pub(crate) fn set_route() -> Route {
    route!(POST MANAGEMENT, Identity, "SET_MANAGEMENT", set,
        "setServerMode", Operations, "Switches read-only mode on or off",
        403 => "The caller is not in `management.actors`.",
        422 => "The body has an unknown field.")
        .text("The mode applies only to this server process, and is off when the process starts. Writes in progress are completed.")
        .body::<ManagementRequest>()
        .request_example("read-only", json!({"read_only_mode": true}))
        .response::<ManagementResponse>(200, "The new mode.")
        .response_example("read-only", json!({"read_only_mode": true}))
}

async fn get(State(api): State<Arc<Api>>) -> Result<Response, ApiError> {
    rendered(&ManagementResponse {
        read_only_mode: api.server_mode.read_only().is_on(),
    })
}

/// The requested mode.
#[derive(Deserialize, JsonSchema)]
#[serde(rename = "SetServerModeRequest", deny_unknown_fields)]
struct ManagementRequest {
    /// Whether to reject requests that could write.
    #[schemars(with = "LenientBoolean")]
    read_only_mode: bool,
}

async fn set(
    Call { api, caller }: Call,
    StrictJson(request): StrictJson<ManagementRequest>,
) -> Result<Response, ApiError> {
    let read_only_mode = request.read_only_mode;
    let details = json!({"read_only_mode": read_only_mode});
    caller.trail().set_details(details);
    api.server_mode.read_only().switch(read_only_mode);
    tracing::warn!(
        actor = caller.actor().as_str(),
        read_only_mode,
        "switched read-only mode"
    );
    rendered(&ManagementResponse { read_only_mode })
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ServerMode")]
struct ManagementResponse {
    /// Whether requests that could write get status 503.
    read_only_mode: bool,
}
