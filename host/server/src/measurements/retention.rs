//! What retention deletes.

use chrono::{DateTime, Utc};
use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};

use super::gauge_value;

/// What became of a run of retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetentionOutcome {
    /// It came to its end.
    Completed,
    /// The database or the audit trail failed.
    Failed,
    /// The server ends, another one has taken over, or read-only mode is on.
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

/// So many more versions were deleted.
pub(crate) fn versions_deleted(count: u64) {
    counter!(VERSIONS_DELETED).increment(count);
}

/// A run has come to an end at this moment.
pub(crate) fn retention_run(outcome: RetentionOutcome, now: DateTime<Utc>) {
    counter!(RUNS, "outcome" => outcome.as_str()).increment(1);
    if outcome == RetentionOutcome::Completed {
        let seconds = u64::try_from(now.timestamp()).unwrap_or_default();
        gauge!(LAST_RUN).set(gauge_value(seconds));
    }
}

/// Whether retention trusts the clock, after a look at it.
pub(crate) fn clock_looked_at(is_trusted: bool) {
    gauge!(CLOCK_TRUSTED).set(if is_trusted { 1.0 } else { 0.0 });
}

/// Tells the process's recorder what each of these measurements means.
pub(super) fn describe_metrics() {
    describe_counter!(
        VERSIONS_DELETED,
        "Versions of credentials that this server has deleted by the policies of retention."
    );
    describe_counter!(
        RUNS,
        "Runs of retention on this server, by what became of them."
    );
    describe_gauge!(
        CLOCK_TRUSTED,
        "Whether retention trusts the clock: 0 while it deletes nothing by age because the clock has jumped."
    );
    describe_gauge!(
        LAST_RUN,
        Unit::Seconds,
        "When the last run of retention that this server completed came to its end, in seconds since 1970. Of several servers \
         one does each run: the largest number counts."
    );
}

const VERSIONS_DELETED: &str = "keywright_retention_versions_deleted_total";
const RUNS: &str = "keywright_retention_runs_total";
const CLOCK_TRUSTED: &str = "keywright_retention_clock_trusted";
const LAST_RUN: &str = "keywright_retention_last_run_timestamp_seconds";
