//! The audit trail: a queue of lines, and who writes them.
//!
//! A request puts its events into the queue and waits until they are written. Whoever writes takes all that is in the queue
//! and writes it by one call:
//!
//! - Usually a request does so itself, on the thread that serves it. It first lets all other requests run that are ready on
//!   this thread, so that their events are written by the same call. If nothing else is ready, it goes on at once. No
//!   request depends on another one that may be given up: each looks again whether its events are still to be written.
//! - A thread of the trail's own does so if an append may take long ([`AuditSink::is_prompt`]), if nobody waits for the
//!   events, and after failures.
//!
//! What could not be written stays in the queue, and is written first when the sink works again. The thread also watches
//! requests that write: see [`Watch`].

mod thread;

use std::{
    io,
    net::IpAddr,
    pin::pin,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use keywright_core::ports::Clock;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::{Notify, oneshot},
    task::yield_now,
    time::timeout,
};

use super::{AppendFailed, AuditFormat, AuditSink};
use crate::response::error_chain;

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
    /// Whether requests write by themselves.
    is_written_by_requests: bool,
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
            runtime.runtime_flavor() == RuntimeFlavor::MultiThread
                && runtime.metrics().num_workers() > 1
        });
        let runtime = runtime.filter(|_| sink.is_prompt());
        let is_written_by_requests = runtime.is_some();
        let shared = Arc::new(Shared::new(sink));
        let ended = thread::start(&shared, runtime, settings.write_time_max)?;
        Ok(Self {
            settings,
            clock,
            shared,
            is_written_by_requests,
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
        self.put(&[], 0)?.written(time_max).await
    }

    /// Whether the sink is known not to work.
    pub(super) fn is_failing(&self) -> bool {
        self.shared.is_failing.load(Ordering::Acquire)
    }

    /// Writes events; they are in the queue before the first `await`, so that nothing is lost when the caller stops waiting.
    pub(super) async fn write(&self, lines: &[u8], event_count: u64) -> Result<(), Unwritten> {
        let events = self.put(lines, event_count)?;
        events.written(self.settings.write_time_max).await
    }

    /// Puts events into the queue for which nobody waits.
    pub(super) fn write_later(&self, lines: &[u8], event_count: u64) {
        drop(self.put(lines, event_count));
    }

    fn put(&self, lines: &[u8], event_count: u64) -> Result<QueuedEvents<'_>, Unwritten> {
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
            return Err(Unwritten);
        }
        queue.lines.extend_from_slice(lines);
        if !self.is_written_by_requests {
            queue.is_thread_wanted = true;
            self.shared.wake.notify_one();
        }
        Ok(QueuedEvents {
            trail: self,
            batch: Arc::clone(&queue.batch),
        })
    }
}

impl Drop for AuditTrail {
    fn drop(&mut self) {
        self.shared.queue().is_closed = true;
        self.shared.wake.notify_one();
    }
}

/// Events in the queue. Dropping this before they are written leaves them to the trail's thread.
struct QueuedEvents<'a> {
    trail: &'a AuditTrail,
    batch: Arc<Batch>,
}

impl QueuedEvents<'_> {
    /// Waits until the events are written, or writes them.
    async fn written(self, time_max: Duration) -> Result<(), Unwritten> {
        if self.trail.is_written_by_requests {
            // All other requests that are ready on this thread put their events into the queue first.
            yield_now().await;
            if let Some(outcome) = self.attempt() {
                return outcome;
            }
        }
        if let Ok(outcome) = timeout(time_max, self.wait()).await {
            return outcome;
        }
        if !self.trail.shared.is_failing.swap(true, Ordering::AcqRel) {
            tracing::error!("the audit trail has not been written for {time_max:?}");
        }
        Err(Unwritten)
    }

    async fn wait(&self) -> Result<(), Unwritten> {
        loop {
            let mut settled = pin!(self.batch.settled.notified());
            settled.as_mut().enable();
            if let Some(outcome) = self.attempt() {
                return outcome;
            }
            settled.await;
        }
    }

    /// What has become of the events; they are written now if that is for requests to do and nobody else is writing.
    fn attempt(&self) -> Option<Result<(), Unwritten>> {
        let outcome = self.batch.outcome.get();
        if outcome.is_none() && self.trail.is_written_by_requests {
            let shared = &self.trail.shared;
            let mut queue = shared.queue();
            // The events may have been written before the queue was locked.
            if !queue.is_writing && self.batch.outcome.get().is_none() {
                queue.appends = queue.appends.wrapping_add(1);
                if !queue.is_watched {
                    queue.is_watched = true;
                    shared.wake.notify_one();
                }
                let _ = shared.write(queue);
            }
        }
        self.batch.outcome.get().copied()
    }
}

impl Drop for QueuedEvents<'_> {
    fn drop(&mut self) {
        if self.batch.outcome.get().is_none() {
            self.trail.shared.queue().is_thread_wanted = true;
            self.trail.shared.wake.notify_one();
        }
    }
}

/// What requests and the trail's thread share.
struct Shared {
    queue: Mutex<Queue>,
    /// Whoever has set `is_writing` uses it.
    sink: Mutex<Box<dyn AuditSink>>,
    /// Wakes the thread.
    wake: Condvar,
    is_failing: AtomicBool,
    events_lost: AtomicU64,
}

