//! The service of the management listener, for monitoring.

use std::sync::Arc;

use crate::{
    routes::operations::{health::HealthCheck, no_such_path},
    telemetry::or_panicked,
};
use async_trait::async_trait;
use axum::{
    Router,
    http::{HeaderValue, StatusCode, header::CONTENT_TYPE},
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
    routing::get,
};

/// The metrics of the server.
#[async_trait]
pub trait Measurements: Send + Sync {
    /// Returns all current metrics in the Prometheus text format, version 0.0.4.
    async fn text(&self) -> String;
}

/// Returns the service of the management address: health and metrics. It does not authenticate callers, so its responses
/// contain no data of any user.
pub fn management_router(health: Arc<HealthCheck>, measurements: Arc<dyn Measurements>) -> Router {
    Router::new()
        .route("/health", get(async move || health.answer().await))
        .route(
            "/metrics",
            get(async move || metrics(measurements.text().await)),
        )
        .fallback(async || no_such_path())
        .method_not_allowed_fallback(async || StatusCode::NOT_FOUND)
        .layer(from_fn(async |request, next: Next| {
            or_panicked(next.run(request)).await
        }))
}

fn metrics(text: String) -> Response {
    let mut response = text.into_response();
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    response
}

/// The media type of the Prometheus text format.
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
