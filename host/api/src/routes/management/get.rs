//! `GET /management`: whether the server is in read-only mode.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use serde_json::json;

use super::{ManagementResponse, NOT_A_MANAGER, mode};
use crate::{
    Api,
    description::{Described, Tag},
    response::ApiFailure,
    route::{Access::Identity, Route, route},
    server_mode::MANAGEMENT,
};

/// The route.
pub(crate) fn route() -> Route {
    route!(GET MANAGEMENT, Identity, "GET_MANAGEMENT", handler, describe)
}

/// Describes the operation.
fn describe() -> Described {
    Described::new(
        "getServerMode",
        Tag::Operations,
        "Returns whether the server is in read-only mode",
    )
    .answer::<ManagementResponse>(200, "The mode.")
    .answered("writing", json!({"read_only_mode": false}))
    .fails(403, NOT_A_MANAGER)
}

/// Responds with the mode.
async fn handler(State(api): State<Arc<Api>>) -> Result<Response, ApiFailure> {
    mode(api.server_mode.read_only().is_on())
}
