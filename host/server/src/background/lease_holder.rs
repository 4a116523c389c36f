//! Doing a piece of work under its lease.

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::{DateTime, TimeDelta, Utc};
use keywright_core::{
    Failure,
    ports::{Clock, Identifiers, Lease, Leases},
};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::{Stop, Work, stopped};

/// A process, as one who takes leases.
#[derive(Clone)]
pub(crate) struct LeaseHolder {
    leases: Arc<dyn Leases>,
    clock: Arc<dyn Clock>,
    identifiers: Arc<dyn Identifiers>,
    lease_time: Duration,
    renewal_interval: Duration,
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
        let now = self.clock.now();
        if !self.leases.acquire(&lease, now, self.end_of(now)).await? {
            return Ok(Turn::Anothers);
        }
        let is_over = watch::Sender::new(false);
        let outcome = {
            let mut doing = pin!(work.run(Stop::told_by(&is_over)));
            let ended = tokio::select! {
                outcome = &mut doing => Some(outcome),
                () = self.keep(&lease) => None,
                () = stop.told() => None,
            };
            if let Some(outcome) = ended {
                outcome
            } else {
                is_over.send_replace(true);
                stopped(doing).await.unwrap_or(Ok(()))
            }
        };
        self.give_up(&lease).await;
        outcome.map(|()| Turn::Taken)
    }

    /// Renews a lease again and again; returns when it is lost.
    async fn keep(&self, lease: &Lease) {
        let mut renewed_at = Instant::now();
        loop {
            sleep(self.renewal_interval).await;
            let begun_at = Instant::now();
            let until = self.end_of(self.clock.now());
            let is_kept =
                match timeout(self.renewal_interval, self.leases.renew(lease, until)).await {
                    Ok(Ok(is_kept)) => {
                        renewed_at = begun_at;
                        is_kept
                    }
                    Ok(Err(_)) | Err(_) => renewed_at.elapsed() < self.lease_time,
                };
            if !is_kept {
                break;
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

/// How long a lease is good without being renewed: the longest time until another one takes over from one that was killed.
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

    /// Does something once it has the lease, and then stops when it is told to, or at once.
    struct Doing<F> {
        begin: F,
        waits: bool,
        outcome: Option<Failure>,
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
            if self.waits {
                stop.told().await;
            }
            self.outcome.take().map_or(Ok(()), Err)
        }
    }

    fn holder(leases: &Arc<OneLease>) -> LeaseHolder {
        let leases: Arc<dyn Leases> = Arc::<OneLease>::clone(leases);
        LeaseHolder {
            lease_time: Duration::from_millis(20),
            renewal_interval: Duration::from_millis(2),
            ..LeaseHolder::new(leases, Arc::new(SystemClock), Arc::new(RandomIdentifiers))
        }
    }

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
                waits: false,
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
            waits: false,
            outcome: None,
        };
        let mut stop = Stop::told_by(&never);
        let turn = holder(&leases).take_turn(&mut work, &mut stop).await;
        assert_eq!(turn.unwrap(), Turn::Anothers);
        assert_eq!(*leases.holder.lock().unwrap(), Some(Uuid::nil()));
    }

    #[tokio::test]
    async fn work_is_told_to_stop_when_the_lease_is_taken_or_not_renewed_in_time_or_at_the_end() {
        let taken = |leases: &OneLease| *leases.holder.lock().unwrap() = Some(Uuid::nil());
        let away = |leases: &OneLease| leases.is_away.store(true, Ordering::Release);
        let nothing = |_: &OneLease| {};
        for (happens, is_ending) in [
            (taken as fn(&OneLease), false),
            (away as fn(&OneLease), false),
            (nothing as fn(&OneLease), true),
        ] {
            let leases = Arc::new(OneLease::default());
            let ending = watch::Sender::new(is_ending);
            let seen = Arc::clone(&leases);
            let mut work = Doing {
                begin: move || happens(&seen),
                waits: true,
                outcome: None,
            };
            let mut stop = Stop::told_by(&ending);
            let turn = holder(&leases).take_turn(&mut work, &mut stop).await;
            assert_eq!(turn.unwrap(), Turn::Taken);
        }
    }
}
