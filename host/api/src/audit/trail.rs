//! The audit trail: a queue of lines, and the one thread that writes them.
//!
//! A request puts its events into the queue and waits until they are written. Whatever is in the queue at that moment is
//! written by one call, so that many requests at once cost few calls. What could not be written stays in the queue, and is
//! written first when the sink works again.

use std::{
    io,
    net::IpAddr,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use keywright_core::ports::Clock;
use tokio::{sync::oneshot, time::timeout};

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
    /// Ends when the thread does that writes.
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
        let shared = Arc::new(Shared::default());
        let (end, ended) = oneshot::channel();
        // Nobody joins the thread: a sink that never returns must not keep the process from ending.
        thread::Builder::new()
            .name("keywright-audit".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || {
                    write_until_closed(&shared, sink);
                    drop(end);
                }
            })?;
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
        self.shared.is_failing.load(Ordering::Acquire)
    }

    /// Writes events; they are in the queue before the first `await`, so that nothing is lost when the caller stops waiting.
    pub(super) async fn write(&self, lines: &[u8], event_count: u64) -> Result<(), Unwritten> {
        let waiting = self.put(lines, event_count);
        self.written(waiting, self.settings.write_time_max).await
    }

    /// Puts events into the queue for which nobody waits.
    pub(super) fn write_later(&self, lines: &[u8], event_count: u64) {
        drop(self.put(lines, event_count));
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
        queue.has_news = true;
        drop(queue);
        self.shared.wake.notify_one();
        receiver
    }

    async fn written(
        &self,
        waiting: oneshot::Receiver<Result<(), Unwritten>>,
        time_max: Duration,
    ) -> Result<(), Unwritten> {
        if let Ok(told) = timeout(time_max, waiting).await {
            return told.unwrap_or(Err(Unwritten));
        }
        if !self.shared.is_failing.swap(true, Ordering::AcqRel) {
            tracing::error!("the audit trail has not been written for {time_max:?}");
        }
        Err(Unwritten)
    }
}

impl Drop for AuditTrail {
    fn drop(&mut self) {
        self.shared.queue().is_closed = true;
        self.shared.wake.notify_one();
    }
}

/// What requests and the writing thread share.
#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    is_failing: AtomicBool,
    events_lost: AtomicU64,
}

#[derive(Default)]
struct Queue {
    /// What is to be written, oldest first.
    lines: Vec<u8>,
    /// How many bytes of lines the writing thread has taken, and not written yet.
    bytes_taken: usize,
    /// Who waits until all of it is.
    waiting: Vec<oneshot::Sender<Result<(), Unwritten>>>,
    /// Whether anything was put in since the last attempt to write.
    has_news: bool,
    must_reopen: bool,
    is_closed: bool,
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
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is something to do, and takes all of it. While the sink is known not to work, there is an attempt
    /// from time to time also where no request asks for one.
    fn next(&self) -> Queue {
        let mut queue = self.queue();
        while !(queue.has_news || queue.must_reopen || queue.is_closed) {
            if self.is_failing.load(Ordering::Acquire) {
                let waited = self.wake.wait_timeout(queue, RETRY_INTERVAL);
                queue = waited.unwrap_or_else(PoisonError::into_inner).0;
                break;
            }
            queue = self
                .wake
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let is_closed = queue.is_closed;
        let taken = std::mem::take(&mut *queue);
        queue.is_closed = is_closed;
        queue.bytes_taken = taken.lines.len();
        taken
    }

    fn succeeded(&self) {
        self.queue().bytes_taken = 0;
        if self.is_failing.swap(false, Ordering::AcqRel) {
            tracing::info!("the audit trail is written again, with all that was kept");
        }
    }

    /// Keeps what was not written for the next attempt.
    fn failed(&self, lines: &mut Vec<u8>, failed: &AppendFailed) {
        if !self.is_failing.swap(true, Ordering::AcqRel) {
            tracing::error!(error = error_chain(failed), "an audit event is not written");
        }
        lines.drain(..failed.bytes_written.min(lines.len()));
        let mut queue = self.queue();
        queue.bytes_taken = 0;
        lines.append(&mut queue.lines);
        queue.lines = std::mem::take(lines);
    }
}

/// Writes what is put into the queue, until it is closed.
fn write_until_closed(shared: &Shared, mut sink: Box<dyn AuditSink>) {
    loop {
        let mut work = shared.next();
        if work.must_reopen {
            match sink.reopen() {
                Ok(()) => tracing::info!("the audit trail is opened anew"),
                Err(cause) => {
                    tracing::error!(error = %cause, "the audit trail could not be opened anew");
                }
            }
        }
        let outcome = match sink.append(&work.lines) {
            Ok(()) => {
                shared.succeeded();
                Ok(())
            }
            Err(failed) => {
                shared.failed(&mut work.lines, &failed);
                Err(Unwritten)
            }
        };
        for waiting in work.waiting {
            // Whoever does not wait any more need not be told.
            let _ = waiting.send(outcome);
        }
        if work.is_closed {
            if outcome.is_err() {
                tracing::error!("the server ends with audit events that could not be written");
            }
            return;
        }
    }
}

/// How long after a failure there is another attempt, where no request asks for one earlier.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// How long a request that has not begun waits for a sink that is known not to work.
const PROBE_TIME_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_writing_thread_has_taken_counts_until_it_is_written() {
        let shared = Shared::default();
        let put = |bytes: usize| {
            let mut queue = shared.queue();
            queue.lines.resize(bytes, b'x');
            queue.has_news = true;
        };
        put(6);
        let mut taken = shared.next();
        put(2);
        assert!(shared.queue().has_room(2, 10));
        assert!(!shared.queue().has_room(3, 10));
        let failed = AppendFailed {
            bytes_written: 1,
            cause: io::ErrorKind::StorageFull.into(),
        };
        shared.failed(&mut taken.lines, &failed);
        assert!(shared.queue().has_room(3, 10));
        assert!(!shared.queue().has_room(4, 10));
        shared.next();
        shared.succeeded();
        assert!(shared.queue().has_room(11, 10), "nothing else is kept");
    }
}
