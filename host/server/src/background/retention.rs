//! Deletes versions according to the retention policies, at intervals.
//!
//! A server that completes a run extends the pause lease to the time of the next run, and does not release it. No
//! server starts a run before this lease expires. So there is one run per interval, no matter how many servers there
//! are and how often they restart.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use keywright_api::{ReadOnlyMode, audit::AuditTrail};
use keywright_core::{
    UseCaseError,
    credential::Credentials,
    ports::{Clock, Lease, Leases, RepositoryError, RetentionClock, RetentionTrail},
    retention::{ClockWatch, Retention, RetentionError},
};
use keywright_storage::Database;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::lease_holder::{LEASE_TIME, Work, pause};
use crate::{
    config::Config,
    measurements::{
        RetentionOutcome, retention_clock_checked, retention_run, retention_versions_deleted,
    },
    started::StartupError,
};

/// Recurring work that applies the retention policies.
pub(crate) struct RetentionWork {
    retention: Retention,
    leases: Arc<dyn Leases>,
    clock: Arc<dyn Clock>,
    clock_check: ClockCheck,
    interval: Duration,
    read_only: ReadOnlyMode,
    /// The next time to check whether a run is due.
    check_due_at: Instant,
}

/// Compares the clock with the last time that any server recorded.
struct ClockCheck {
    record: Arc<dyn RetentionClock>,
    watch: ClockWatch,
    began_at: Instant,
    /// The time of the next check. Each run also starts with a check.
    due_at: Instant,
    was_trusted: bool,
}

/// Creates the work for the configured policies. It pauses in read-only mode. Returns `None` if no policy has a limit.
///
/// The first check for a due run comes after the interval or after [`CHECK_INTERVAL_MAX`], whichever is shorter.
pub(crate) fn retention(
    config: &Config,
    database: &Database,
    credentials: &Credentials,
    audit: Option<&Arc<AuditTrail>>,
    read_only: &ReadOnlyMode,
) -> Result<Option<RetentionWork>, StartupError> {
    let policies = config.retention.policies()?;
    if policies.segments().is_empty() {
        return Ok(None);
    }
    let interval = config.retention.interval_seconds.seconds();
    Ok(Some(RetentionWork {
        retention: Retention {
            policies,
            repository: Arc::new(database.clone()),
            trail: audit.map(|audit| Arc::clone(audit) as Arc<dyn RetentionTrail>),
            identifiers: Arc::clone(&credentials.store.identifiers),
        },
        leases: Arc::new(database.clone()),
        clock: Arc::clone(&credentials.store.clock),
        clock_check: ClockCheck::new(Arc::new(database.clone())),
        interval,
        read_only: read_only.clone(),
        check_due_at: Instant::now() + interval.min(CHECK_INTERVAL_MAX),
    }))
}

impl RetentionWork {
    /// Runs retention if a run is due. Returns whether the run reached its end.
    async fn run_if_due(&mut self, stop: &CancellationToken) -> Result<bool, RepositoryError> {
        let lease = Lease {
            name: PAUSE_LEASE,
            holder: self.retention.identifiers.fresh(),
            time_max: PAUSE_TIME_MAX,
        };
        let now = self.clock.now();
        // The lease is short during the run. If this server is killed, another server soon starts a run.
        if !self
            .leases
            .acquire(&lease, now, now + delta(LEASE_TIME))
            .await?
        {
            return Ok(false);
        }
        let ended = match self.check_clock().await {
            Ok(now) => self.run_to_end(now, stop).await,
            Err(failure) => Err(failure),
        };
        let outcome = match &ended {
            Ok(outcome) => *outcome,
            Err(_) => RetentionOutcome::Failed,
        };
        retention_run(outcome, self.clock.now());
        if matches!(
            ended,
            Ok(RetentionOutcome::Completed | RetentionOutcome::Incomplete)
        ) {
            let next = self.clock.now() + delta(self.interval);
            return self.leases.renew(&lease, next).await;
        }
        self.leases.release(&lease).await?;
        ended.map(|_| false)
    }

    /// Checks the clock and returns its reading if it is trusted. Skips the check and returns `None` if no policy has an age
    /// limit.
    async fn check_clock(&mut self) -> Result<Option<DateTime<Utc>>, RepositoryError> {
        if !self.retention.policies.has_age_limits() {
            return Ok(None);
        }
        self.clock_check.check(self.clock.now()).await
    }

