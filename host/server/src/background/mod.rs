//! Background work of a server, from start-up to shutdown.
//!
//! Work runs under a lease (`lease_holder.rs`): only one of several servers with the same database does it at a time,
//! and another server can continue it. Work must tolerate being done more than once.
//!
//! To add work, implement [`Work`] in a file of its own, and let `wiring.rs` add it.

mod lease_holder;
pub(crate) mod retention;
pub(crate) mod rotation;

use std::{panic::AssertUnwindSafe, time::Duration};

use async_trait::async_trait;
use futures_util::FutureExt;
use keywright_core::Failure;
use tokio::{sync::watch, task::JoinSet, time::sleep};

pub(crate) use lease_holder::{LEASE_TIME, LeaseHolder, LeaseOutcome};

/// Recurring background work.
#[async_trait]
pub(crate) trait Work: Send + 'static {
    /// The name of its lease, the same on all servers and in all releases.
    fn name(&self) -> &'static str;

    /// The time to wait after a run before checking for work again.
    fn interval(&self) -> Duration;

    /// Does all available work, in small steps, each of which leaves the data consistent. Returns soon after it is
    /// asked to stop: after [`STOP_TIME_MAX`] it is cancelled.
    ///
    /// # Errors
    /// If the work can't continue, for instance because the database is unavailable. It is retried after a pause.
    async fn run(&mut self, stop: Stop) -> Result<(), Failure>;
}

/// The background work of a server.
pub(crate) struct Background {
    holder: LeaseHolder,
    is_ending: watch::Sender<bool>,
    /// Work that has not started.
    added: Vec<Box<dyn Work>>,
    panic_pause: Duration,
    tasks: JoinSet<()>,
}

/// Signals work to stop.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Background {
    /// Creates an empty set of work.
    pub(crate) fn new(holder: LeaseHolder) -> Self {
        Self {
            holder,
            is_ending: watch::Sender::new(false),
            added: Vec::new(),
            panic_pause: PANIC_PAUSE,
            tasks: JoinSet::new(),
        }
    }

    /// Adds work, to be started with [`Self::begin`].
    pub(crate) fn add(&mut self, work: impl Work) {
        self.added.push(Box::new(work));
    }

    /// Starts the added work, which runs until shutdown.
    pub(crate) fn begin(&mut self) {
        for work in self.added.drain(..) {
            let stop = Stop::requested_by(&self.is_ending);
            let running = run_until_shutdown(self.holder.clone(), work, stop, self.panic_pause);
            self.tasks.spawn(running);
        }
    }

    /// Asks all work to stop.
    pub(crate) fn tell_to_stop(&self) {
        self.is_ending.send_replace(true);
    }

    /// Asks all work to stop, and waits until it has stopped.
    pub(crate) async fn finish(mut self) {
        self.tell_to_stop();
        while self.tasks.join_next().await.is_some() {}
    }
}

impl Stop {
    /// Stops when the channel's value becomes true.
    pub(crate) fn requested_by(is_over: &watch::Sender<bool>) -> Self {
        Self(is_over.subscribe())
    }

    /// Returns whether to stop.
    pub(crate) fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when it is time to stop.
    pub(crate) async fn requested(&mut self) {
        // An error means that the sender was dropped.
        let _ = self.0.wait_for(|is_requested| *is_requested).await;
    }

    /// Waits for this time, or until it is time to stop. Returns whether to continue.
    pub(crate) async fn pause(&mut self, time: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.requested() => false,
            () = sleep(time) => true,
        }
    }
}

/// Repeats work until shutdown, restarting it after panics.
async fn run_until_shutdown(
    holder: LeaseHolder,
    mut work: Box<dyn Work>,
    mut stop: Stop,
    panic_pause: Duration,
) {
    loop {
        let name = work.name();
        let running = run_repeatedly(&holder, work.as_mut(), stop.clone());
        if catch_panic(name, running).await.is_some() || !stop.pause(panic_pause).await {
            return;
        }
    }
}

/// Returns the result of work, or `None` if it panics, which is logged.
pub(crate) async fn catch_panic<T>(name: &str, work: impl Future<Output = T>) -> Option<T> {
    // Steps are safe to interrupt, because the process can be killed at any time.
    let ended = AssertUnwindSafe(work).catch_unwind().await;
    if ended.is_err() {
        tracing::error!(
            background.work = name,
            "background work panicked because of a bug; it is restarted after a pause"
        );
    }
    ended.ok()
}

