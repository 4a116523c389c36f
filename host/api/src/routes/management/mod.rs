//! `/management`. Who may use it is decided before, by `server_mode::admit`.

pub(crate) mod get;
pub(crate) mod set;

use axum::response::Response;
use serde::Serialize;

use crate::response::{ApiFailure, rendered};

#[derive(Serialize)]
struct ManagementResponse {
    read_only_mode: bool,
}

fn mode(is_on: bool) -> Result<Response, ApiFailure> {
    rendered(&ManagementResponse {
        read_only_mode: is_on,
    })
}
