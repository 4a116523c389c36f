//! What the second listener serves: for those who watch the server, not for those who use it.

use std::sync::Arc;

use async_trait::async_trait;
use axum::{
    Router,
    extract::State,
    http::{HeaderValue, StatusCode, header::CONTENT_TYPE},
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
    routing::get,
};
use keywright_core::ports::CredentialRepository;

use crate::{
    audit::AuditTrail,
    routes::operations::{self, no_such_path},
    telemetry::or_panicked,
};

/// What the management address needs.
#[derive(Clone)]
pub struct Management {
    /// What must answer for the server to be well.
    pub repository: Arc<dyn CredentialRepository>,
    /// What must be written, where the configuration has requests stop without it.
    pub audit: Option<Arc<AuditTrail>>,
    /// What the server has measured.
    pub measurements: Arc<dyn Measurements>,
}

/// What the server has measured.
#[async_trait]
pub trait Measurements: Send + Sync {
    /// All of it as it is now, in the text format of Prometheus, version 0.0.4.
    async fn text(&self) -> String;
}

/// The service of the management address: whether the server is well, and what it has measured. It knows no callers, so it
/// tells of nothing that belongs to anybody.
pub fn management_router(management: Management) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .fallback(async || no_such_path())
        .method_not_allowed_fallback(async || StatusCode::NOT_FOUND)
        .with_state(management)
        .layer(from_fn(async |request, next: Next| {
            or_panicked(next.run(request)).await
        }))
}

async fn health(State(management): State<Management>) -> Response {
    operations::health::answer(management.repository.as_ref(), management.audit.as_deref()).await
}

async fn metrics(State(management): State<Management>) -> Response {
    let mut response = management.measurements.text().await.into_response();
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    response
}

/// The media type of the text format.
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
