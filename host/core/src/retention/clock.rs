//! Whether versions may be deleted by their age: whether the clock can be trusted.
//!
//! A clock that jumps forward makes everything old at once, and a deleted version can't be restored. So each look at the clock
//! is compared with two others: with the time that this process has measured since its last look, and with the moment that was
//! written down at the last look of any server. After a difference, versions are deleted by age again when the clock has run
//! evenly for [`CLOCK_SETTLING`]: long enough for an operator to see the warning.

use chrono::{DateTime, TimeDelta, Utc};

use crate::ports::ClockRecord;

/// What one process knows of the clock.
#[derive(Debug, Default)]
pub struct ClockWatch {
    /// A look at the clock, and for how long the process had run by then. Differences since then add up.
    reference: Option<(DateTime<Utc>, TimeDelta)>,
}

impl ClockWatch {
    /// Looks at the clock: `now` is what it says, `uptime` for how long the process has run, and `last` the record of
    /// the last look of any server. Returns the next record.
    pub fn look(
        &mut self,
        now: DateTime<Utc>,
        uptime: TimeDelta,
        last: Option<ClockRecord>,
    ) -> ClockRecord {
        let runs_evenly = self.reference.is_none_or(|(then, uptime_then)| {
            let difference = (now - then) - (uptime - uptime_then);
            difference.abs() <= CLOCK_DIFFERENCE_MAX
        });
        let follows = last.filter(|last| {
            let passed = now - last.seen_at;
            -CLOCK_DIFFERENCE_MAX <= passed && passed <= CLOCK_GAP_MAX
        });
        if !runs_evenly || self.reference.is_none() {
            self.reference = Some((now, uptime));
        }
        let trusted_from = match follows {
            Some(last) if runs_evenly => last.trusted_from,
            _ => now + CLOCK_SETTLING,
        };
        ClockRecord {
            seen_at: now,
            trusted_from,
        }
    }
}

/// How far the clock and the time that a process measures may go apart: NTP corrects less than that. Also how far the clock of
/// one server may be behind that of another.
pub const CLOCK_DIFFERENCE_MAX: TimeDelta = TimeDelta::minutes(10);

/// How long no server may have looked at the clock before it has to settle again.
pub const CLOCK_GAP_MAX: TimeDelta = TimeDelta::days(1);

/// For how long the clock must run evenly after a jump, or a gap, before versions are deleted by age.
pub const CLOCK_SETTLING: TimeDelta = TimeDelta::days(1);