    /// Applies the policies step by step until the run completes, fails or is stopped.
    async fn run_to_end(
        &self,
        now: Option<DateTime<Utc>>,
        stop: &CancellationToken,
    ) -> Result<RetentionOutcome, RepositoryError> {
        let mut run = self.retention.begin(now);
        let begun_at = Instant::now();
        let outcome = loop {
            if self.read_only.is_on() {
                break RetentionOutcome::Stopped;
            }
            let deleted_before = run.versions_deleted();
            let has_more = self.retention.proceed(&mut run).await;
            retention_versions_deleted(run.versions_deleted().saturating_sub(deleted_before));
            match has_more {
                Ok(false) if run.has_skipped() => break RetentionOutcome::Incomplete,
                Ok(false) => break RetentionOutcome::Completed,
                Ok(true) => {}
                Err(RetentionError::Repository(failure)) => return Err(failure),
                Err(RetentionError::Trail(unwritten)) => {
                    tracing::warn!(error = %unwritten, "retention stopped because audit events could not be written");
                    break RetentionOutcome::Failed;
                }
            }
            if !pause(stop, STEP_PAUSE).await {
                break RetentionOutcome::Stopped;
            }
        };
        if run.versions_deleted() > 0 {
            tracing::info!(
                retention.versions_deleted = run.versions_deleted(),
                retention.outcome = ?outcome,
                duration_ms = u64::try_from(begun_at.elapsed().as_millis()).unwrap_or(u64::MAX),
                "deleted versions according to the retention policies"
            );
        }
        Ok(outcome)
    }
}

#[async_trait]
impl Work for RetentionWork {
    fn name(&self) -> &'static str {
        "retention"
    }

    /// Returns the time until the next check: of the clock, or whether a run is due.
    fn interval(&self) -> Duration {
        let next = if self.retention.policies.has_age_limits() {
            self.check_due_at.min(self.clock_check.due_at)
        } else {
            self.check_due_at
        };
        let wait = next.saturating_duration_since(Instant::now());
        wait.max(CHECK_INTERVAL_MIN)
    }

    /// Does nothing in read-only mode. Other servers can do the work, because the mode applies to one process.
    async fn run(&mut self, stop: CancellationToken) -> Result<(), UseCaseError> {
        let now = Instant::now();
        if now >= self.clock_check.due_at && !self.read_only.is_on() {
            self.check_clock().await?;
        }
        if now < self.check_due_at {
            return Ok(());
        }
        self.check_due_at = now + self.interval.min(CHECK_INTERVAL_MAX);
        if self.read_only.is_on() {
            tracing::debug!("retention is paused in read-only mode");
        } else if self.run_if_due(&stop).await? {
            self.check_due_at = Instant::now() + self.interval;
        }
        Ok(())
    }
}

impl ClockCheck {
    fn new(record: Arc<dyn RetentionClock>) -> Self {
        let now = Instant::now();
        Self {
            record,
            watch: ClockWatch::default(),
            began_at: now,
            due_at: now,
            was_trusted: true,
        }
    }

    /// Returns `now` if the clock is trusted. Use this reading for the run: a later one may follow a jump.
    async fn check(
        &mut self,
        now: DateTime<Utc>,
    ) -> Result<Option<DateTime<Utc>>, RepositoryError> {
        let uptime = delta(self.began_at.elapsed());
        let record = self.watch.evaluate(now, uptime, self.record.read().await?);
        self.record.write(record).await?;
        self.due_at = Instant::now() + CLOCK_CHECK_INTERVAL;
        let is_trusted = record.is_trusted();
        retention_clock_checked(is_trusted);
        if is_trusted != self.was_trusted {
            if is_trusted {
                tracing::info!("resumed deleting versions by age");
            } else {
                tracing::warn!(
                    retention.clock = %record.seen_at,
                    retention.trusted_from = %record.trusted_from,
                    "paused deleting versions by age: the clock jumped or was not checked for a day; resumes after a day without a jump"
                );
            }
        }
        self.was_trusted = is_trusted;
        Ok(is_trusted.then_some(now))
    }
}

fn delta(time: Duration) -> TimeDelta {
    TimeDelta::from_std(time).unwrap_or(TimeDelta::MAX)
}

/// The name of the lease that separates two runs.
const PAUSE_LEASE: &str = "retention pause";

/// The maximum remaining time of this lease: the longest interval between runs, and a day for clocks that are ahead.
const PAUSE_TIME_MAX: TimeDelta = TimeDelta::days(2);

/// The maximum time until the next check whether a run is due, unless this server has just completed a run.
const CHECK_INTERVAL_MAX: Duration = Duration::from_mins(1);
/// The minimum time between checks.
const CHECK_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// The interval between checks of the clock, even if the interval between runs is longer.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_mins(10);

/// The pause after each step, so that waiting writers can proceed.
const STEP_PAUSE: Duration = Duration::from_millis(10);
