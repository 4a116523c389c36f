//! Doing a piece of work under its lease.

use std::{pin::pin, sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use keywright_core::{
    Failure,
    ports::{Clock, Identifiers, Lease, Leases},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout, timeout_at},
};

use super::{STOP_TIME_MAX, Stop, Work};

/// A process, as one who takes leases.
#[derive(Clone)]
pub(crate) struct LeaseHolder {
    leases: Arc<dyn Leases>,
    clock: Arc<dyn Clock>,
    identifiers: Arc<dyn Identifiers>,
    lease_time: Duration,
    renewal_interval: Duration,
    stop_time_max: Duration,
}

/// What came of wanting to do a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It was done, or told to stop.
    Taken,
    /// Another one has the lease.
    Anothers,
}

impl LeaseHolder {
    /// Takes leases here, by this clock.
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

    /// Does a piece of work, unless another one has its lease. The lease is renewed meanwhile and given up at the end; the work
    /// is told to stop when it is lost, or when `stop` says so.
    ///
    /// # Errors
    /// When the lease can't be asked for, or the work fails.
    pub(crate) async fn take_turn(
        &self,
        work: &mut dyn Work,
        stop: &mut Stop,
    ) -> Result<Turn, Failure> {
        let lease = Lease {
            name: work.name(),
            holder: self.identifiers.fresh(),
        };
        let (now, ends_at) = (self.clock.now(), Instant::now() + self.lease_time);
        if !self.leases.acquire(&lease, now, self.end_of(now)).await? {
            return Ok(Turn::Anothers);
        }
        let is_over = watch::Sender::new(false);
        let outcome = {
            let mut doing = pin!(work.run(Stop::told_by(&is_over)));
            let ended = tokio::select! {
                outcome = &mut doing => Some(outcome),
                () = self.keep(&lease, ends_at) => None,
                () = stop.told() => None,
            };
            if let Some(outcome) = ended {
                outcome
            } else {
                is_over.send_replace(true);
                let stopping = timeout(self.stop_time_max, doing).await;
                stopping.unwrap_or(Ok(()))
            }
        };
        self.give_up(&lease).await;
        outcome.map(|()| Turn::Taken)
    }

    /// Renews a lease that ends then, again and again; returns when it has ended, or another one has it.
    async fn keep(&self, lease: &Lease, mut ends_at: Instant) {
        let mut renewed_at = Instant::now();
        loop {
            sleep_until(ends_at.min(renewed_at + self.renewal_interval)).await;
            renewed_at = Instant::now();
            if renewed_at >= ends_at {
                break;
            }
            let until = self.end_of(self.clock.now());
            let tried_until = ends_at.min(renewed_at + self.renewal_interval);
            match timeout_at(tried_until, self.leases.renew(lease, until)).await {
                Ok(Ok(true)) => ends_at = renewed_at + self.lease_time,
                Ok(Ok(false)) => break,
                Ok(Err(_)) | Err(_) => {}
            }
        }
        tracing::warn!(background.work = lease.name, "its lease is lost");
    }

    /// Gives a lease up. Where that can't be done, it ends by itself.
    async fn give_up(&self, lease: &Lease) {
        let _ = timeout(self.renewal_interval, self.leases.release(lease)).await;
    }

    fn end_of(&self, begin: DateTime<Utc>) -> DateTime<Utc> {
        begin + TimeDelta::from_std(self.lease_time).unwrap_or_default()
    }
}

/// How long a lease is good without being renewed, and how often, at least, those look who wait for another's to end. So where
/// one was killed, another one takes over after twice this at the latest, or after its work's interval where it did not wait.
pub(crate) const LEASE_TIME: Duration = Duration::from_secs(15);

