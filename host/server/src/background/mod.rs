//! Work that a server does beside its requests, from its start to its end.
//!
//! Each piece of work is done under a lease (`lease_holder.rs`): of several servers on one database one does it at a time, and
//! another one goes on where that one has gone. What is done twice all the same must do no harm.
//!
//! To add a piece of work: implement [`Work`] in a file of its own, and have `wiring.rs` add it.

mod lease_holder;
pub(crate) mod retention;
pub(crate) mod rotation;

use std::{panic::AssertUnwindSafe, time::Duration};

use async_trait::async_trait;
use futures_util::FutureExt;
use keywright_core::Failure;
use tokio::{sync::watch, task::JoinSet, time::sleep};

pub(crate) use lease_holder::{LEASE_TIME, LeaseHolder, Turn};

/// A piece of work that is done again and again.
#[async_trait]
pub(crate) trait Work: Send + 'static {
    /// What its lease is called, the same on all servers and in all versions of the program.
    fn name(&self) -> &'static str;

    /// How long to wait, after it was done, before looking again whether there is something to do.
    fn interval(&self) -> Duration;

    /// Does all that there is to do, in small steps, each of which leaves everything in order. Where it is told to stop, it
    /// returns soon: after [`STOP_TIME_MAX`] it is given up wherever it is.
    ///
    /// # Errors
    /// When it can't go on, for instance because the database is away. It is begun anew after a pause.
    async fn run(&mut self, stop: Stop) -> Result<(), Failure>;
}

/// The work that a server does beside its requests.
pub(crate) struct Background {
    holder: LeaseHolder,
    is_ending: watch::Sender<bool>,
    /// What has not begun.
    added: Vec<Box<dyn Work>>,
    broken_pause: Duration,
    tasks: JoinSet<()>,
}

/// Tells a piece of work when to stop.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Background {
    /// No work so far.
    pub(crate) fn new(holder: LeaseHolder) -> Self {
        Self {
            holder,
            is_ending: watch::Sender::new(false),
            added: Vec::new(),
            broken_pause: BROKEN_PAUSE,
            tasks: JoinSet::new(),
        }
    }

    /// Adds a piece of work, which is to begin with the others.
    pub(crate) fn add(&mut self, work: impl Work) {
        self.added.push(Box::new(work));
    }

    /// Begins what was added, which goes on until the end of the server.
    pub(crate) fn begin(&mut self) {
        for work in self.added.drain(..) {
            let stop = Stop::told_by(&self.is_ending);
            let going_on = go_on_unbroken(self.holder.clone(), work, stop, self.broken_pause);
            self.tasks.spawn(going_on);
        }
    }

    /// Tells all work to stop.
    pub(crate) fn tell_to_stop(&self) {
        self.is_ending.send_replace(true);
    }

    /// Tells all work to stop, and waits until it has.
    pub(crate) async fn finish(mut self) {
        self.tell_to_stop();
        while self.tasks.join_next().await.is_some() {}
    }
}

impl Stop {
    /// Told by this one, when it becomes true.
    pub(crate) fn told_by(is_over: &watch::Sender<bool>) -> Self {
        Self(is_over.subscribe())
    }

    /// Whether to stop.
    pub(crate) fn is_told(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when it is time to stop.
    pub(crate) async fn told(&mut self) {
        // An error says that nobody is left who could tell.
        let _ = self.0.wait_for(|is_told| *is_told).await;
    }

    /// Waits for so long, or until it is time to stop. Whether to go on.
    pub(crate) async fn pause(&mut self, time: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.told() => false,
            () = sleep(time) => true,
        }
    }
}

/// Does a piece of work until the end of the server, also where it breaks off.
async fn go_on_unbroken(
    holder: LeaseHolder,
    mut work: Box<dyn Work>,
    mut stop: Stop,
    broken_pause: Duration,
) {
    loop {
        let name = work.name();
        let going_on = go_on(&holder, work.as_mut(), stop.clone());
        if unless_broken(name, going_on).await.is_some() || !stop.pause(broken_pause).await {
            return;
        }
    }
}

/// What comes of work; none when it breaks off by a panic, which the log says at once.
pub(crate) async fn unless_broken<T>(name: &str, work: impl Future<Output = T>) -> Option<T> {
    // Whatever was changed half is put right, or begun anew, by the next step: steps end by a kill as well.
    let ended = AssertUnwindSafe(work).catch_unwind().await;
    if ended.is_err() {
        tracing::error!(
            background.work = name,
            "work in the background broke off by a mistake of this program; it is begun anew after a pause"
        );
    }
    ended.ok()
}

