//! `GET /health`: whether the server can do its work.

use std::{sync::Arc, time::Duration};

use axum::{extract::State, http::StatusCode, response::Response};
use keywright_core::ports::CredentialRepository;

use schemars::JsonSchema;

use crate::{
    Api,
    description::{Described, Tag},
    response::json,
};

/// Whether a server is well.
#[derive(JsonSchema)]
#[schemars(rename = "HealthAnswer")]
struct HealthBody {
    /// UP or DOWN.
    #[expect(
        dead_code,
        reason = "the answers are constants, and this is what is said of them"
    )]
    status: HealthStatus,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "UPPERCASE", inline)]
#[expect(
    dead_code,
    reason = "the answers are constants, and this is what is said of them"
)]
enum HealthStatus {
    Up,
    Down,
}

/// What the description says of it.
pub(crate) fn describe() -> Described {
    let down = "The database has given no sign of life for five seconds.";
    Described::new(
        "getHealth",
        Tag::Operations,
        "Tells whether the server can do its work",
    )
    .answer::<HealthBody>(200, "It can.")
    .answered("up", serde_json::json!({"status": "UP"}))
    .answer::<HealthBody>(503, down)
    .answered("down", serde_json::json!({"status": "DOWN"}))
}

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
