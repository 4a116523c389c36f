//! Metrics of retention.

use chrono::{DateTime, Utc};
use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};

use super::gauge_value;

/// The outcome of a retention run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetentionOutcome {
    Completed,
    /// The database or the audit trail failed.
    Failed,
    /// The server was shut down, another server has taken over, or read-only mode is on.
    Stopped,
}

impl RetentionOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// Counts deleted versions.
pub(crate) fn versions_deleted(count: u64) {
    counter!(VERSIONS_DELETED).increment(count);
}

/// Counts a run that ended at `now`.
pub(crate) fn retention_run(outcome: RetentionOutcome, now: DateTime<Utc>) {
    counter!(RUNS, "outcome" => outcome.as_str()).increment(1);
    if outcome == RetentionOutcome::Completed {
        let seconds = u64::try_from(now.timestamp()).unwrap_or_default();
        gauge!(LAST_RUN).set(gauge_value(seconds));
    }
}

/// Records whether retention trusts the clock.
pub(crate) fn clock_looked_at(is_trusted: bool) {
    gauge!(CLOCK_TRUSTED).set(if is_trusted { 1.0 } else { 0.0 });
}

/// Registers the descriptions of these metrics.
pub(super) fn describe_metrics() {
    describe_counter!(
        VERSIONS_DELETED,
        "Credential versions that this server deleted according to retention policies."
    );
    describe_counter!(RUNS, "Retention runs on this server, by outcome.");
    describe_gauge!(
        CLOCK_TRUSTED,
        "Whether retention trusts the clock: 0 while nothing is deleted by age because the clock has jumped."
    );
    describe_gauge!(
        LAST_RUN,
        Unit::Seconds,
        "Unix time at which this server last completed a retention run. If several servers share a database, use the largest \
         value."
    );
}

const VERSIONS_DELETED: &str = "keywright_retention_versions_deleted_total";
const RUNS: &str = "keywright_retention_runs_total";
const CLOCK_TRUSTED: &str = "keywright_retention_clock_trusted";
const LAST_RUN: &str = "keywright_retention_last_run_timestamp_seconds";
