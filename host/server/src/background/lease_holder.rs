//! Background work, and running it under its lease.

use std::{pin::pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use keywright_core::{
    UseCaseError,
    ports::{Clock, Identifiers, Lease, Leases},
};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// Runs work under leases that it acquires, renews and releases.
#[derive(Clone)]
pub(crate) struct LeaseHolder {
    leases: Arc<dyn Leases>,
    clock: Arc<dyn Clock>,
    identifiers: Arc<dyn Identifiers>,
    lease_time: Duration,
    renewal_interval: Duration,
    stop_time_max: Duration,
}

/// The outcome of trying to run work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseOutcome {
    /// The work completed or was stopped.
    Ran,
    /// Another server has the lease.
    HeldElsewhere,
}

impl LeaseHolder {
    pub(crate) fn new(
        leases: Arc<dyn Leases>,
        clock: Arc<dyn Clock>,
        identifiers: Arc<dyn Identifiers>,
    ) -> Self {
        Self {
            leases,
            clock,
            identifiers,
            lease_time: LEASE_TIME,
            renewal_interval: RENEWAL_INTERVAL,
            stop_time_max: STOP_TIME_MAX,
        }
    }

    /// Runs work, unless another server has its lease. Renews the lease during the run and releases it afterwards.
    /// Stops the work when the lease is lost or `stop` is cancelled.
    pub(crate) async fn run_under_lease(
        &self,
        work: &mut dyn Work,
        stop: &CancellationToken,
    ) -> Result<LeaseOutcome, UseCaseError> {
        let lease = Lease {
            name: work.name(),
            holder: self.identifiers.fresh(),
            time_max: LEASE_TIME_MAX,
        };
        let (now, ends_at) = (self.clock.now(), Instant::now() + self.lease_time);
        if !self.leases.acquire(&lease, now, self.expiry(now)).await? {
            return Ok(LeaseOutcome::HeldElsewhere);
        }
        let work_stop = stop.child_token();
        let outcome = {
            let mut running = pin!(work.run(work_stop.clone()));
            let ended = tokio::select! {
                outcome = &mut running => Some(outcome),
                () = self.renew_until_lost(&lease, ends_at) => None,
                () = stop.cancelled() => None,
            };
            if let Some(outcome) = ended {
                outcome
            } else {
                work_stop.cancel();
                let stopping = timeout(self.stop_time_max, running).await;
                stopping.unwrap_or(Ok(()))
            }
        };
        self.release(&lease).await;
        outcome.map(|()| LeaseOutcome::Ran)
    }

    /// Renews a lease that expires at `ends_at`. Returns when the lease has expired or another server has it.
    async fn renew_until_lost(&self, lease: &Lease, mut ends_at: Instant) {
        let mut renewed_at = Instant::now();
        loop {
            sleep_until(ends_at.min(renewed_at + self.renewal_interval)).await;
            renewed_at = Instant::now();
            if renewed_at >= ends_at {
                break;
            }
            let until = self.expiry(self.clock.now());
            let attempt_until = ends_at.min(renewed_at + self.renewal_interval);
            match timeout_at(attempt_until, self.leases.renew(lease, until)).await {
                Ok(Ok(true)) => ends_at = renewed_at + self.lease_time,
                Ok(Ok(false)) => break,
                Ok(Err(_)) | Err(_) => {}
            }
        }
        tracing::warn!(
            background.work = lease.name,
            "lost the lease of background work"
        );
    }

    /// Releases a lease. If that fails, the lease expires.
    async fn release(&self, lease: &Lease) {
        let _ = timeout(self.renewal_interval, self.leases.release(lease)).await;
    }

    fn expiry(&self, begin: DateTime<Utc>) -> DateTime<Utc> {
        begin + TimeDelta::from_std(self.lease_time).unwrap_or_default()
    }
}

/// The lifetime of a lease without renewal, and the maximum time between attempts to acquire it while another server
/// has it.
///
/// If a server is killed, a server that waits for the lease takes over within twice this time. A server that has
/// run the work makes its next attempt only after the work's interval.
pub(crate) const LEASE_TIME: Duration = Duration::from_secs(15);

/// The maximum remaining time of a lease. If the clock of its holder is ahead by more, another server acquires it; if by less, a
/// server waits for at most this long after the holder is killed.
const LEASE_TIME_MAX: TimeDelta = TimeDelta::minutes(5);

