//! Logs each request, and sets the header fields of every response.

use std::{panic::AssertUnwindSafe, time::Duration};

use axum::{
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode,
        header::{
            CACHE_CONTROL, PRAGMA, SERVER, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
            X_FRAME_OPTIONS,
        },
    },
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use keywright_core::authorization::Caller;

use crate::response::ApiError;

/// Logs the response to a request. The line contains the route instead of the path and query, because those contain names of
/// credentials. Unknown methods have the label `other`, because methods can have any length.
pub(crate) fn log_response(
    id: &str,
    caller: Option<&Caller>,
    method: &'static str,
    route: Option<&str>,
    status: StatusCode,
    duration: Duration,
) {
    tracing::info!(
        target: ACCESS_LOG,
        {
            request_id = id,
            actor = caller.map(|caller| caller.actor().as_str()),
            http.method = method,
            http.route = route.unwrap_or("unknown"),
            http.status = status.as_u16(),
            duration_ms = (duration.as_secs_f64() * 1_000_000.0).round() / 1_000.0,
        },
        "responded"
    );
}

/// Returns the response of a handler, or a failure if the handler panics.
pub(crate) async fn or_panicked(responding: impl Future<Output = Response>) -> Response {
    let responding = AssertUnwindSafe(responding).catch_unwind();
    responding.await.unwrap_or_else(|_payload| panicked())
}

/// Returns the response for a handler that panicked. The panic message is not logged here, because it could contain
/// any data.
fn panicked() -> Response {
    tracing::error!("a handler panicked");
    ApiError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the server could not handle the request",
    )
    .into_response()
}

/// Sets the header fields of every response: the request's id, the product, and fields that restrict caches and browsers.
pub(crate) fn set_headers_of_every_response(headers: &mut HeaderMap, id: &str) {
    for (name, value) in EVERY_RESPONSE {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, id);
    }
}

/// The target of the access log, which has one line per request.
pub const ACCESS_LOG: &str = "keywright_api::access";

/// The response header that carries the request's id.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The header fields of every response, except the request's id.
const EVERY_RESPONSE: [(HeaderName, &str); 6] = [
    (CACHE_CONTROL, "no-store"),
    (PRAGMA, "no-cache"),
    (SERVER, concat!("keywright/", env!("CARGO_PKG_VERSION"))),
    // A year. Without `includeSubDomains`, because other servers may serve the subdomains.
    (STRICT_TRANSPORT_SECURITY, "max-age=31536000"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
];
