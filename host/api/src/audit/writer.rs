//! The queue of audit events, and the sink to which requests and the trail's own thread write it in batches.
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
//! A call writes the events of all requests with few events. It adds events of one actor that has requests with many events, or many
//! events for which no request waits. So if the sink is slow, an actor delays others only briefly.
//!
//! Events that could not be written stay in the queue, and are written first when the sink works again.
//!
//! The trail's thread also watches appends by requests. An append blocks the request's runtime thread. Only one runtime thread
//! polls the network, and the append may block this thread. So during a long append, the trail's thread spawns empty tasks from
//! outside the runtime. Each task wakes another runtime thread, which then polls the network.

use std::{
    collections::{HashMap, VecDeque},
    io, mem,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::{runtime::Handle, sync::oneshot};

use crate::response::error_chain;

/// A destination of the audit trail. Calls never overlap.
pub trait AuditSink: Send {
    /// Appends lines, each with its line break. On success, the lines have left this process. If there are no lines,
    /// checks whether the sink works.
    fn append(&mut self, lines: &[u8]) -> Result<(), AppendError>;

    /// Reopens the file that the sink writes to, for example after it was moved. If that fails, the sink keeps the old file.
    fn reopen(&mut self) -> io::Result<()>;

    /// Returns whether an append usually takes no longer than passing the lines to the operating system. If so, threads that
    /// serve requests may append; otherwise, only the trail's own thread appends. Reopening the sink may change the result.
    fn is_prompt(&self) -> bool;
}

/// Some or all of the lines could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the audit trail could not be written")]
pub struct AppendError {
    /// The number of bytes, from the start of the lines, that were written as complete lines.
    pub bytes_written: usize,
    /// The cause.
    #[source]
    pub cause: io::Error,
}

/// Events were not written, or may not have been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit trail can't be written at present")]
pub(super) struct UnwrittenError;

/// Reports to a request whether its lines were written.
pub(super) type Outcome = oneshot::Sender<Result<(), UnwrittenError>>;

/// The state shared by requests and the trail's thread.
pub(super) struct Shared {
    pub(super) queue: Mutex<Queue>,
    pub(super) wake: Condvar,
    is_failing: AtomicBool,
    pub(super) events_lost: AtomicU64,
    /// The number of consecutive writes that had the events of one request each, and during which no other request tried to
    /// write.
    lone_writes: AtomicU32,
    /// The runtime of the requests, if they may write.
    pub(super) runtime: Option<Handle>,
}

#[derive(Default)]
pub(super) struct Queue {
    /// The lines to write, oldest first.
    pub(super) lines: Vec<u8>,
    /// Senders to the requests that wait until all these lines are written.
    waiting: Vec<Outcome>,
    /// The other lines. Each write adds one turn of them.
    by_actor: LinesByActor,
    /// The number of bytes being written.
    bytes_taken: usize,
    /// `None` during a write.
    sink: Option<Box<dyn AuditSink>>,
    /// When the last append started. When the thread finds no write in progress, it sets this to `None`.
    append_started: Option<Instant>,
    /// Whether the thread must write the queue, unless the current writer does.
    is_left_to_thread: bool,
    pub(super) must_reopen: bool,
    pub(super) is_closed: bool,
}

/// The lines of requests with many events, and of actors with many lines for which no request waits. Actors take turns, so that one actor
/// delays others only briefly.
#[derive(Default)]
struct LinesByActor {
    actors: HashMap<String, ActorLines>,
    /// The actors with lines, in the order of their turns.
    turns: VecDeque<String>,
    /// The number of bytes of each actor in the next write for which no request waits, without the bytes in `actors`.
    unawaited: HashMap<String, usize>,
}

#[derive(Default)]
struct ActorLines {
    /// The lines of each request, oldest first, and the sender to the request if it waits.
    requests: VecDeque<(Vec<u8>, Option<Outcome>)>,
    bytes: usize,
}

impl LinesByActor {
    fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Returns the number of bytes of an actor.
    fn bytes_of(&self, actor: &str) -> usize {
        self.actors.get(actor).map_or(0, |own| own.bytes)
    }

    /// Returns the number of bytes of all actors. Counts at most this maximum for each actor.
    fn bytes_up_to(&self, bytes_per_actor_max: usize) -> usize {
        let counted = self.actors.values();
        counted.map(|own| own.bytes.min(bytes_per_actor_max)).sum()
    }

    /// Returns whether the next write may contain lines of this length for which no request waits. Each write contains at most
    /// [`FEW_EVENTS_BYTES_MAX`] of each actor.
    fn count_unawaited(&mut self, actor: &str, bytes: usize) -> bool {
        let counted = self.unawaited.entry(actor.to_owned()).or_default();
        let fits = *counted + bytes <= FEW_EVENTS_BYTES_MAX;
        if fits {
            *counted += bytes;
        }
        fits
    }

    fn push(&mut self, actor: &str, lines: &[u8], sender: Option<Outcome>) {
        let own = self.actors.entry(actor.to_owned()).or_default();
        if own.requests.is_empty() {
            self.turns.push_back(actor.to_owned());
        }
        own.bytes += lines.len();
        own.requests.push_back((lines.to_vec(), sender));
    }

    /// Begins the next write. Moves lines of the next actor: of one request, or of several requests with at most [`FEW_EVENTS_BYTES_MAX`]
    /// together.
    fn take_turn(&mut self, lines: &mut Vec<u8>, waiting: &mut Vec<Outcome>) {
        self.unawaited.clear();
        let Some(actor) = self.turns.pop_front() else {
            return;
        };
        let Some(own) = self.actors.get_mut(&actor) else {
            return;
        };
        let mut bytes = 0;
        while let Some((next, sender)) = own.requests.pop_front() {
            bytes += next.len();
            lines.extend_from_slice(&next);
            waiting.extend(sender);
            let following = own.requests.front().map_or(0, |(next, _)| next.len());
            if bytes + following > FEW_EVENTS_BYTES_MAX {
                break;
            }
        }
        own.bytes -= bytes;
        if own.requests.is_empty() {
            self.actors.remove(&actor);
        } else {
            self.turns.push_back(actor);
        }
    }
}

impl Queue {
    /// Returns whether this many more bytes of an actor fit. Any number fits if no lines are queued or being written, because the
    /// reported actions are already complete. In [`LinesByActor`], an actor's bytes fit up to a quarter of the maximum. So one actor
    /// can't fill the queue.
    pub(super) fn has_room(&self, actor: &str, bytes: usize, bytes_max: usize) -> bool {
        let per_actor_max = bytes_max / ACTORS_TO_FILL_QUEUE;
        let counted = self.by_actor.bytes_up_to(per_actor_max);
        let others = self.lines.len() + self.bytes_taken;
        let own = self.by_actor.bytes_of(actor);
        bytes == 0
            || others == 0 && self.by_actor.is_empty()
            || others + counted + bytes <= bytes_max && (own == 0 || own + bytes <= per_actor_max)
    }

    /// Adds the lines of a request of this actor. If the request waits until they are written, `sender` reports the outcome.
    pub(super) fn add(&mut self, actor: &str, lines: &[u8], sender: Option<Outcome>) {
        let fits = match sender {
            Some(_) => lines.len() <= FEW_EVENTS_BYTES_MAX,
            None => self.by_actor.count_unawaited(actor, lines.len()),
        };
        if !fits {
            self.by_actor.push(actor, lines, sender);
            return;
        }
        self.lines.extend_from_slice(lines);
        if let Some(sender) = sender {
            self.add_waiting(sender);
        }
    }

    /// Adds a request that waits. Requests that no longer wait are removed only when the vector is full, so that adding many takes
    /// linear time.
    fn add_waiting(&mut self, sender: Outcome) {
        if self.waiting.len() == self.waiting.capacity() {
            self.waiting.retain(|waiting| !waiting.is_closed());
            self.waiting.reserve(self.waiting.len() + 1);
        }
        self.waiting.push(sender);
    }

    /// Takes the lines to write next, and the requests that wait for them.
    fn take_next(&mut self) -> (Vec<u8>, Vec<Outcome>) {
        let mut lines = mem::take(&mut self.lines);
        let mut waiting = mem::take(&mut self.waiting);
        self.by_actor.take_turn(&mut lines, &mut waiting);
        (lines, waiting)
    }

    /// Puts unwritten lines back, before all others, for the next attempt. Also returns the requests with many events, which need
    /// not wait for attempts of their own.
    fn put_back(&mut self, mut lines: Vec<u8>) -> Vec<Outcome> {
        lines.append(&mut self.lines);
        let mut waiting = Vec::new();
        while !self.by_actor.is_empty() {
            self.by_actor.take_turn(&mut lines, &mut waiting);
        }
        self.lines = lines;
        waiting
    }

    /// Returns whether no request waits, and no lines wait for their turn.
    fn is_settled(&self) -> bool {
        self.waiting.is_empty() && self.by_actor.is_empty()
    }

    fn is_for_thread(&self) -> bool {
        self.is_left_to_thread || self.must_reopen || self.is_closed
    }
}

impl Shared {
    pub(super) fn new(sink: Box<dyn AuditSink>, runtime: Option<Handle>) -> Self {
        Self {
            queue: Mutex::new(Queue {
                sink: Some(sink),
                ..Queue::default()
            }),
            wake: Condvar::new(),
            is_failing: AtomicBool::new(false),
            events_lost: AtomicU64::new(0),
            lone_writes: AtomicU32::new(0),
            runtime,
        }
    }

    pub(super) fn leave_to_thread(&self) {
        self.queue.lock().is_left_to_thread = true;
        self.wake.notify_one();
    }

    /// Returns whether a request should let others queue their events before it writes. If the last writes were for one request
    /// each, only every [`LONE_WRITES_PER_YIELD`]th request should: yielding with no other request ready wakes a second thread.
    pub(super) fn expects_others(&self) -> bool {
        let lone_writes = self.lone_writes.load(Ordering::Relaxed);
        lone_writes < LONE_WRITES_MAX || lone_writes.is_multiple_of(LONE_WRITES_PER_YIELD)
    }

    /// Writes the queue, unless another write has emptied it, and once more for requests that arrive during the write. Leaves the
    /// queue to the thread if the sink may block.
    pub(super) fn write_on_request(&self) {
        for may_continue in [true, false] {
            let mut queue = self.queue.lock();
            if queue.is_settled() {
                return;
            }
            let mut sink = queue.sink.iter();
            if queue.must_reopen || sink.any(|sink| !sink.is_prompt()) {
                queue.is_left_to_thread = true;
                self.wake.notify_one();
                return;
            }
            if queue.append_started.is_none() {
                // From now on, the thread watches for a blocked append.
                self.wake.notify_one();
            }
            if !self.write(queue, may_continue) {
                return;
            }
        }
    }

    /// Writes the queue with one call, but only one turn of [`LinesByActor`], or leaves it to the current writer if
    /// another write is in progress. Returns whether the caller must write again, for requests whose lines are in the queue then. If
    /// it may not continue, the thread does.
    fn write(&self, mut queue: MutexGuard<'_, Queue>, may_continue: bool) -> bool {
        let Some(mut sink) = queue.sink.take() else {
            self.lone_writes.store(0, Ordering::Relaxed);
            queue.is_left_to_thread = true;
            return false;
        };
        let (mut lines, mut waiting) = queue.take_next();
        let must_reopen = mem::take(&mut queue.must_reopen);
        queue.is_left_to_thread = false;
        queue.bytes_taken = lines.len();
        queue.append_started = Some(Instant::now());
        drop(queue);
        if waiting.len() > 1 {
            self.lone_writes.store(0, Ordering::Relaxed);
        } else {
            self.lone_writes.fetch_add(1, Ordering::Relaxed);
        }

        if must_reopen {
            match sink.reopen() {
                Ok(()) => tracing::info!("reopened the audit trail"),
                Err(cause) => {
                    tracing::error!(error = %cause, "could not reopen the audit trail; events go to the old file");
                }
            }
        }
        let outcome = match sink.append(&lines) {
            Ok(()) => {
                self.succeeded();
                Ok(())
            }
            Err(failed) => {
                lines.drain(..failed.bytes_written.min(lines.len()));
                self.failed(&failed);
                Err(UnwrittenError)
            }
        };

        let mut queue = self.queue.lock();
        queue.sink = Some(sink);
        queue.bytes_taken = 0;
        if outcome.is_err() {
            waiting.extend(queue.put_back(lines));
        }
        queue.is_left_to_thread |= !queue.by_actor.is_empty();
        let others_wait = queue.is_left_to_thread && !queue.is_settled();
        let must_continue = may_continue && outcome.is_ok() && others_wait;
        let is_for_thread = !must_continue && (queue.is_for_thread() || outcome.is_err());
        drop(queue);
        if is_for_thread {
            self.wake.notify_one();
        }
        for waiting in waiting {
            // Sending fails if the request no longer waits.
            let _ = waiting.send(outcome);
        }
        must_continue
    }

    pub(super) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Acquire)
    }

    fn succeeded(&self) {
        if self.is_failing() && self.is_failing.swap(false, Ordering::AcqRel) {
            tracing::info!("resumed writing the audit trail, including queued events");
        }
    }

    fn failed(&self, failed: &AppendError) {
        if !self.is_failing.swap(true, Ordering::AcqRel) {
            tracing::error!(error = error_chain(failed), "could not write audit events");
        }
    }

    /// Handles the timeout of a request. The sink does not count as failing while it writes other lines in time.
    pub(super) fn request_timed_out(&self, time_max: Duration) {
        let append_started = self.queue.lock().append_started;
        if append_started.is_none_or(|started| started.elapsed() >= time_max / 2) {
            self.timed_out(time_max);
        }
    }

    fn timed_out(&self, time_max: Duration) {
        if !self.is_failing.swap(true, Ordering::AcqRel) {
            tracing::error!(audit.write_time_max = ?time_max, "timed out writing audit events");
        }
    }
}

