//! Queues audit events and writes them in batches.
//!
//! A request adds its events to the queue and waits until they are written. The writer writes all queued events with one
//! call (group commit):
//!
//! - Usually, the request itself is the writer, on the thread that serves it. It first yields to all other ready requests on
//!   this thread, so that the same call writes their events. If no other request was ready when the last requests yielded, it
//!   usually writes at once.
//! - The trail's own thread is the writer if appends may be slow ([`AuditSink::is_prompt`]), if the runtime has only one
//!   thread, if no request waits for the events, after failures, and for events that are queued during a request's second call.
//!
//! A call writes the events of all requests that have few. It adds those of one actor that has requests with many events, or many
//! events for which no request waits. So if the sink is slow, an actor delays others only briefly.
//!
//! Events that could not be written stay in the queue, and are written first when the sink works again.

use std::{
    io,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use keywright_core::ports::Clock;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::{runtime::Handle, sync::oneshot, task::yield_now, time::timeout};

use super::{
    by_actor::{Outcome, UnwrittenError},
    event::AuditFormat,
    writer::{AuditSink, Queue, Shared, start_thread},
};

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
    pub(super) settings: AuditSettings,
    pub(super) clock: Arc<dyn Clock>,
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
        !self.is_failing()
    }

    pub(crate) fn stops_requests(&self) -> bool {
        self.settings.on_failure == OnAuditFailure::Refuse && self.is_failing()
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
    pub(super) async fn ready(&self, actor: &str) -> Result<(), UnwrittenError> {
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

    pub(super) async fn probe(&self) -> Result<(), UnwrittenError> {
        if !self.is_failing() {
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

    pub(super) fn is_failing(&self) -> bool {
        self.shared.is_failing()
    }

    /// Writes events of an actor. They are queued before the first `await`, so that they are not lost if the caller stops waiting.
    pub(super) async fn write(
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

    pub(super) fn write_later(&self, actor: &str, lines: &[u8], event_count: u64) {
        self.enqueue(actor, lines, event_count, self.bytes_max(), None);
        self.shared.leave_to_thread();
    }

    /// Like [`AuditTrail::write_later`], for a request that accessed nothing. Its events are lost if the queue is full.
    pub(super) fn write_if_room(&self, actor: &str, lines: &[u8], event_count: u64) {
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

/// Maximum time to retry a failing sink before a request starts.
const PROBE_TIME_MAX: Duration = Duration::from_secs(1);
