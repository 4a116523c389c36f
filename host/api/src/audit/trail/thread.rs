//! The audit trail's own thread.

use std::{
    io,
    sync::{Arc, MutexGuard, PoisonError, atomic::Ordering},
    thread,
    time::Duration,
};

use tokio::{runtime::Handle, sync::oneshot};

use super::{Queue, Shared};

/// Starts the thread. `runtime` is that of the requests that write by themselves, if they do. Returns what ends with the
/// thread.
///
/// # Errors
/// If it can't be started.
pub(super) fn start(
    shared: &Arc<Shared>,
    runtime: Option<Handle>,
    write_time_max: Duration,
) -> io::Result<oneshot::Receiver<()>> {
    let (end, ended) = oneshot::channel();
    let shared = Arc::clone(shared);
    let watch = Watch {
        runtime,
        write_time_max,
        appends: 0,
        blocked_for: Duration::ZERO,
    };
    // Nobody joins the thread: a sink that never returns must not keep the process from ending.
    thread::Builder::new()
        .name("keywright-audit".to_owned())
        .spawn(move || {
            write_until_closed(&shared, watch);
            drop(end);
        })?;
    Ok(ended)
}

/// Writes what is left to the thread, until the trail is closed.
fn write_until_closed(shared: &Shared, mut watch: Watch) {
    loop {
        let mut queue = next(shared, &mut watch);
        let is_closed = queue.is_closed;
        queue.is_thread_wanted = false;
        if std::mem::take(&mut queue.must_reopen) {
            queue.is_writing = true;
            drop(queue);
            match shared.sink().reopen() {
                Ok(()) => tracing::info!("the audit trail is opened anew"),
                Err(cause) => {
                    tracing::error!(error = %cause, "the audit trail could not be opened anew");
                }
            }
            queue = shared.queue();
        }
        let outcome = shared.write(queue);
        if is_closed {
            if outcome.is_err() {
                tracing::error!("the server ends with audit events that could not be written");
            }
            return;
        }
    }
}

/// Waits until there is something to do for the thread, and nobody else writes. While the sink is known not to work, there
/// is an attempt from time to time also where no request asks for one.
fn next<'a>(shared: &'a Shared, watch: &mut Watch) -> MutexGuard<'a, Queue> {
    let mut queue = shared.queue();
    loop {
        let is_wanted = queue.is_thread_wanted || queue.must_reopen || queue.is_closed;
        if is_wanted && !queue.is_writing {
            return queue;
        }
        let is_failing = shared.is_failing.load(Ordering::Acquire) && !queue.is_writing;
        let waited = match (is_failing, queue.is_watched) {
            (true, _) => shared.wake.wait_timeout(queue, RETRY_INTERVAL),
            (false, true) => shared.wake.wait_timeout(queue, WATCH_INTERVAL),
            (false, false) => {
                let woken = shared.wake.wait(queue);
                queue = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
        };
        let (locked, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        queue = locked;
        if timeout.timed_out() {
            if is_failing && !queue.is_writing {
                return queue;
            }
            watch.look(shared, &mut queue);
        }
    }
}

/// Watches requests that write by themselves.
///
/// An append blocks the thread of the runtime on which its request runs. Other threads go on, but the runtime leaves it to
/// one thread to wait for the network, and it can be the blocked one. A task that is spawned from outside wakes another
/// thread, which then waits for the network. Nothing is watched while nothing is written.
pub(super) struct Watch {
    runtime: Option<Handle>,
    write_time_max: Duration,
    /// How many appends had begun at the last look.
    appends: u64,
    /// For how long the last of them has been seen not to end.
    blocked_for: Duration,
}

impl Watch {
    fn look(&mut self, shared: &Shared, queue: &mut Queue) {
        if self.appends != queue.appends {
            self.appends = queue.appends;
            self.blocked_for = Duration::ZERO;
        } else if !queue.is_writing {
            queue.is_watched = false;
        } else {
            self.blocked_for += WATCH_INTERVAL;
            if let Some(runtime) = &self.runtime {
                runtime.spawn(async {});
            }
            if self.blocked_for >= self.write_time_max
                && !shared.is_failing.swap(true, Ordering::AcqRel)
            {
                let time_max = self.write_time_max;
                tracing::error!("the audit trail has not been written for {time_max:?}");
            }
        }
    }
}

/// How long after a failure there is another attempt, where no request asks for one earlier.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// How often it is looked whether an append does not end: shorter than anybody waits for a response.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);
