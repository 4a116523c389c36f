//! The audit trail: who asked for what, of which resource, and how it ended; never a value.
//!
//! Each request of a known caller leaves an event for each resource that it touched, or one if it touched none: it is an
//! [`AuditedRequest`] from its authentication to its response. What it touched stands in the caller's
//! [`Trail`](keywright_core::authorization::Trail), into which use cases write as they ask for permits; the action is told
//! by `action.rs`, the one table of routes. An endpoint with two actions says which in the trail.
//!
//! The events are written before the response leaves, but for those of requests that are not admitted: they touched
//! nothing. Where they can't be, the response is withheld, and until the sink
//! works again, requests are refused before they touch anything (or go on, by [`OnAuditFailure::Continue`]). A request that
//! is given up in the middle, because its client has gone, leaves its events all the same.
//!
//! What the server does to credentials by itself stands there too: `retention.rs`.
//!
//! To add an endpoint: add it to the table in `action.rs`. To add a form: a file beside `cef.rs`, and a case in
//! [`AuditFormat`]. To add a sink: implement [`AuditSink`] in the server.

mod action;
mod cef;
mod event;
mod json;
mod request;
mod retention;
mod sink;
mod source;
mod trail;

use std::{sync::Arc, time::Duration};

use axum::{
    extract::Request,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use keywright_core::authorization::Caller;

pub(crate) use action::told;
pub use event::AuditFormat;
pub(crate) use event::granted;
pub use sink::{AppendFailed, AuditSink};
pub use trail::{AuditSettings, AuditTrail, OnAuditFailure};

use crate::{pipeline::RequestContext, request::FormlessTarget, response::ApiFailure};
use event::{Observed, REQUEST_BYTES_MAX, cut, lines};
use trail::Unwritten;

/// A request that leaves its events in the audit trail, unless it is one that is not audited.
pub(crate) struct AuditedRequest(Option<Pending>);

/// A request that is to be audited.
struct Pending {
    trail: Arc<AuditTrail>,
    caller: Arc<Caller>,
    observed: Observed,
    /// Whether it may have touched something, and its events are not in the trail.
    is_open: bool,
}

impl AuditedRequest {
    /// Begins to audit a request, before it touches anything.
    ///
    /// # Errors
    /// The response if events can't be written: the request must not begin, and leaves none.
    pub(crate) fn begin(
        trail: Option<&Arc<AuditTrail>>,
        context: RequestContext<'_>,
        caller: &Arc<Caller>,
        request: &Request,
    ) -> impl Future<Output = Result<Self, Response>> + Send + use<> {
        let pending = trail.and_then(|trail| Pending::new(trail, context, caller, request));
        async move {
            if let Some(pending) = &pending
                && pending.trail.ready().await.is_err()
            {
                return Err(refused());
            }
            Ok(Self(pending.map(Pending::begun)))
        }
    }

    /// Writes what the request touched, before its response leaves. Returns the response, or one in its place if the events
    /// could not be written.
    pub(crate) async fn finish(self, response: Response) -> Response {
        let Some(pending) = self.0 else {
            return response;
        };
        match pending.finish(response.status()).await {
            Ok(()) => response,
            Err(Unwritten) => ApiFailure::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the request was carried out, but its answer is withheld: the audit trail could not be written",
            )
            .into_response(),
        }
    }

    /// Ends a request that touched nothing, and whose response need not wait.
    pub(crate) fn finish_later(self, status: StatusCode) {
        if let Some(mut pending) = self.0 {
            pending.is_open = false;
            let (lines, count) = pending.lines(status.as_u16());
            pending.trail.write_later(&lines, count);
        }
    }
}

impl Pending {
    /// A request, unless it is one that is not audited.
    fn new(
        trail: &Arc<AuditTrail>,
        context: RequestContext<'_>,
        caller: &Arc<Caller>,
        request: &Request,
    ) -> Option<Self> {
        let route = context.route.map(|route| route.path.as_str());
        let action = action::action(request.method(), route)?;
        let peer = context.connection.map(|connection| connection.peer);
        let target = request.extensions().get::<FormlessTarget>();
        let target = target.map_or(request.uri(), |target| &target.0);
        let observed = Observed {
            time: trail.clock.now(),
            request_id: Some(context.id),
            method: cut(request.method().as_str(), METHOD_BYTES_MAX),
            path: cut(target.path(), REQUEST_BYTES_MAX),
            request: request::shown(target),
            source: peer.map(|peer| {
                source::source(peer, request.headers(), &trail.settings.trusted_proxies)
            }),
            peer,
            action,
        };
        Some(Self {
            trail: Arc::clone(trail),
            caller: Arc::clone(caller),
            observed,
            is_open: false,
        })
    }

    /// From now on, it may touch something.
    fn begun(mut self) -> Self {
        self.is_open = true;
        self
    }

    async fn finish(mut self, status: StatusCode) -> Result<(), Unwritten> {
        self.is_open = false;
        let goes_on = self.trail.settings.on_failure == OnAuditFailure::Continue;
        let (lines, count) = self.lines(status.as_u16());
        let outcome = if goes_on && self.trail.is_failing() {
            // To wait for a sink that is known not to answer would make each request as slow as the longest wait.
            self.trail.write_later(&lines, count);
            Err(Unwritten)
        } else {
            self.trail.write(&lines, count).await
        };
        if outcome.is_err() && goes_on {
            tracing::error!(
                audit.events = count,
                "the request goes on without its audit events being written"
            );
            return Ok(());
        }
        outcome
    }

    fn lines(&self, status: u16) -> (Vec<u8>, u64) {
        let settings = &self.trail.settings;
        lines(
            &self.observed,
            &self.caller,
            status,
            &settings.host,
            settings.format,
        )
    }
}

impl Drop for Pending {
    /// Its client has gone, or the server ends: what was touched so far may have been changed.
    fn drop(&mut self) {
        if self.is_open {
            let (lines, count) = self.lines(STATUS_ABANDONED);
            self.trail.write_later(&lines, count);
        }
    }
}

/// The answer for a request that must not begin: it touches nothing, and leaves no event.
fn refused() -> Response {
    ApiFailure::unavailable(
        "the audit trail can't be written at present, so nothing is done",
        RETRY_AFTER,
    )
    .into_response()
}

/// The status of a request whose client did not wait for the answer. It is no status of HTTP, but widely used for this.
const STATUS_ABANDONED: u16 = 499;

/// The longest method, in bytes.
const METHOD_BYTES_MAX: usize = 32;

/// When a request may be tried again that was refused because the trail can't be written.
const RETRY_AFTER: Duration = Duration::from_secs(5);
