//! `GET /health` returns whether the server is healthy.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use keywright_core::ports::CredentialRepository;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::{sync::Mutex, time::timeout};

use crate::{
    Api,
    audit::AuditTrail,
    response::rendered_with,
    route::{Access::Open, NOT_AUDITED, Route, route},
};

pub(crate) fn route() -> Route {
    let down = "The database does not respond within five seconds, its file was moved, or the database or the audit trail can't be written.";
    route!(GET "/health", Open, NOT_AUDITED, handler,
        "getHealth", Operations, "Returns whether the server is healthy")
    .response::<HealthBody>(200, "The server is healthy.")
    .response_example("up", serde_json::json!({"status": "UP"}))
    .response::<HealthBody>(503, down)
    .response_example("down", serde_json::json!({"status": "DOWN"}))
}

/// The health of a server.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "HealthResponse")]
struct HealthBody {
    /// UP or DOWN.
    status: HealthStatus,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
enum HealthStatus {
    Up,
    Down,
}

async fn handler(State(api): State<Arc<Api>>) -> Response {
    api.health.response().await
}

/// Checks whether the server is healthy, with one ping at a time, so that unauthenticated requests use at most one database
/// connection.
pub struct HealthCheck {
    repository: Arc<dyn CredentialRepository>,
    audit: Option<Arc<AuditTrail>>,
    /// When the last ping completed, and whether the database responded. Locked while pinging.
    last_ping: Mutex<Option<(Instant, bool)>>,
}

impl HealthCheck {
    /// Creates the check. The server is healthy if the repository responds, unless a failing audit trail causes it to refuse
    /// requests.
    pub fn new(
        repository: Arc<dyn CredentialRepository>,
        audit: Option<Arc<AuditTrail>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            repository,
            audit,
            last_ping: Mutex::default(),
        })
    }

    /// Returns the response. Only the log and the metrics contain the reason for DOWN.
    pub(crate) async fn response(&self) -> Response {
        let can_begin = !self
            .audit
            .as_deref()
            .is_some_and(AuditTrail::stops_requests);
        let is_up = can_begin && timeout(PING_DEADLINE, self.ping()).await == Ok(true);
        let (code, status) = if is_up {
            (StatusCode::OK, HealthStatus::Up)
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, HealthStatus::Down)
        };
        rendered_with(code, &HealthBody { status }).into_response()
    }

    /// Waits for a ping that completes after this call, and returns its result.
    async fn ping(&self) -> bool {
        let called = Instant::now();
        let mut last_ping = self.last_ping.lock().await;
        match *last_ping {
            Some((completed, responded)) if completed >= called => responded,
            _ => {
                let responded = self.repository.ping().await.is_ok();
                *last_ping = Some((Instant::now(), responded));
                responded
            }
        }
    }
}

/// Maximum time for the database to respond.
const PING_DEADLINE: Duration = Duration::from_secs(5);
