//! The audit trail's own thread. It writes the events that requests leave to it, and watches requests that write.
//!
//! An append blocks the runtime's thread on which its request runs. Other threads continue, but only one thread of the
//! runtime polls the network, and that may be the blocked one. Spawning a task from outside the runtime wakes another
//! thread, which then polls the network. Nothing is watched while no append is in progress.

use std::{
    io,
    sync::{Arc, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tokio::sync::oneshot;

use super::queue::{Queue, Shared};

/// Starts the thread. Returns a receiver that completes when the thread ends.
///
/// # Errors
/// If it can't be started.
pub(super) fn start(
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
        let queue = next(shared, write_time_max);
        let is_closed = queue.is_closed;
        shared.write(queue);
        if is_closed {
            if shared.is_failing() {
                tracing::error!("the server ends with audit events that could not be written");
            }
            return;
        }
    }
}

/// Waits until the thread has work to do and no write is in progress. While the sink is failing, also returns from time to
/// time to retry it.
fn next(shared: &Shared, write_time_max: Duration) -> MutexGuard<'_, Queue> {
    let mut queue = shared.queue();
    loop {
        let is_free = queue.sink.is_some();
        if is_free && queue.is_for_thread() {
            return queue;
        }
        let is_retried = is_free && shared.is_failing();
        if !is_retried && queue.append_begun.is_none() {
            let woken = shared.wake.wait(queue);
            queue = woken.unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        let interval = if is_retried {
            RETRY_INTERVAL
        } else {
            WATCH_INTERVAL
        };
        let waited = shared.wake.wait_timeout(queue, interval);
        let (locked, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        queue = locked;
        if waited.timed_out() {
            if is_retried && queue.sink.is_some() {
                return queue;
            }
            watch(shared, &mut queue, write_time_max);
        }
    }
}

fn watch(shared: &Shared, queue: &mut Queue, write_time_max: Duration) {
    if queue.sink.is_some() {
        queue.append_begun = None;
        return;
    }
    if let Some(runtime) = &shared.runtime {
        runtime.spawn(async {});
    }
    let blocked_for = queue.append_begun.map(|begun| begun.elapsed());
    if blocked_for.is_some_and(|blocked_for| blocked_for >= write_time_max) {
        shared.timed_out(write_time_max);
    }
}

/// Interval between retries of a failing sink, if no request retries it earlier.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Interval between checks for a blocked append: shorter than clients wait for a response.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);
