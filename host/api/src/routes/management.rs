//! `/management`: reads and switches the mode of the server. `ServerMode::refusal` authorizes the caller beforehand.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use keywright_core::authorization::Caller;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::{
    Api,
    description::{Description, LenientBoolean, Tag},
    request::{BodyError, RequestObject, parse_json_body},
    response::{ApiError, Endpoint, rendered},
    route::{Access::Identity, Route, route},
    server_mode::MANAGEMENT,
};

pub(crate) fn get_route() -> Route {
    route!(GET MANAGEMENT, Identity, "GET_MANAGEMENT", get, describe_get)
}

pub(crate) fn set_route() -> Route {
    route!(POST MANAGEMENT, Identity, "SET_MANAGEMENT", set, describe_set)
}

fn describe_get() -> Description {
    Description::new(
        "getServerMode",
        Tag::Operations,
        "Returns whether the server is in read-only mode",
    )
    .response::<ManagementResponse>(200, "The mode.")
    .response_example("writing", json!({"read_only_mode": false}))
    .error(403, MAY_NOT_READ_MODE)
}

async fn get(State(api): State<Arc<Api>>) -> Result<Response, ApiError> {
    mode(api.server_mode.read_only().is_on())
}

/// The requested mode.
#[derive(JsonSchema)]
#[schemars(rename = "SetServerModeRequest", deny_unknown_fields)]
struct ManagementRequest {
    /// Whether to reject requests that could write.
    #[schemars(rename = "read_only_mode", with = "LenientBoolean")]
    is_read_only: bool,
}

impl ManagementRequest {
    fn read(mut fields: RequestObject<'_>) -> Result<Self, BodyError> {
        let is_read_only = fields.take_boolean("read_only_mode")?;
        fields.finish()?;
        Ok(Self {
            is_read_only: is_read_only.ok_or(BodyError::FieldMissing("read_only_mode"))?,
        })
    }
}

fn describe_set() -> Description {
    Description::new("setServerMode", Tag::Operations, "Switches read-only mode on or off")
        .text("The mode applies only to this server process, and is off when the process starts. Writes in progress are completed.")
        .body::<ManagementRequest>()
        .request_example("read-only", json!({"read_only_mode": true}))
        .response::<ManagementResponse>(200, "The new mode.")
        .response_example("read-only", json!({"read_only_mode": true}))
        .error(403, MAY_NOT_SWITCH_MODE)
        .error(422, "The body has an unknown field.")
}

async fn set(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request,
) -> Result<Response, ApiError> {
    let read = ManagementRequest::read;
    let request = parse_json_body(request, &api.limits, Endpoint::Other, read).await?;
    let details = json!({"read_only_mode": request.is_read_only});
    caller.trail().set_details(details);
    api.server_mode.read_only().switch(request.is_read_only);
    tracing::warn!(
        actor = caller.actor().as_str(),
        read_only_mode = request.is_read_only,
        "switched the mode"
    );
    mode(request.is_read_only)
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ServerMode")]
struct ManagementResponse {
    /// Whether requests that could write get status 503.
    read_only_mode: bool,
}

fn mode(is_on: bool) -> Result<Response, ApiError> {
    rendered(&ManagementResponse {
        read_only_mode: is_on,
    })
}

/// The condition of status 403 when reading the mode.
const MAY_NOT_READ_MODE: &str = "The caller is on another machine, and not in `management.actors`.";

/// The condition of status 403 when switching the mode.
const MAY_NOT_SWITCH_MODE: &str = "The caller is not in `management.actors`.";
