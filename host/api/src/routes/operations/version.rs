//! `GET /version`: the level of the API.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use serde::Serialize;

use crate::{
    Api,
    response::{ApiFailure, rendered},
};

#[derive(Serialize)]
struct VersionResponse<'a> {
    version: &'a str,
}

/// Answers with the level of the API, which clients compare.
pub(crate) async fn handler(State(api): State<Arc<Api>>) -> Result<Response, ApiFailure> {
    rendered(&VersionResponse {
        version: &api.information.api_level,
    })
}
