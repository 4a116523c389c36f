//! The audit trail: the caller, the resource and the result of each access. The trail never contains a credential's value.
//!
//! An [`AuditedRequest`] covers a request of an authenticated caller, from its authentication to its response. It writes one
//! event per resource that the request accessed, or one event if it accessed no resource. Use cases record each access in
//! the caller's [`Trail`](keywright_core::authorization::Trail) when they check permissions. Each route declares
//! its action; an endpoint with two actions records the action of each request in that trail.
//!
//! The events are written before the response is sent, except for requests that are not admitted, because they access nothing. If
//! the events can't be written, the response is withheld. Until the sink works again, and while too many events are unwritten,
//! requests are refused before they access anything. With [`OnAuditFailure::Continue`], requests proceed instead. A request that
//! is cancelled because its client has disconnected is also audited.
//!
//! Changes that the server itself makes to credentials are also audited: see `retention.rs`.
//!
//! To add a format, add a variant of [`AuditFormat`] and its encoder in `event.rs`. To add a sink, implement [`AuditSink`] in
//! the server.

mod event;
mod request;
mod retention;
mod trail;
mod writer;

use std::{sync::Arc, time::Duration};

use axum::{
    extract::Request,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use keywright_core::authorization::Caller;

pub use event::AuditFormat;
pub(crate) use request::{granted, source};
pub use trail::{AuditSettings, AuditTrail, OnAuditFailure};
pub use writer::{AppendError, AuditSink};

use crate::{request::OriginalTarget, response::ApiError, route::RequestContext};
use request::{RequestFacts, lines, logged_target};
use writer::UnwrittenError;

/// The second actions of endpoints with two actions. The route declares the first.
pub(crate) mod actions {
    /// A search, at the path for reading.
    pub(crate) const FIND: &str = "FIND";
    /// A regeneration, at the path for generating.
    pub(crate) const REGENERATE: &str = "REGENERATE";
    /// Reading one certificate, at the path for listing all.
    pub(crate) const GET_CERTIFICATE: &str = "GET_CERTIFICATE";
}

/// A request whose events are written to the audit trail, unless its route is not audited.
pub(crate) struct AuditedRequest(Option<Pending>);

struct Pending {
    trail: Arc<AuditTrail>,
    caller: Arc<Caller>,
    facts: RequestFacts,
    /// Whether the request may have accessed something, and its events are not in the trail yet.
    is_open: bool,
}

impl AuditedRequest {
    /// Starts to audit a request, before it accesses anything.
    ///
    /// # Errors
    /// The response if events can't be written. The request must not be handled, and has no event.
    pub(crate) fn begin(
        trail: Option<&Arc<AuditTrail>>,
        context: RequestContext<'_>,
        caller: &Arc<Caller>,
        request: &Request,
    ) -> impl Future<Output = Result<Self, Response>> + Send + use<> {
        let mut pending = trail.and_then(|trail| Pending::new(trail, context, caller, request));
        async move {
            if let Some(pending) = &mut pending {
                pending.trail.ready().await.map_err(|UnwrittenError| {
                    let error =
                        "the audit trail can't be written at present; the request was not handled";
                    ApiError::unavailable(error, RETRY_AFTER).into_response()
                })?;
                pending.is_open = true;
            }
            Ok(Self(pending))
        }
    }

    /// Writes the events of the request before its response is sent. Returns the response, or a failure if the events could
    /// not be written.
    pub(crate) async fn finish(self, response: Response) -> Response {
        let Some(pending) = self.0 else {
            return response;
        };
        match pending.finish(response.status()).await {
            Ok(()) => response,
            Err(UnwrittenError) => ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the request was handled, but its response is withheld: the audit trail could not be written",
            )
            .into_response(),
        }
    }

    /// Queues the events of a request that accessed nothing. Its response need not wait for them.
    pub(crate) fn finish_later(self, status: StatusCode) {
        if let Some(mut pending) = self.0 {
            pending.is_open = false;
            let (lines, count) = pending.lines(status.as_u16());
            pending.trail.write_if_room(&lines, count);
        }
    }
}

impl Pending {
    /// Returns `None` if the request is not audited.
    fn new(
        trail: &Arc<AuditTrail>,
        context: RequestContext<'_>,
        caller: &Arc<Caller>,
        request: &Request,
    ) -> Option<Self> {
        let handler = context
            .route
            .and_then(|route| route.handler(request.method()));
        let action = handler.map_or(Some(UNKNOWN), |handler| handler.action)?;
        let target = request.extensions().get::<OriginalTarget>();
        let target = target.map_or(request.uri(), |target| &target.0);
        let facts = RequestFacts {
            time: trail.clock.now(),
            request_id: Some(context.id),
            method: request.method().clone(),
            request: logged_target(target),
            source: context.source,
            peer: context.connection.map(|connection| connection.peer),
            action,
        };
        Some(Self {
            trail: Arc::clone(trail),
            caller: Arc::clone(caller),
            facts,
            is_open: false,
        })
    }

    async fn finish(mut self, status: StatusCode) -> Result<(), UnwrittenError> {
        self.is_open = false;
        let continues = self.trail.settings.on_failure == OnAuditFailure::Continue;
        let (lines, count) = self.lines(status.as_u16());
        let outcome = if continues && self.trail.is_failing() {
            // Waiting for a failing sink would delay each request by the maximum write time.
            self.trail.write_later(&lines, count);
            Err(UnwrittenError)
        } else {
            self.trail.write(lines, count).await
        };
        if outcome.is_err() && continues {
            tracing::error!(
                audit.events = count,
                "continuing a request without its audit events"
            );
            return Ok(());
        }
        outcome
    }

    fn lines(&self, status: u16) -> (Vec<u8>, u64) {
        lines(&self.facts, &self.caller, status, &self.trail.settings)
    }
}

impl Drop for Pending {
    /// Writes the events if the client has disconnected or the server is shutting down: the request may have changed
    /// something.
    fn drop(&mut self) {
        if self.is_open {
            let (lines, count) = self.lines(STATUS_ABANDONED);
            self.trail.write_later(&lines, count);
        }
    }
}

/// The status of a request whose client disconnected before the response. HTTP does not define it, but it is widely used.
const STATUS_ABANDONED: u16 = 499;

/// The action for an unknown path or method.
const UNKNOWN: &str = "UNKNOWN";

/// The retry delay of a request refused because the trail can't be written.
const RETRY_AFTER: Duration = Duration::from_secs(5);
