//! Metrics and the log of requests, and the response to a request whose handler panicked.
//!
//! Callers can't add values of labels: they are mounted routes, known methods, statuses, and reasons defined by this server.

use std::{panic::AssertUnwindSafe, sync::OnceLock, time::Duration};

use axum::{
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use keywright_core::{authorization::Caller, log::duration_ms};
use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};
use parking_lot::RwLock;

use crate::response::ApiError;

/// The metric of the time until the response to a request starts.
pub const REQUEST_DURATION: &str = "keywright_http_request_duration_seconds";

const REQUESTS: &str = "keywright_http_requests_total";
const REQUESTS_IN_PROGRESS: &str = "keywright_http_requests_in_progress";
const REQUESTS_REFUSED: &str = "keywright_http_requests_refused_total";
const AUTHENTICATION_FAILURES: &str = "keywright_authentication_failures_total";

/// Registers the descriptions of the metrics of requests.
pub fn describe_metrics() {
    describe_counter!(
        REQUESTS,
        "Requests with a response, by route, method and status."
    );
    describe_histogram!(
        REQUEST_DURATION,
        "Time until the response started, by route and method, in seconds."
    );
    describe_gauge!(REQUESTS_IN_PROGRESS, "Requests in progress.");
    describe_counter!(
        REQUESTS_REFUSED,
        "Authenticated requests that exceeded a limit, by reason."
    );
    for reason in [ACTOR_REQUESTS, ACTOR_RATE, REQUESTS_IN_TOTAL] {
        counter!(REQUESTS_REFUSED, "reason" => reason).increment(0);
    }
    describe_counter!(
        AUTHENTICATION_FAILURES,
        "Requests that failed authentication, by mechanism and reason."
    );
}

/// Counts a request that failed authentication.
pub(crate) fn authentication_failed(mechanism: &'static str, reason: &'static str) {
    counter!(AUTHENTICATION_FAILURES, "mechanism" => mechanism, "reason" => reason).increment(1);
}

/// The actor has reached its limit of requests in progress.
pub(crate) const ACTOR_REQUESTS: &str = "actor_requests";
/// The actor exceeds its request rate.
pub(crate) const ACTOR_RATE: &str = "actor_rate";
/// The server has reached its limit of requests in progress.
pub(crate) const REQUESTS_IN_TOTAL: &str = "requests";

/// Counts an authenticated request that is refused before it is handled.
pub(crate) fn request_refused(reason: &'static str) {
    counter!(REQUESTS_REFUSED, "reason" => reason).increment(1);
}

/// The metrics of one path. A series is created by its first request; later requests don't look up labels again.
pub(crate) struct RouteMeasurements {
    route: String,
    methods: [MethodMeasurements; METHODS.len()],
}

#[derive(Default)]
struct MethodMeasurements {
    duration: OnceLock<Histogram>,
    responses: RwLock<Vec<(StatusCode, Counter)>>,
}

impl RouteMeasurements {
    /// Creates the metrics of a mounted path, or of all unknown paths if `route` is `None`.
    pub(crate) fn new(route: Option<&str>) -> Self {
        Self {
            route: route.unwrap_or(UNMATCHED).to_owned(),
            methods: <[_; METHODS.len()]>::default(),
        }
    }

    /// Counts a response. A request is not counted if its client disconnects before the response.
    pub(crate) fn responded(&self, method: &'static str, status: StatusCode, duration: Duration) {
        let index = METHODS.iter().position(|known| *known == method);
        let Some(measurements) = index.and_then(|index| self.methods.get(index)) else {
            return;
        };
        measurements
            .duration
            .get_or_init(
                || histogram!(REQUEST_DURATION, "route" => self.route.clone(), "method" => method),
            )
            .record(duration);
        measurements.count(status, || {
            let status = status.as_str().to_owned();
            counter!(REQUESTS, "route" => self.route.clone(), "method" => method, "status" => status)
        });
    }
}

impl MethodMeasurements {
    fn count(&self, status: StatusCode, counter: impl FnOnce() -> Counter) {
        let responses = self.responses.read();
        if let Some((_, counter)) = responses.iter().find(|(known, _)| *known == status) {
            counter.increment(1);
            return;
        }
        drop(responses);
        let counter = counter();
        counter.increment(1);
        // If two threads add the same status, both entries are the same counter.
        self.responses.write().push((status, counter));
    }
}

pub(crate) struct RequestsInProgress(Gauge);

/// Counts as a request in progress until dropped.
pub(crate) struct RequestInProgress<'a>(&'a Gauge);

impl RequestsInProgress {
    pub(crate) fn new() -> Self {
        Self(gauge!(REQUESTS_IN_PROGRESS))
    }

    pub(crate) fn begin(&self) -> RequestInProgress<'_> {
        self.0.increment(1);
        RequestInProgress(&self.0)
    }
}

impl Drop for RequestInProgress<'_> {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

/// The route label of requests for unknown paths.
const UNMATCHED: &str = "unmatched";

/// Returns the name of a known method, or one label for all others: callers can invent any number of methods.
pub(crate) fn known_method(method: &Method) -> &'static str {
    let mut known = METHODS.into_iter();
    known
        .find(|known| *known == method.as_str())
        .unwrap_or(OTHER)
}

const METHODS: [&str; 8] = [
    "GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS", OTHER,
];

const OTHER: &str = "other";

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
            duration_ms = duration_ms(duration),
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

/// The target of the access log, which has one line per request.
pub const ACCESS_LOG: &str = "keywright_api::access";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_methods_have_the_label_other() {
        for (method, name) in [
            ("GET", "GET"),
            ("OPTIONS", "OPTIONS"),
            ("get", "other"),
            ("TRACE", "other"),
            ("X".repeat(1_000).as_str(), "other"),
        ] {
            assert_eq!(known_method(&method.parse().unwrap()), name);
        }
    }
}
