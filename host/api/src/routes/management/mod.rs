//! `/management`. Who may use it is decided before, by `server_mode::admit`.

pub(crate) mod get;
pub(crate) mod set;

use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use crate::response::{ApiFailure, rendered};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ServerMode")]
struct ManagementResponse {
    /// Whether whatever could write is refused with 503.
    read_only_mode: bool,
}

fn mode(is_on: bool) -> Result<Response, ApiFailure> {
    rendered(&ManagementResponse {
        read_only_mode: is_on,
    })
}

/// Who may not read the mode.
const NOT_A_MANAGER: &str =
    "The caller comes from another machine, and is none of those who may manage the server.";

/// Who may not switch it.
const NOT_A_SWITCHER: &str = "The caller is not among the actors in `management.actors`.";
