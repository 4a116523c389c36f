//! `GET /health`: whether the server can do its work.

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
    let down = "The database has given no sign of life for five seconds, or the database or the audit trail can't be written.";
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

/// Responds with UP if the server can do its work, and with DOWN otherwise.
pub(crate) async fn handler(State(api): State<Arc<Api>>) -> Response {
    let repository = api.credentials.repository.as_ref();
    answer(repository, api.audit.as_deref()).await
}

/// The response for a server with this repository and audit trail. The log and the measurements have the reason, the response does not.
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

/// How long the database may take to give a sign of life.
const PING_DEADLINE: Duration = Duration::from_secs(5);