#[derive(Default)]
struct Queue {
    /// What is to be written, oldest first.
    lines: Vec<u8>,
    /// By which those are told whose lines these are.
    batch: Arc<Batch>,
    /// How many bytes of lines are being written.
    bytes_taken: usize,
    is_writing: bool,
    /// How many appends requests have begun.
    appends: u64,
    /// Whether the thread watches requests that write.
    is_watched: bool,
    /// Whether the thread is to write what there is.
    is_thread_wanted: bool,
    must_reopen: bool,
    is_closed: bool,
}

/// Events that are written by one call.
#[derive(Default)]
struct Batch {
    outcome: OnceLock<Result<(), Unwritten>>,
    /// Told when there is an outcome, and when these events are the next to be written.
    settled: Notify,
}

impl Queue {
    /// Whether so many more bytes can be kept. What is too much by itself can when there is nothing else, since what it
    /// tells of is done by now.
    fn has_room(&self, bytes: usize, bytes_max: usize) -> bool {
        let kept = self.lines.len() + self.bytes_taken;
        bytes == 0 || kept == 0 || kept + bytes <= bytes_max
    }
}

impl Shared {
    fn new(sink: Box<dyn AuditSink>) -> Self {
        Self {
            queue: Mutex::default(),
            sink: Mutex::new(sink),
            wake: Condvar::new(),
            is_failing: AtomicBool::new(false),
            events_lost: AtomicU64::new(0),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sink(&self) -> MutexGuard<'_, Box<dyn AuditSink>> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes all that is in the queue by one call. Nobody else is writing.
    fn write(&self, mut queue: MutexGuard<'_, Queue>) -> Result<(), Unwritten> {
        let mut lines = std::mem::take(&mut queue.lines);
        let batch = std::mem::take(&mut queue.batch);
        queue.bytes_taken = lines.len();
        queue.is_writing = true;
        drop(queue);

        let outcome = match self.sink().append(&lines) {
            Ok(()) => {
                lines.clear();
                self.succeeded();
                Ok(())
            }
            Err(failed) => {
                lines.drain(..failed.bytes_written.min(lines.len()));
                self.failed(&failed);
                Err(Unwritten)
            }
        };

        let mut queue = self.queue();
        queue.is_writing = false;
        queue.bytes_taken = 0;
        if !lines.is_empty() {
            // They are kept for the next attempt.
            lines.append(&mut queue.lines);
            queue.lines = lines;
        }
        // A batch has one outcome: whoever takes it from the queue sets it.
        let _ = batch.outcome.set(outcome);
        let next = Arc::clone(&queue.batch);
        if queue.is_thread_wanted || queue.must_reopen || queue.is_closed {
            self.wake.notify_one();
        }
        drop(queue);
        batch.settled.notify_waiters();
        next.settled.notify_waiters();
        outcome
    }

    fn succeeded(&self) {
        if self.is_failing.load(Ordering::Acquire) && self.is_failing.swap(false, Ordering::AcqRel)
        {
            tracing::info!("the audit trail is written again, with all that was kept");
        }
    }

    fn failed(&self, failed: &AppendFailed) {
        if !self.is_failing.swap(true, Ordering::AcqRel) {
            tracing::error!(error = error_chain(failed), "an audit event is not written");
        }
    }
}

/// How long a request that has not begun waits for a sink that is known not to work.
const PROBE_TIME_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A sink whose appends end as they are told to.
    struct ToldSink {
        begun: mpsc::Sender<Vec<u8>>,
        outcomes: mpsc::Receiver<Result<(), AppendFailed>>,
    }

    impl AuditSink for ToldSink {
        fn append(&mut self, lines: &[u8]) -> Result<(), AppendFailed> {
            self.begun.send(lines.to_vec()).unwrap();
            self.outcomes.recv().unwrap()
        }

        fn reopen(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn is_prompt(&self) -> bool {
            true
        }
    }

    #[test]
    fn lines_count_until_they_are_written() {
        let (begun, appends) = mpsc::channel();
        let (outcome, outcomes) = mpsc::channel();
        let shared = Shared::new(Box::new(ToldSink { begun, outcomes }));
        let put = |bytes: usize| {
            let mut queue = shared.queue();
            let bytes = queue.lines.len() + bytes;
            queue.lines.resize(bytes, b'x');
        };
        let has_room = |bytes| shared.queue().has_room(bytes, 10);
        std::thread::scope(|scope| {
            put(6);
            let writing = scope.spawn(|| shared.write(shared.queue()));
            assert_eq!(appends.recv().unwrap().len(), 6);
            put(2);
            assert!(has_room(2) && !has_room(3));
            let failed = AppendFailed {
                bytes_written: 1,
                cause: io::ErrorKind::StorageFull.into(),
            };
            outcome.send(Err(failed)).unwrap();
            assert_eq!(writing.join().unwrap(), Err(Unwritten));
            assert!(has_room(3) && !has_room(4));
            outcome.send(Ok(())).unwrap();
            assert_eq!(shared.write(shared.queue()), Ok(()));
            assert_eq!(appends.recv().unwrap().len(), 7);
            assert!(has_room(11), "nothing else is kept");
        });
    }
}
