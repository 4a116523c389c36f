//! What is told of each request: its id, a span around all that is logged on its behalf, and one line when it ends.

use std::{any::Any, time::Instant};

use axum::{
    extract::{MatchedPath, Request},
    http::{
        HeaderName, HeaderValue, StatusCode,
        header::{
            CACHE_CONTROL, PRAGMA, SERVER, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
            X_FRAME_OPTIONS,
        },
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use tracing::{Instrument, field::Empty};
use uuid::Uuid;

use crate::{
    measure::{MeasuredRequest, known_method},
    response::ApiFailure,
};

/// The id of a request, in its extensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestId(pub(crate) Uuid);

/// Runs a request in a span with a fresh id, logs how it ended, and sets the headers that every response has: the id, the
/// product, and those that keep responses out of caches and browsers from guessing.
///
/// The line names the route, never the path or the query, which hold names of credentials, and a method only if it is a
/// known one: others are as long as callers like.
pub(crate) async fn observe(mut request: Request, next: Next) -> Response {
    let id = Uuid::new_v4();
    request.extensions_mut().insert(RequestId(id));
    let request_id = id.hyphenated().to_string();
    let span = tracing::info_span!(
        target: "keywright_api::request",
        "request",
        request_id = request_id.as_str(),
        actor = Empty,
    );
    let started = Instant::now();
    let method = known_method(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let measured = MeasuredRequest::begin(route.as_ref(), method);
    let answered = async {
        let response = next.run(request).await;
        measured.answered(response.status());
        tracing::info!(
            target: "keywright_api::access",
            {
                http.method = method,
                http.route = route.as_ref().map_or("unknown", MatchedPath::as_str),
                http.status = response.status().as_u16(),
                duration_ms = started.elapsed().as_secs_f64() * 1_000.0,
            },
            "answered"
        );
        response
    };
    let mut response = answered.instrument(span).await;
    let headers = response.headers_mut();
    for (name, value) in EVERY_RESPONSE {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(request_id) = HeaderValue::from_str(&request_id) {
        headers.insert(REQUEST_ID, request_id);
    }
    response
}

/// Answers for a handler that panicked. What it said is not logged here: it could hold anything.
pub(crate) fn panicked(_payload: Box<dyn Any + Send + 'static>) -> Response {
    tracing::error!("a handler panicked");
    ApiFailure::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the server failed to answer",
    )
    .into_response()
}

/// The response header that carries the request's id.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The headers of every response, except its id.
const EVERY_RESPONSE: [(HeaderName, &str); 6] = [
    (CACHE_CONTROL, "no-store"),
    (PRAGMA, "no-cache"),
    (SERVER, concat!("keywright/", env!("CARGO_PKG_VERSION"))),
    // A year. Without `includeSubDomains`, because the server can't know who serves those.
    (STRICT_TRANSPORT_SECURITY, "max-age=31536000"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
];