/// The renewal interval. Two servers never have the same lease if their clocks differ by at most [`LEASE_TIME`] minus this
/// interval: ten seconds.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);

/// Recurring background work.
#[async_trait]
pub(crate) trait Work: Send + 'static {
    /// Returns the name of the work's lease, the same on all servers and in all releases.
    fn name(&self) -> &'static str;

    /// Returns the time to wait after a run before checking for work again.
    fn interval(&self) -> Duration;

    /// Does all available work in small steps. Each step leaves the data consistent. Returns soon after `stop` is
    /// cancelled; [`STOP_TIME_MAX`] later, the run is dropped.
    ///
    /// # Errors
    /// If the work can't continue, for instance because the database is unavailable. The caller retries it after a
    /// pause.
    async fn run(&mut self, stop: CancellationToken) -> Result<(), UseCaseError>;
}

/// Waits for this time, or until `stop` is cancelled. Returns whether to continue.
pub(crate) async fn pause(stop: &CancellationToken, time: Duration) -> bool {
    timeout(time, stop.cancelled()).await.is_err()
}

const STOP_TIME_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        background::Background,
        process::{self, RandomIdentifiers},
    };
    use keywright_core::ports::RepositoryError;
    use std::sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    };
    use tokio::sync::mpsc;
    use uuid::Uuid;

    /// A single lease, in memory.
    #[derive(Default)]
    struct OneLease {
        holder: Mutex<Option<Uuid>>,
        is_unavailable: AtomicBool,
        hangs: AtomicBool,
    }

    #[async_trait]
    impl Leases for OneLease {
        async fn acquire(
            &self,
            lease: &Lease,
            now: DateTime<Utc>,
            until: DateTime<Utc>,
        ) -> Result<bool, RepositoryError> {
            assert!(now < until && until < now + lease.time_max);
            assert!(lease.time_max < TimeDelta::hours(1));
            let mut holder = self.holder.lock().unwrap();
            Ok(*holder.get_or_insert(lease.holder) == lease.holder)
        }

        async fn renew(&self, lease: &Lease, _: DateTime<Utc>) -> Result<bool, RepositoryError> {
            if self.hangs.load(Ordering::Acquire) {
                std::future::pending::<()>().await;
            }
            if self.is_unavailable.load(Ordering::Acquire) {
                return Err(RepositoryError::Inconsistent("unavailable"));
            }
            Ok(*self.holder.lock().unwrap() == Some(lease.holder))
        }

        async fn release(&self, lease: &Lease) -> Result<(), RepositoryError> {
            let mut holder = self.holder.lock().unwrap();
            holder.take_if(|holder| *holder == lease.holder);
            Ok(())
        }
    }

    /// Work that calls `begin`, ends as `ends` specifies, and returns `outcome`.
    struct TestWork<F> {
        begin: F,
        ends: Ends,
        outcome: Option<UseCaseError>,
    }

    #[derive(Clone, Copy)]
    enum Ends {
        AtOnce,
        OnRequest,
        Never,
    }

    #[async_trait]
    impl<F: FnMut() + Send + 'static> Work for TestWork<F> {
        fn name(&self) -> &'static str {
            "test"
        }

        fn interval(&self) -> Duration {
            Duration::MAX
        }

        async fn run(&mut self, stop: CancellationToken) -> Result<(), UseCaseError> {
            (self.begin)();
            match self.ends {
                Ends::AtOnce => {}
                Ends::OnRequest => stop.cancelled().await,
                Ends::Never => std::future::pending().await,
            }
            self.outcome.take().map_or(Ok(()), Err)
        }
    }

    fn holder(leases: &Arc<OneLease>) -> LeaseHolder {
        let leases: Arc<dyn Leases> = Arc::<OneLease>::clone(leases);
        LeaseHolder {
            lease_time: SHORT,
            renewal_interval: SHORT / 10,
            stop_time_max: SHORT / 10,
            ..LeaseHolder::new(leases, process::clock(), Arc::new(RandomIdentifiers))
        }
    }

    const SHORT: Duration = Duration::from_millis(20);

    /// A timeout for hanging tests.
    const HANGING: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn the_lease_is_held_during_work_and_released_after_it() {
        let leases = Arc::new(OneLease::default());
        let stop = CancellationToken::new();
        for outcome in [None, Some(UseCaseError::NotFound)] {
            let is_failure = outcome.is_some();
            let seen = Arc::clone(&leases);
            let begin = move || assert!(seen.holder.lock().unwrap().is_some());
            let mut work = TestWork {
                begin,
                ends: Ends::AtOnce,
                outcome,
            };
            let outcome = holder(&leases).run_under_lease(&mut work, &stop).await;
            assert_eq!(outcome.is_err(), is_failure);
            assert_eq!(*leases.holder.lock().unwrap(), None);
        }
    }

    #[tokio::test]
    async fn work_does_not_run_while_another_server_has_the_lease() {
        let leases = Arc::new(OneLease::default());
        *leases.holder.lock().unwrap() = Some(Uuid::nil());
        let begin: fn() = || panic!("ran without the lease");
        let mut work = TestWork {
            begin,
            ends: Ends::AtOnce,
            outcome: None,
        };
        let stop = CancellationToken::new();
        let outcome = holder(&leases).run_under_lease(&mut work, &stop).await;
        assert_eq!(outcome.unwrap(), LeaseOutcome::HeldElsewhere);
        assert_eq!(*leases.holder.lock().unwrap(), Some(Uuid::nil()));
    }

    /// Runs work that calls `happens`, and returns how long it ran.
    async fn running_time(
        happens: fn(&OneLease),
        ends: Ends,
        is_stopping: bool,
        renewal_interval: Duration,
    ) -> Duration {
        let leases = Arc::new(OneLease::default());
        let stop = CancellationToken::new();
        if is_stopping {
            stop.cancel();
        }
        let seen = Arc::clone(&leases);
        let mut work = TestWork {
            begin: move || happens(&seen),
            ends,
            outcome: None,
        };
        let holder = LeaseHolder {
            renewal_interval,
            ..holder(&leases)
        };
        let started_at = Instant::now();
        let outcome = timeout(HANGING, holder.run_under_lease(&mut work, &stop)).await;
        assert_eq!(outcome.unwrap().unwrap(), LeaseOutcome::Ran);
        started_at.elapsed()
    }

    const NOTHING: fn(&OneLease) = |_| {};
    const TAKEN: fn(&OneLease) = |leases| *leases.holder.lock().unwrap() = Some(Uuid::nil());
    const UNAVAILABLE: fn(&OneLease) =
        |leases| leases.is_unavailable.store(true, Ordering::Release);
    const HANGS: fn(&OneLease) = |leases| leases.hangs.store(true, Ordering::Release);

    #[tokio::test]
    async fn work_is_stopped_when_its_lease_is_lost_or_at_shutdown() {
        for (happens, is_stopping, stopped_after) in [
            (TAKEN, false, Duration::ZERO),
            (UNAVAILABLE, false, SHORT),
            (HANGS, false, SHORT),
            (NOTHING, true, Duration::ZERO),
        ] {
            let took = running_time(happens, Ends::OnRequest, is_stopping, SHORT / 10).await;
            assert!(took >= stopped_after, "{took:?}");
        }
    }

    #[tokio::test]
    async fn a_lease_expires_before_a_late_renewal() {
        running_time(NOTHING, Ends::OnRequest, false, HANGING * 2).await;
    }

    #[tokio::test]
    async fn work_that_does_not_stop_is_cancelled() {
        running_time(TAKEN, Ends::Never, false, SHORT / 10).await;
    }

    #[tokio::test]
    async fn work_starts_only_after_start_and_restarts_after_a_panic() {
        let leases = Arc::new(OneLease::default());
        let mut background = Background {
            panic_pause: Duration::ZERO,
            ..Background::new(holder(&leases))
        };
        let (started, mut runs) = mpsc::unbounded_channel();
        let mut count = 0;
        background.add(TestWork {
            begin: move || {
                // As if the lease had expired.
                *leases.holder.lock().unwrap() = None;
                count += 1;
                started.send(count).unwrap();
                assert!(count > 1, "panics in the first run");
            },
            ends: Ends::AtOnce,
            outcome: None,
        });
        tokio::task::yield_now().await;
        assert!(runs.try_recv().is_err());
        background.start();
        assert_eq!(runs.recv().await, Some(1));
        assert_eq!(runs.recv().await, Some(2));
        background.finish().await;
        assert_eq!(runs.recv().await, None);
    }

    #[tokio::test]
    async fn a_pause_ends_at_a_stop_request() {
        let stop = CancellationToken::new();
        assert!(pause(&stop, Duration::ZERO).await);
        stop.cancel();
        assert!(!pause(&stop, Duration::MAX).await);
    }
}
