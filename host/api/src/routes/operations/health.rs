//! `GET /health`: whether the server can do its work.

use std::{sync::Arc, time::Duration};

use axum::{extract::State, http::StatusCode, response::Response};
use keywright_core::ports::CredentialRepository;

use crate::{Api, response::json};

/// Answers UP when the database gives a sign of life in time, and DOWN otherwise.
pub(crate) async fn handler(State(api): State<Arc<Api>>) -> Response {
    answer(api.credentials.repository.as_ref()).await
}

/// The answer for a server with this repository.
pub(crate) async fn answer(repository: &dyn CredentialRepository) -> Response {
    match tokio::time::timeout(PING_DEADLINE, repository.ping()).await {
        Ok(Ok(())) => json(StatusCode::OK, r#"{"status":"UP"}"#.to_owned()),
        Ok(Err(_)) | Err(_) => json(
            StatusCode::SERVICE_UNAVAILABLE,
            r#"{"status":"DOWN"}"#.to_owned(),
        ),
    }
}

/// How long the database may take to give a sign of life.
const PING_DEADLINE: Duration = Duration::from_secs(5);
