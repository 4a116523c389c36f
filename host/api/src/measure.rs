//! What is measured of requests. Every label is one of a set that no caller can add to: routes as they are mounted, known
//! methods, statuses and reasons of this server's own.

use std::time::Instant;

use axum::{
    extract::MatchedPath,
    http::{Method, StatusCode},
};
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

/// How long it took until a request's answer began.
pub const REQUEST_DURATION: &str = "keywright_http_request_duration_seconds";

const REQUESTS: &str = "keywright_http_requests_total";
const REQUESTS_IN_PROGRESS: &str = "keywright_http_requests_in_progress";
const REQUESTS_REFUSED: &str = "keywright_http_requests_refused_total";
const AUTHENTICATION_FAILURES: &str = "keywright_authentication_failures_total";

/// Tells the process's recorder what each measurement of requests means.
pub fn describe_metrics() {
    describe_counter!(
        REQUESTS,
        "Requests that were answered, by route, method and status."
    );
    describe_histogram!(
        REQUEST_DURATION,
        "How long it took until the answers to requests began, by route and method, in seconds."
    );
    describe_gauge!(
        REQUESTS_IN_PROGRESS,
        "Requests that have begun and are not answered yet."
    );
    describe_counter!(
        REQUESTS_REFUSED,
        "Requests that were refused because too many were made or under way, by reason."
    );
    for reason in [
        RefusedFor::ActorPlaces,
        RefusedFor::ActorRate,
        RefusedFor::Places,
    ] {
        counter!(REQUESTS_REFUSED, "reason" => reason.word()).increment(0);
    }
    describe_counter!(
        AUTHENTICATION_FAILURES,
        "Requests whose callers did not prove who they are, by mechanism and reason."
    );
}

/// Counts a request whose caller did not prove who it is. The reason is one of the mechanism's own words, never anything
/// that the caller sent.
pub(crate) fn authentication_failed(mechanism: &'static str, reason: &'static str) {
    counter!(AUTHENTICATION_FAILURES, "mechanism" => mechanism, "reason" => reason).increment(1);
}

/// Why a request of a known actor is refused before anything is done for it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RefusedFor {
    /// The actor has as many requests under way as it may.
    ActorPlaces,
    /// The actor asks more often than it may.
    ActorRate,
    /// As many requests are under way as the server takes.
    Places,
}

impl RefusedFor {
    fn word(self) -> &'static str {
        match self {
            Self::ActorPlaces => "actor_places",
            Self::ActorRate => "actor_rate",
            Self::Places => "places",
        }
    }
}

/// Counts a request that is refused.
pub(crate) fn request_refused(reason: RefusedFor) {
    counter!(REQUESTS_REFUSED, "reason" => reason.word()).increment(1);
}

/// A request that is in progress until this is dropped.
pub(crate) struct MeasuredRequest {
    begun: Instant,
    route: String,
    method: &'static str,
}

impl MeasuredRequest {
    /// Begins to measure a request with this method, one that is known here.
    pub(crate) fn begin(route: Option<&MatchedPath>, method: &'static str) -> Self {
        gauge!(REQUESTS_IN_PROGRESS).increment(1);
        Self {
            begun: Instant::now(),
            route: route.map_or(UNMATCHED, MatchedPath::as_str).to_owned(),
            method,
        }
    }

    /// Counts the request as answered. One whose client goes away before is not counted.
    pub(crate) fn answered(&self, status: StatusCode) {
        let duration = self.begun.elapsed();
        histogram!(REQUEST_DURATION, "route" => self.route.clone(), "method" => self.method)
            .record(duration);
        let status = status.as_str().to_owned();
        counter!(
            REQUESTS,
            "route" => self.route.clone(), "method" => self.method, "status" => status
        )
        .increment(1);
    }
}

impl Drop for MeasuredRequest {
    fn drop(&mut self) {
        gauge!(REQUESTS_IN_PROGRESS).decrement(1);
    }
}

/// The route of requests for paths that are not there.
const UNMATCHED: &str = "unmatched";

/// A method's name, or one word for all that are unknown here: callers can make up as many as they like.
pub(crate) fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::DELETE => "DELETE",
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        Method::POST => "POST",
        Method::PUT => "PUT",
        _ => "other",
    }
}
