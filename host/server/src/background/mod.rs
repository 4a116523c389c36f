//! Background work of a server, from start-up to shutdown.
//!
//! Work runs under a lease (`lease_holder.rs`): of several servers with the same database, only one runs it at a time,
//! and another server can continue it. Work must be idempotent, because steps may be repeated.
//!
//! To add work, implement [`Work`] in a new file, and add it in `app.rs`.

mod lease_holder;
pub(crate) mod retention;
pub(crate) mod rotation;

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::lease_holder::{LEASE_TIME, Work, pause};
pub(crate) use self::lease_holder::{LeaseHolder, LeaseOutcome};

/// The background work of a server.
pub(crate) struct Background {
    holder: LeaseHolder,
    stop: CancellationToken,
    /// Work that has not started.
    added: Vec<Box<dyn Work>>,
    panic_pause: Duration,
    tasks: JoinSet<()>,
}

impl Background {
    /// Creates an empty set of work.
    pub(crate) fn new(holder: LeaseHolder) -> Self {
        Self {
            holder,
            stop: CancellationToken::new(),
            added: Vec::new(),
            panic_pause: PANIC_PAUSE,
            tasks: JoinSet::new(),
        }
    }

    /// Adds work. [`Self::start`] starts it.
    pub(crate) fn add(&mut self, work: impl Work) {
        self.added.push(Box::new(work));
    }

    /// Starts the added work, which runs until shutdown.
    pub(crate) fn start(&mut self) {
        for work in self.added.drain(..) {
            let stop = self.stop.clone();
            let running = run_until_shutdown(self.holder.clone(), work, stop, self.panic_pause);
            self.tasks.spawn(running);
        }
    }

    /// Signals all work to stop.
    pub(crate) fn request_stop(&self) {
        self.stop.cancel();
    }

    /// Signals all work to stop, and waits until it has stopped.
    pub(crate) async fn finish(mut self) {
        self.request_stop();
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Repeats work until shutdown, restarting it after panics.
async fn run_until_shutdown(
    holder: LeaseHolder,
    mut work: Box<dyn Work>,
    stop: CancellationToken,
    panic_pause: Duration,
) {
    loop {
        let name = work.name();
        let running = run_repeatedly(&holder, work.as_mut(), &stop);
        if catch_panic(name, running).await.is_some() || !pause(&stop, panic_pause).await {
            return;
        }
    }
}

/// Returns the result of work, or logs a panic and returns `None`.
pub(crate) async fn catch_panic<T>(name: &str, work: impl Future<Output = T>) -> Option<T> {
    // Unwinding is safe: steps must be interruptible anyway, because the process can be killed at any time.
    let ended = AssertUnwindSafe(work).catch_unwind().await;
    if ended.is_err() {
        tracing::error!(
            background.work = name,
            "background work panicked because of a bug; it is restarted after a pause"
        );
    }
    ended.ok()
}

/// Runs work at its interval, unless another server has the lease. Retries after failures. Returns when a stop is
/// requested.
async fn run_repeatedly(holder: &LeaseHolder, work: &mut dyn Work, stop: &CancellationToken) {
    let mut failures = 0;
    while !stop.is_cancelled() {
        let wait = match holder.run_under_lease(work, stop).await {
            Ok(outcome) => {
                failures = 0;
                match outcome {
                    LeaseOutcome::Ran => work.interval(),
                    LeaseOutcome::HeldElsewhere => work.interval().min(LEASE_TIME),
                }
            }
            Err(cause) => {
                let wait = failure_pause(failures);
                failures += 1;
                tracing::warn!(
                    background.work = work.name(),
                    error = &cause as &dyn std::error::Error,
                    retry_after_ms = wait.as_millis(),
                    "background work failed; retrying later"
                );
                wait
            }
        };
        pause(stop, wait).await;
    }
}

/// Returns the pause after another failure. It doubles with each failure, up to a maximum.
fn failure_pause(failures_before: u32) -> Duration {
    let pause = FAILURE_PAUSE_FIRST.saturating_mul(2_u32.saturating_pow(failures_before));
    pause.min(FAILURE_PAUSE_MAX)
}

const FAILURE_PAUSE_FIRST: Duration = Duration::from_secs(1);
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(30);
pub(crate) const PANIC_PAUSE: Duration = FAILURE_PAUSE_MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_each_failure_up_to_the_longest() {
        let seconds: Vec<u64> = (0..8)
            .map(|before| failure_pause(before).as_secs())
            .collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(failure_pause(u32::MAX), FAILURE_PAUSE_MAX);
    }
}
