//! The audit trail: a queue of lines, and who writes them.
//!
//! A request puts its events into the queue and waits until they are written. Whoever writes takes all that is in the queue
//! and writes it by one call:
//!
//! - Usually a request does so itself, on the thread that serves it. It first lets all other requests run that are ready on
//!   this thread, so that their events are written by the same call. If nothing else is ready, it goes on at once.
//! - A thread of the trail's own does so if an append may take long ([`AuditSink::is_prompt`]), if a request finds another
//!   one writing, if nobody waits for the events, and after failures.
//!
//! What could not be written stays in the queue, and is written first when the sink works again.

mod queue;
mod thread;

use std::{
    io,
    net::IpAddr,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use keywright_core::ports::Clock;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::oneshot,
    task::yield_now,
    time::timeout,
};

use self::queue::Shared;
use super::{AuditFormat, AuditSink};

/// How the audit trail is kept.
#[derive(Clone, Debug)]
pub struct AuditSettings {
    /// The form of its lines.
    pub format: AuditFormat,
    /// What becomes of requests whose events can't be written.
    pub on_failure: OnAuditFailure,
    /// The name of this host, which stands in each event.
    pub host: String,
    /// The proxies whose word is taken for whom they ask for.
    pub trusted_proxies: Vec<IpAddr>,
    /// How long a request waits until its events are written, before they count as not written.
    pub write_time_max: Duration,
    /// How much is kept that is not written yet, in bytes; what comes then is lost, and counted. What one request has to
    /// tell is kept also when it alone is more, if nothing else is kept.
    pub unwritten_bytes_max: usize,
}

impl AuditSettings {
    /// How long a request waits by default.
    pub const WRITE_TIME_MAX: Duration = Duration::from_secs(10);

    /// How much is kept by default, in bytes.
    pub const UNWRITTEN_BYTES_MAX: usize = 64 * 1024 * 1024;
}

/// What becomes of a request whose events can't be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnAuditFailure {
    /// It is refused, before it touches anything where the trouble is known by then.
    Refuse,
    /// It goes on, and its events are written when that is possible again.
    Continue,
}

/// The audit trail. It ends with [`AuditTrail::close`].
pub struct AuditTrail {
    pub(super) settings: AuditSettings,
    pub(super) clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    /// Ends when the trail's thread does.
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

/// An event that is not written yet, or may not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit trail can't be written at present")]
pub(super) struct Unwritten;

impl AuditTrail {
    /// Begins a trail that is written to a sink.
    ///
    /// # Errors
    /// When no thread can be started for it.
    pub fn start(
        settings: AuditSettings,
        sink: Box<dyn AuditSink>,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        // A request that an append blocks must leave a thread for the others.
        let runtime = Handle::try_current().ok().filter(|runtime| {
            sink.is_prompt()
                && runtime.runtime_flavor() == RuntimeFlavor::MultiThread
                && runtime.metrics().num_workers() > 1
        });
        let shared = Arc::new(Shared::new(sink, runtime));
        let ended = thread::start(&shared, settings.write_time_max)?;
        Ok(Self {
            settings,
            clock,
            shared,
            ended: Mutex::new(Some(ended)),
        })
    }

    /// Has the sink opened anew, after its file was moved away.
    pub fn reopen(&self) {
        self.shared.queue().must_reopen = true;
        self.shared.wake.notify_one();
    }

    /// How many events were lost, because more could not be written than are kept.
    pub fn events_lost(&self) -> u64 {
        self.shared.events_lost.load(Ordering::Relaxed)
    }

    /// Whether events can be written, as far as is known. A failure is known from then on until an attempt succeeds.
    pub fn is_written(&self) -> bool {
        !self.is_failing()
    }

    /// Whether requests are refused because events can't be written.
    pub(crate) fn stops_requests(&self) -> bool {
        self.settings.on_failure == OnAuditFailure::Refuse && self.is_failing()
    }

    /// Writes what there is still to write, and ends the trail.
    pub async fn close(&self) {
        self.shared.queue().is_closed = true;
        self.shared.wake.notify_one();
        let ended = self.ended.lock().map(|mut ended| ended.take());
        if let Ok(Some(ended)) = ended
            && timeout(self.settings.write_time_max, ended).await.is_err()
        {
            tracing::error!("the audit trail could not be written to its end");
        }
    }

    /// Sees whether a request may begin: where events must not be lost and the sink is known not to work, it is tried
    /// again first.
    pub(super) async fn ready(&self) -> Result<(), Unwritten> {
        if self.settings.on_failure == OnAuditFailure::Continue {
            return Ok(());
        }
        self.probe().await
    }

    /// Tries again whether the sink works, where it is known not to.
    pub(super) async fn probe(&self) -> Result<(), Unwritten> {
        if !self.is_failing() {
            return Ok(());
        }
        let time_max = self.settings.write_time_max.min(PROBE_TIME_MAX);
        self.written(self.put(&[], 0), time_max).await
    }

    /// Whether the sink is known not to work.
    pub(super) fn is_failing(&self) -> bool {
        self.shared.is_failing()
    }

    /// Writes events; they are in the queue before the first `await`, so that nothing is lost when the caller stops waiting.
    pub(super) async fn write(&self, lines: &[u8], event_count: u64) -> Result<(), Unwritten> {
        let waiting = self.put(lines, event_count);
        self.written(waiting, self.settings.write_time_max).await
    }

    /// Puts events into the queue for which nobody waits.
    pub(super) fn write_later(&self, lines: &[u8], event_count: u64) {
        drop(self.put(lines, event_count));
        self.shared.leave_to_thread();
    }

    fn put(&self, lines: &[u8], event_count: u64) -> oneshot::Receiver<Result<(), Unwritten>> {
        let (sender, receiver) = oneshot::channel();
        let mut queue = self.shared.queue();
        if queue.is_closed || !queue.has_room(lines.len(), self.settings.unwritten_bytes_max) {
            drop(queue);
            let lost = self
                .shared
                .events_lost
                .fetch_add(event_count, Ordering::Relaxed);
            tracing::error!(
                audit.events_lost = lost + event_count,
                "audit events are lost: more of them wait to be written than are kept, or the server is ending"
            );
            // The dropped sender tells the receiver.
            return receiver;
        }
        queue.lines.extend_from_slice(lines);
        queue.waiting.retain(|waiting| !waiting.is_closed());
        queue.waiting.push(sender);
        receiver
    }

    async fn written(
        &self,
        waiting: oneshot::Receiver<Result<(), Unwritten>>,
        time_max: Duration,
    ) -> Result<(), Unwritten> {
        let mut left = LeftToThread(Some(&self.shared));
        if self.shared.runtime.is_some() {
            // All other requests that are ready on this thread put their events into the queue first.
            yield_now().await;
            left.0 = None;
            self.shared.write_on_request();
        }
        drop(left);
        if let Ok(told) = timeout(time_max, waiting).await {
            return told.unwrap_or(Err(Unwritten));
        }
        self.shared.timed_out(time_max);
        Err(Unwritten)
    }
}

impl Drop for AuditTrail {
    fn drop(&mut self) {
        self.shared.queue().is_closed = true;
        self.shared.wake.notify_one();
    }
}

/// Leaves the queue to the trail's thread when it is dropped.
struct LeftToThread<'a>(Option<&'a Shared>);

impl Drop for LeftToThread<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.0 {
            shared.leave_to_thread();
        }
    }
}

/// How long a request that has not begun waits for a sink that is known not to work.
const PROBE_TIME_MAX: Duration = Duration::from_secs(1);
