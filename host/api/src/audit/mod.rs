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
//! is cancelled because its client has disconnected is also audited. For the queue of events, see `writer.rs`.
//!
//! Changes that the server itself makes to credentials are also audited: see `retention.rs`.
//!
//! To add a format, add a variant of [`AuditFormat`] and its encoder in `event.rs`. To add a sink, implement [`AuditSink`] in
//! the server.

mod event;
mod retention;
mod writer;

use std::{
    io,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::{
    extract::Request,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use keywright_core::{authorization::Caller, ports::Clock};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::{runtime::Handle, sync::oneshot, task::yield_now, time::timeout};

pub use event::AuditFormat;
pub(crate) use event::granted;
pub use writer::{AppendError, AuditSink};

use crate::{request::OriginalTarget, response::ApiError, route::RequestContext};
use event::{RequestFacts, lines, logged_target};
use writer::{Outcome, Queue, Shared, UnwrittenError, start_thread};

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
                pending.trail.ready(pending.actor()).await.map_err(|UnwrittenError| {
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
            let (trail, actor) = (&pending.trail, pending.actor());
            trail.write_if_room(actor, &lines, count);
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
        let outcome = if continues && self.trail.shared.is_failing() {
            // Waiting for a failing sink would delay each request by the maximum write time.
            self.trail.write_later(self.actor(), &lines, count);
            Err(UnwrittenError)
        } else {
            self.trail.write(self.actor(), lines, count).await
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

    fn actor(&self) -> &str {
        self.caller.actor().as_str()
    }

    fn lines(&self, status: u16) -> (Vec<u8>, u64) {
        let settings = &self.trail.settings;
        lines(
            &self.facts,
            &self.caller,
            status,
            &settings.host,
            settings.format,
        )
    }
}

impl Drop for Pending {
    /// Writes the events if the client has disconnected or the server is shutting down: the request may have changed
    /// something.
    fn drop(&mut self) {
        if self.is_open {
            let (lines, count) = self.lines(STATUS_ABANDONED);
            self.trail.write_later(self.actor(), &lines, count);
        }
    }
}

/// The settings of the audit trail.
#[derive(Clone, Debug)]
pub struct AuditSettings {
    /// The format of each event.
    pub format: AuditFormat,
    /// The policy for requests whose events can't be written.
    pub on_failure: OnAuditFailure,
    /// The name of this host, included in each event.
    pub host: String,
    /// Maximum time that a request waits for its events to be written; after that, they count as not written.
    pub write_time_max: Duration,
    /// Size of the queue, in bytes, at which requests are refused before they access anything. With
    /// [`OnAuditFailure::Continue`], further events are lost, and counted.
    pub unwritten_bytes_max: usize,
}

impl AuditSettings {
    /// The default of `write_time_max`.
    pub const WRITE_TIME_MAX: Duration = Duration::from_secs(10);

    /// The default of `unwritten_bytes_max`.
    pub const UNWRITTEN_BYTES_MAX: usize = 64 * 1024 * 1024;
}

/// How requests whose events can't be written are handled.
// If the sink is already failing, `Refuse` rejects requests before they access anything. With `Continue`, the events are written
// once the sink works again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnAuditFailure {
    /// They are processed, and the failure is logged.
    Continue,
    /// They are rejected until events can be written again.
    #[default]
    Refuse,
}

/// The audit trail. Call [`AuditTrail::close`] before the process exits.
pub struct AuditTrail {
    settings: AuditSettings,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    /// Completes when the trail's thread ends.
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl AuditTrail {
    /// Starts the trail and its thread.
    pub fn start(
        settings: AuditSettings,
        sink: Box<dyn AuditSink>,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        // An append blocks its thread. Requests append only if another thread can serve other requests in the meantime.
        let runtime = Handle::try_current()
            .ok()
            .filter(|runtime| sink.is_prompt() && runtime.metrics().num_workers() > 1);
        let shared = Arc::new(Shared::new(sink, runtime));
        let ended = start_thread(&shared, settings.write_time_max)?;
        Ok(Self {
            settings,
            clock,
            shared,
            ended: Mutex::new(Some(ended)),
        })
    }

    /// Reopens the sink's file, for example after it was moved.
    pub fn reopen(&self) {
        self.shared.queue.lock().must_reopen = true;
        self.shared.wake.notify_one();
    }

    /// Returns the number of events that were lost because the queue was full or the trail was closed.
    pub fn events_lost(&self) -> u64 {
        self.shared.events_lost.load(Ordering::Relaxed)
    }

    /// Returns `false` after a write has failed or timed out, until a write succeeds.
    pub fn is_written(&self) -> bool {
        !self.shared.is_failing()
    }

    pub(crate) fn stops_requests(&self) -> bool {
        self.settings.on_failure == OnAuditFailure::Refuse && self.shared.is_failing()
    }

    /// Writes the queued events, and stops the trail's thread.
    pub async fn close(&self) {
        self.shared.queue.lock().is_closed = true;
        self.shared.wake.notify_one();
        let ended = self.ended.lock().take();
        if let Some(ended) = ended
            && timeout(self.settings.write_time_max, ended).await.is_err()
        {
            tracing::error!("timed out writing the remaining audit events");
        }
    }

    /// Checks whether a request may start. If events must not be lost, retries a failing sink and waits for room in the queue.
    async fn ready(&self, actor: &str) -> Result<(), UnwrittenError> {
        if self.settings.on_failure == OnAuditFailure::Continue {
            return Ok(());
        }
        self.probe().await?;
        self.wait_for_room(actor).await
    }

    async fn wait_for_room(&self, actor: &str) -> Result<(), UnwrittenError> {
        let bytes_max = self.settings.unwritten_bytes_max;
        let has_room = |queue: &Queue| queue.has_room(actor, 1, bytes_max);
        if has_room(&self.shared.queue.lock()) {
            return Ok(());
        }
        let waiting = self.enqueue_probe();
        self.shared.leave_to_thread();
        match timeout(PROBE_TIME_MAX, waiting).await {
            Ok(Ok(outcome)) if has_room(&self.shared.queue.lock()) => outcome,
            _ => Err(UnwrittenError),
        }
    }

    async fn probe(&self) -> Result<(), UnwrittenError> {
        if !self.shared.is_failing() {
            return Ok(());
        }
        let time_max = self.settings.write_time_max.min(PROBE_TIME_MAX);
        self.wait_until_written(self.enqueue_probe(), time_max)
            .await
    }

    /// Returns a receiver of the outcome of the next write, which may have no events.
    fn enqueue_probe(&self) -> Receiver {
        let (sender, receiver) = oneshot::channel();
        self.enqueue("", &[], 0, usize::MAX, Some(sender));
        receiver
    }

    /// Writes events of an actor. They are queued before the first `await`, so that they are not lost if the caller stops waiting.
    async fn write(
        &self,
        actor: &str,
        lines: Vec<u8>,
        event_count: u64,
    ) -> Result<(), UnwrittenError> {
        let (sender, waiting) = oneshot::channel();
        self.enqueue(actor, &lines, event_count, self.bytes_max(), Some(sender));
        drop(lines);
        self.wait_until_written(waiting, self.settings.write_time_max)
            .await
    }

    fn write_later(&self, actor: &str, lines: &[u8], event_count: u64) {
        self.enqueue(actor, lines, event_count, self.bytes_max(), None);
        self.shared.leave_to_thread();
    }

    /// Like [`AuditTrail::write_later`], for a request that accessed nothing. Its events are lost if the queue is full.
    fn write_if_room(&self, actor: &str, lines: &[u8], event_count: u64) {
        let bytes_max = self.settings.unwritten_bytes_max;
        self.enqueue(actor, lines, event_count, bytes_max, None);
        self.shared.leave_to_thread();
    }

    /// Returns the maximum size of the queue. If events must not be lost, only the requests in progress limit it: another caller
    /// could otherwise fill the queue to have the events of a change lost.
    fn bytes_max(&self) -> usize {
        match self.settings.on_failure {
            OnAuditFailure::Continue => self.settings.unwritten_bytes_max,
            OnAuditFailure::Refuse => usize::MAX,
        }
    }

    /// Queues events. If they are lost, the sender is dropped, so that its receiver returns an error.
    fn enqueue(
        &self,
        actor: &str,
        lines: &[u8],
        event_count: u64,
        bytes_max: usize,
        sender: Option<Outcome>,
    ) {
        let mut queue = self.shared.queue.lock();
        if queue.is_closed || !queue.has_room(actor, lines.len(), bytes_max) {
            drop(queue);
            if event_count == 0 {
                // A probe has no events to lose.
                return;
            }
            let lost = self
                .shared
                .events_lost
                .fetch_add(event_count, Ordering::Relaxed);
            tracing::error!(
                audit.events_lost = lost + event_count,
                "lost audit events: the queue is full, or the server is shutting down"
            );
            return;
        }
        queue.add(actor, lines, sender);
    }

    async fn wait_until_written(
        &self,
        waiting: Receiver,
        time_max: Duration,
    ) -> Result<(), UnwrittenError> {
        let mut left = LeftToThread(Some(&self.shared));
        if self.shared.runtime.is_some() {
            if self.shared.expects_others() {
                // Let all other ready requests on this thread queue their events first.
                yield_now().await;
            }
            left.0 = None;
            self.shared.write_on_request();
        }
        drop(left);
        if let Ok(outcome) = timeout(time_max, waiting).await {
            return outcome.unwrap_or(Err(UnwrittenError));
        }
        self.shared.request_timed_out(time_max);
        Err(UnwrittenError)
    }
}

impl Drop for AuditTrail {
    fn drop(&mut self) {
        self.shared.queue.lock().is_closed = true;
        self.shared.wake.notify_one();
    }
}

/// Receives whether the lines of a request were written.
type Receiver = oneshot::Receiver<Result<(), UnwrittenError>>;

/// Leaves the queue to the trail's thread on drop.
struct LeftToThread<'a>(Option<&'a Shared>);

impl Drop for LeftToThread<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.0 {
            shared.leave_to_thread();
        }
    }
}

/// The status of a request whose client disconnected before the response. HTTP does not define it, but it is widely used.
const STATUS_ABANDONED: u16 = 499;

/// The action for an unknown path or method.
const UNKNOWN: &str = "UNKNOWN";

/// The retry delay of a request refused because the trail can't be written.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Maximum time to retry a failing sink before a request starts.
const PROBE_TIME_MAX: Duration = Duration::from_secs(1);
