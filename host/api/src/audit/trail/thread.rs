//! The audit trail's own thread. It writes what is left to it, and watches requests that write by themselves.
//!
//! An append blocks the thread of the runtime on which its request runs. Other threads go on, but the runtime leaves it to
//! one thread to wait for the network, and it can be the blocked one. A task that is spawned from outside wakes another
//! thread, which then waits for the network. Nothing is watched while nothing is written.

use std::{
    io,
    sync::{Arc, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tokio::sync::oneshot;

use super::queue::{Queue, Shared};

/// Starts the thread. Returns what ends with it.
///
/// # Errors
/// If it can't be started.
pub(super) fn start(
    shared: &Arc<Shared>,
    write_time_max: Duration,
) -> io::Result<oneshot::Receiver<()>> {
    let (end, ended) = oneshot::channel();
    let shared = Arc::clone(shared);
    // Nobody joins the thread: a sink that never returns must not keep the process from ending.
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

/// Waits until there is something to do for the thread, and nobody else writes. While the sink is known not to work, there
/// is an attempt from time to time also where no request asks for one.
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

/// How long after a failure there is another attempt, where no request asks for one earlier.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// How often it is looked whether an append does not end: shorter than anybody waits for a response.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);