/// How often it is renewed. What is left is how much clocks may differ until two have one lease: ten seconds.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    };

    use async_trait::async_trait;
    use keywright_core::ports::RepositoryFailure;
    use uuid::Uuid;

    use super::*;
    use crate::wiring::{RandomIdentifiers, SystemClock};

    /// The lease of one name, in memory.
    #[derive(Default)]
    struct OneLease {
        holder: Mutex<Option<Uuid>>,
        is_away: AtomicBool,
        hangs: AtomicBool,
    }

    #[async_trait]
    impl Leases for OneLease {
        async fn acquire(
            &self,
            lease: &Lease,
            now: DateTime<Utc>,
            until: DateTime<Utc>,
        ) -> Result<bool, RepositoryFailure> {
            assert!(now < until);
            let mut holder = self.holder.lock().unwrap();
            Ok(*holder.get_or_insert(lease.holder) == lease.holder)
        }

        async fn renew(&self, lease: &Lease, _: DateTime<Utc>) -> Result<bool, RepositoryFailure> {
            if self.hangs.load(Ordering::Acquire) {
                std::future::pending::<()>().await;
            }
            if self.is_away.load(Ordering::Acquire) {
                return Err(RepositoryFailure::Inconsistent("away"));
            }
            Ok(*self.holder.lock().unwrap() == Some(lease.holder))
        }

        async fn release(&self, lease: &Lease) -> Result<(), RepositoryFailure> {
            let mut holder = self.holder.lock().unwrap();
            holder.take_if(|holder| *holder == lease.holder);
            Ok(())
        }
    }

    /// Does something once it has the lease, and then ends.
    struct Doing<F> {
        begin: F,
        ends: Ends,
        outcome: Option<Failure>,
    }

    #[derive(Clone, Copy)]
    enum Ends {
        AtOnce,
        WhenTold,
        Never,
    }

    #[async_trait]
    impl<F: FnMut() + Send + 'static> Work for Doing<F> {
        fn name(&self) -> &'static str {
            "test"
        }

        fn interval(&self) -> Duration {
            Duration::MAX
        }

        async fn run(&mut self, mut stop: Stop) -> Result<(), Failure> {
            (self.begin)();
            match self.ends {
                Ends::AtOnce => {}
                Ends::WhenTold => stop.told().await,
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
            ..LeaseHolder::new(leases, Arc::new(SystemClock), Arc::new(RandomIdentifiers))
        }
    }

    const SHORT: Duration = Duration::from_millis(20);

    /// What takes longer than that hangs.
    const HANGING: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn a_turn_has_the_lease_and_gives_it_up_however_it_ends() {
        let leases = Arc::new(OneLease::default());
        let never = watch::Sender::new(false);
        let mut stop = Stop::told_by(&never);
        for outcome in [None, Some(Failure::NotFound)] {
            let is_failure = outcome.is_some();
            let seen = Arc::clone(&leases);
            let begin = move || assert!(seen.holder.lock().unwrap().is_some());
            let mut work = Doing {
                begin,
                ends: Ends::AtOnce,
                outcome,
            };
            let turn = holder(&leases).take_turn(&mut work, &mut stop).await;
            assert_eq!(turn.is_err(), is_failure);
            assert_eq!(*leases.holder.lock().unwrap(), None);
        }
    }

    #[tokio::test]
    async fn nothing_is_done_while_another_one_has_the_lease() {
        let leases = Arc::new(OneLease::default());
        *leases.holder.lock().unwrap() = Some(Uuid::nil());
        let never = watch::Sender::new(false);
        let begin: fn() = || panic!("it is another's turn");
        let mut work = Doing {
            begin,
            ends: Ends::AtOnce,
            outcome: None,
        };
        let mut stop = Stop::told_by(&never);
        let turn = holder(&leases).take_turn(&mut work, &mut stop).await;
        assert_eq!(turn.unwrap(), Turn::Anothers);
        assert_eq!(*leases.holder.lock().unwrap(), Some(Uuid::nil()));
    }

    /// Has this happen as soon as work has begun that ends in this way, and returns how long it was done.
    async fn time_of_turn(
        happens: fn(&OneLease),
        ends: Ends,
        is_ending: bool,
        renewal_interval: Duration,
    ) -> Duration {
        let leases = Arc::new(OneLease::default());
        let ending = watch::Sender::new(is_ending);
        let seen = Arc::clone(&leases);
        let mut work = Doing {
            begin: move || happens(&seen),
            ends,
            outcome: None,
        };
        let mut stop = Stop::told_by(&ending);
        let holder = LeaseHolder {
            renewal_interval,
            ..holder(&leases)
        };
        let begun = Instant::now();
        let turn = timeout(HANGING, holder.take_turn(&mut work, &mut stop)).await;
        assert_eq!(turn.unwrap().unwrap(), Turn::Taken);
        begun.elapsed()
    }

    const NOTHING: fn(&OneLease) = |_| {};
    const TAKEN: fn(&OneLease) = |leases| *leases.holder.lock().unwrap() = Some(Uuid::nil());
    const AWAY: fn(&OneLease) = |leases| leases.is_away.store(true, Ordering::Release);
    const HANGS: fn(&OneLease) = |leases| leases.hangs.store(true, Ordering::Release);

    #[tokio::test]
    async fn work_is_told_to_stop_when_the_lease_is_taken_or_has_ended_or_at_the_end() {
        for (happens, is_ending, told_after) in [
            (TAKEN, false, Duration::ZERO),
            (AWAY, false, SHORT),
            (HANGS, false, SHORT),
            (NOTHING, true, Duration::ZERO),
        ] {
            let took = time_of_turn(happens, Ends::WhenTold, is_ending, SHORT / 10).await;
            assert!(took >= told_after, "{took:?}");
        }
    }

    #[tokio::test]
    async fn a_lease_ends_also_where_its_renewal_would_come_later() {
        time_of_turn(NOTHING, Ends::WhenTold, false, HANGING * 2).await;
    }

    #[tokio::test]
    async fn work_that_does_not_stop_is_given_up_in_the_end() {
        time_of_turn(TAKEN, Ends::Never, false, SHORT / 10).await;
    }
}
