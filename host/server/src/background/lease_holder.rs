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
        if !self.leases.acquire(&lease, now, end_of(now)).await? {
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
            match ended {
                Some(outcome) => outcome,
                None => {
                    is_over.send_replace(true);
                    stopped(doing).await.unwrap_or(Ok(()))
                }
            }
        };
        self.give_up(&lease).await;
        outcome.map(|()| Turn::Taken)
    }

    /// Renews a lease again and again; returns when it is lost.
    async fn keep(&self, lease: &Lease) {
        let mut renewed_at = Instant::now();
        loop {
            sleep(RENEWAL_INTERVAL).await;
            let begun_at = Instant::now();
            let until = end_of(self.clock.now());
            match timeout(RENEWAL_INTERVAL, self.leases.renew(lease, until)).await {
                Ok(Ok(true)) => renewed_at = begun_at,
                Ok(Ok(false)) => break,
                Ok(Err(_)) | Err(_) if renewed_at.elapsed() < LEASE_TIME => {}
                Ok(Err(_)) | Err(_) => break,
            }
        }
        tracing::warn!(background.work = lease.name, "its lease is lost");
    }

    /// Gives a lease up. Where that can't be done, it ends by itself.
    async fn give_up(&self, lease: &Lease) {
        let _ = timeout(RENEWAL_INTERVAL, self.leases.release(lease)).await;
    }
}

fn end_of(begin: DateTime<Utc>) -> DateTime<Utc> {
    begin + TimeDelta::from_std(LEASE_TIME).unwrap_or_default()
}

/// How long a lease is good without being renewed: the longest time until another one takes over from one that was killed.
pub(crate) const LEASE_TIME: Duration = Duration::from_secs(15);

/// How often it is renewed. What is left is how much clocks may differ until two have one lease: ten seconds.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(5);
