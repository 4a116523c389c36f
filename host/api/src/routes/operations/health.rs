//! `GET /health`: whether the server is healthy.

use std::{sync::Arc, time::Duration};

use axum::{extract::State, http::StatusCode, response::Response};
use keywright_core::ports::CredentialRepository;

use schemars::JsonSchema;

use crate::{
    Api,
    audit::AuditTrail,
    description::{Described, Tag},
    response::json,
};

/// The health of a server.
#[derive(JsonSchema)]
#[schemars(rename = "HealthAnswer")]
struct HealthBody {
    /// UP or DOWN.
    #[expect(
        dead_code,
        reason = "only used for its schema; the responses are constants"
    )]
    status: HealthStatus,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "UPPERCASE", inline)]
#[expect(
    dead_code,
    reason = "only used for its schema; the responses are constants"
)]
enum HealthStatus {
    Up,
    Down,
}

/// Describes the operation.
pub(crate) fn describe() -> Described {
    let down = "The database has not responded for five seconds, or the database or the audit trail can't be written.";
    Described::new(
        "getHealth",
        Tag::Operations,
        "Returns whether the server is healthy",
    )
    .answer::<HealthBody>(200, "The server is healthy.")
    .answered("up", serde_json::json!({"status": "UP"}))
    .answer::<HealthBody>(503, down)
    .answered("down", serde_json::json!({"status": "DOWN"}))
}

/// Responds with UP if the server is healthy, and with DOWN otherwise.
pub(crate) async fn handler(State(api): State<Arc<Api>>) -> Response {
    let repository = api.credentials.repository.as_ref();
    answer(repository, api.audit.as_deref()).await
}

/// Returns the response for a repository and audit trail. Logs and metrics have the reason, the response does not.
pub(crate) async fn answer(
    repository: &dyn CredentialRepository,
    audit: Option<&AuditTrail>,
) -> Response {
    let can_begin = !audit.is_some_and(AuditTrail::stops_requests);
    let can_answer = async {
        let ping = tokio::time::timeout(PING_DEADLINE, repository.ping()).await;
        matches!(ping, Ok(Ok(())))
    };
    if can_begin && can_answer.await {
        return json(StatusCode::OK, r#"{"status":"UP"}"#.to_owned());
    }
    json(
        StatusCode::SERVICE_UNAVAILABLE,
        r#"{"status":"DOWN"}"#.to_owned(),
    )
}

/// Maximum time for the database to respond.
const PING_DEADLINE: Duration = Duration::from_secs(5);