/// Does a piece of work whenever its time has come and nobody else does it.
async fn go_on(holder: &LeaseHolder, work: &mut dyn Work, mut stop: Stop) {
    let mut failures = Failures::default();
    while !stop.is_told() {
        let pause = match holder.take_turn(work, &mut stop).await {
            Ok(turn) => {
                failures = Failures::default();
                match turn {
                    Turn::Taken => work.interval(),
                    Turn::Anothers => work.interval().min(LEASE_TIME),
                }
            }
            Err(cause) => {
                let pause = failures.next_pause();
                tracing::warn!(
                    background.work = work.name(),
                    error = &cause as &dyn std::error::Error,
                    "work in the background could not be done; it is tried again in {pause:?}"
                );
                pause
            }
        };
        stop.pause(pause).await;
    }
}

/// Failures in a row.
#[derive(Default)]
struct Failures {
    count: u32,
}

impl Failures {
    /// The pause after one more: each is twice as long as the one before, up to a longest one.
    fn next_pause(&mut self) -> Duration {
        let pause = FAILURE_PAUSE_FIRST.saturating_mul(1 << self.count.min(DOUBLINGS_MAX));
        self.count = self.count.saturating_add(1);
        pause.min(FAILURE_PAUSE_MAX)
    }
}

/// How long work may take to stop.
pub(crate) const STOP_TIME_MAX: Duration = Duration::from_secs(5);

/// The pauses after failures.
const FAILURE_PAUSE_FIRST: Duration = Duration::from_secs(1);
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(30);
const DOUBLINGS_MAX: u32 = 8;

/// The pause after work broke off.
pub(crate) const BROKEN_PAUSE: Duration = FAILURE_PAUSE_MAX;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chrono::{DateTime, Utc};
    use keywright_core::ports::{Lease, Leases, RepositoryFailure};
    use tokio::sync::mpsc;

    use super::*;
    use crate::wiring::{RandomIdentifiers, SystemClock};

    #[test]
    fn pauses_grow_with_each_failure_up_to_the_longest() {
        let mut failures = Failures::default();
        let seconds: Vec<u64> = (0..8).map(|_| failures.next_pause().as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30, 30]);
        failures.count = u32::MAX;
        assert_eq!(failures.next_pause(), FAILURE_PAUSE_MAX);
    }

    /// Breaks off when it is done first, and then not any more.
    struct Breaking {
        runs: usize,
        told: mpsc::UnboundedSender<usize>,
    }

    #[async_trait]
    impl Work for Breaking {
        fn name(&self) -> &'static str {
            "breaking"
        }

        fn interval(&self) -> Duration {
            Duration::MAX
        }

        async fn run(&mut self, _: Stop) -> Result<(), Failure> {
            self.runs += 1;
            self.told.send(self.runs).unwrap();
            assert!(self.runs > 1, "it breaks off");
            Ok(())
        }
    }

    /// Leases that everybody gets.
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
    async fn work_begins_when_it_is_told_to_and_anew_when_it_breaks_off() {
        let (clock, identifiers) = (Arc::new(SystemClock), Arc::new(RandomIdentifiers));
        let mut background = Background {
            broken_pause: Duration::ZERO,
            ..Background::new(LeaseHolder::new(Arc::new(Free), clock, identifiers))
        };
        let (told, mut runs) = mpsc::unbounded_channel();
        background.add(Breaking { runs: 0, told });
        tokio::task::yield_now().await;
        assert!(runs.try_recv().is_err());
        background.begin();
        assert_eq!(runs.recv().await, Some(1));
        assert_eq!(runs.recv().await, Some(2));
        background.finish().await;
        assert_eq!(runs.recv().await, None);
    }

    #[tokio::test]
    async fn a_pause_ends_when_it_is_time_to_stop_also_when_nobody_is_left_to_tell() {
        let ending = watch::Sender::new(false);
        let mut stop = Stop::told_by(&ending);
        assert!(!stop.is_told());
        assert!(stop.pause(Duration::ZERO).await);
        ending.send_replace(true);
        assert!(stop.is_told());
        assert!(!stop.pause(Duration::MAX).await);
        let mut stop = Stop::told_by(&watch::Sender::new(false));
        assert!(!stop.pause(Duration::MAX).await);
    }
}