/// Starts the thread. Returns a receiver that completes when the thread ends.
pub(super) fn start_thread(
    shared: &Arc<Shared>,
    write_time_max: Duration,
) -> io::Result<oneshot::Receiver<()>> {
    let (end, ended) = oneshot::channel();
    let shared = Arc::clone(shared);
    // The thread is never joined: a sink that never returns must not keep the process from exiting.
    thread::Builder::new()
        .name("keywright-audit".to_owned())
        .spawn(move || {
            write_until_closed(&shared, write_time_max);
            drop(end);
        })?;
    Ok(ended)
}

fn write_until_closed(shared: &Shared, write_time_max: Duration) {
    loop {
        let queue = wait_for_work(shared, write_time_max);
        let is_closed = queue.is_closed;
        shared.write(queue, false);
        if is_closed && (shared.is_failing() || shared.queue.lock().is_settled()) {
            if shared.is_failing() {
                tracing::error!("shutting down with unwritten audit events");
            }
            return;
        }
    }
}

/// Waits until the thread has work to do and no write is in progress. While the sink is failing, also returns from time to
/// time to retry it.
fn wait_for_work(shared: &Shared, write_time_max: Duration) -> MutexGuard<'_, Queue> {
    let mut queue = shared.queue.lock();
    loop {
        let is_free = queue.sink.is_some();
        if is_free && queue.is_for_thread() {
            return queue;
        }
        let is_retried = is_free && shared.is_failing();
        if !is_retried && queue.append_started.is_none() {
            shared.wake.wait(&mut queue);
            continue;
        }
        let interval = if is_retried {
            RETRY_INTERVAL
        } else {
            WATCH_INTERVAL
        };
        let waited = shared.wake.wait_for(&mut queue, interval);
        if waited.timed_out() {
            if is_retried && queue.sink.is_some() {
                return queue;
            }
            check_blocked_append(shared, &mut queue, write_time_max);
        }
    }
}

fn check_blocked_append(shared: &Shared, queue: &mut Queue, write_time_max: Duration) {
    if queue.sink.is_some() {
        queue.append_started = None;
        return;
    }
    if let Some(runtime) = &shared.runtime {
        runtime.spawn(async {});
    }
    let blocked_for = queue.append_started.map(|begun| begun.elapsed());
    if blocked_for.is_some_and(|blocked_for| blocked_for >= write_time_max) {
        shared.timed_out(write_time_max);
    }
}

/// Maximum size of the lines of a request with few events, in bytes: about 30 events.
const FEW_EVENTS_BYTES_MAX: usize = 16 * 1024;

/// The number of actors whose lines in [`LinesByActor`] can fill the queue together.
const ACTORS_TO_FILL_QUEUE: usize = 4;

/// After this many consecutive writes for a single request each, most requests no longer wait for others.
const LONE_WRITES_MAX: u32 = 4;

/// Then only one in this many requests waits for others.
const LONE_WRITES_PER_YIELD: u32 = 16;

/// Interval between retries of a failing sink, if no request retries it earlier.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Interval between checks for a blocked append: shorter than clients wait for a response.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
