//! `GET /management`: whether the server is in read-only mode.

use std::sync::Arc;

use axum::{extract::State, response::Response};

use super::mode;
use crate::{Api, response::ApiFailure};

/// Answers with the mode.
pub(crate) async fn handler(State(api): State<Arc<Api>>) -> Result<Response, ApiFailure> {
    mode(api.server_mode.read_only().is_on())
}
