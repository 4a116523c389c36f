//! `/management`. `server_mode::refusal` has authorized the caller.

pub(crate) mod get;
pub(crate) mod set;

use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use crate::response::{ApiFailure, rendered};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ServerMode")]
struct ManagementResponse {
    /// Whether requests that could write get status 503.
    read_only_mode: bool,
}

fn mode(is_on: bool) -> Result<Response, ApiFailure> {
    rendered(&ManagementResponse {
        read_only_mode: is_on,
    })
}

/// The condition of status 403 when reading the mode.
const NOT_A_MANAGER: &str = "The caller is on another machine, and not in `management.actors`.";

/// The condition of status 403 when switching the mode.
const NOT_A_SWITCHER: &str = "The caller is not in `management.actors`.";