/// Runs work whenever it is due and no other server does it.
async fn run_repeatedly(holder: &LeaseHolder, work: &mut dyn Work, mut stop: Stop) {
    let mut failures = Failures::default();
    while !stop.is_requested() {
        let pause = match holder.run_under_lease(work, &mut stop).await {
            Ok(turn) => {
                failures = Failures::default();
                match turn {
                    LeaseOutcome::Ran => work.interval(),
                    LeaseOutcome::HeldElsewhere => work.interval().min(LEASE_TIME),
                }
            }
            Err(cause) => {
                let pause = failures.next_pause();
                tracing::warn!(
                    background.work = work.name(),
                    error = &cause as &dyn std::error::Error,
                    "background work failed; retrying in {pause:?}"
                );
                pause
            }
        };
        stop.pause(pause).await;
    }
}

/// Consecutive failures.
#[derive(Default)]
struct Failures {
    count: u32,
}

impl Failures {
    /// Returns the pause after another failure, which doubles up to a maximum.
    fn next_pause(&mut self) -> Duration {
        let pause = FAILURE_PAUSE_FIRST.saturating_mul(1 << self.count.min(DOUBLINGS_MAX));
        self.count = self.count.saturating_add(1);
        pause.min(FAILURE_PAUSE_MAX)
    }
}

/// Maximum time for work to stop.
pub(crate) const STOP_TIME_MAX: Duration = Duration::from_secs(5);

/// The pauses after failures.
const FAILURE_PAUSE_FIRST: Duration = Duration::from_secs(1);
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(30);
const DOUBLINGS_MAX: u32 = 8;

/// The pause after a panic.
pub(crate) const PANIC_PAUSE: Duration = FAILURE_PAUSE_MAX;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chrono::{DateTime, Utc};
    use keywright_core::ports::{Lease, Leases, RepositoryFailure};
    use tokio::sync::mpsc;

    use super::*;
    use crate::process::{self, RandomIdentifiers};

    #[test]
    fn pauses_grow_with_each_failure_up_to_the_longest() {
        let mut failures = Failures::default();
        let seconds: Vec<u64> = (0..8).map(|_| failures.next_pause().as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30, 30]);
        failures.count = u32::MAX;
        assert_eq!(failures.next_pause(), FAILURE_PAUSE_MAX);
    }

    /// Panics in its first run.
    struct Panicking {
        runs: usize,
        started: mpsc::UnboundedSender<usize>,
    }

    #[async_trait]
    impl Work for Panicking {
        fn name(&self) -> &'static str {
            "panicking"
        }

        fn interval(&self) -> Duration {
            Duration::MAX
        }

        async fn run(&mut self, _: Stop) -> Result<(), Failure> {
            self.runs += 1;
            self.started.send(self.runs).unwrap();
            assert!(self.runs > 1, "panics in the first run");
            Ok(())
        }
    }

    /// Leases that are always granted.
    struct Free;

    #[async_trait]
    impl Leases for Free {
        async fn acquire(
            &self,
            _: &Lease,
            _: DateTime<Utc>,
            _: DateTime<Utc>,
        ) -> Result<bool, RepositoryFailure> {
            Ok(true)
        }

        async fn renew(&self, _: &Lease, _: DateTime<Utc>) -> Result<bool, RepositoryFailure> {
            Ok(true)
        }

        async fn release(&self, _: &Lease) -> Result<(), RepositoryFailure> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn work_starts_only_after_begin_and_restarts_after_a_panic() {
        let (clock, identifiers) = (process::clock(), Arc::new(RandomIdentifiers));
        let mut background = Background {
            panic_pause: Duration::ZERO,
            ..Background::new(LeaseHolder::new(Arc::new(Free), clock, identifiers))
        };
        let (started, mut runs) = mpsc::unbounded_channel();
        background.add(Panicking { runs: 0, started });
        tokio::task::yield_now().await;
        assert!(runs.try_recv().is_err());
        background.begin();
        assert_eq!(runs.recv().await, Some(1));
        assert_eq!(runs.recv().await, Some(2));
        background.finish().await;
        assert_eq!(runs.recv().await, None);
    }

    #[tokio::test]
    async fn a_pause_ends_at_a_stop_request_or_without_a_sender() {
        let ending = watch::Sender::new(false);
        let mut stop = Stop::requested_by(&ending);
        assert!(!stop.is_requested());
        assert!(stop.pause(Duration::ZERO).await);
        ending.send_replace(true);
        assert!(stop.is_requested());
        assert!(!stop.pause(Duration::MAX).await);
        let mut stop = Stop::requested_by(&watch::Sender::new(false));
        assert!(!stop.pause(Duration::MAX).await);
    }
}
