//! Deciding whether the clock can be trusted to delete versions by age.
//!
//! If the clock jumps forward, every version appears old, and a deleted version can't be restored. So each clock reading is
//! compared with the monotonic time of this process since its last reading, and with the last recorded reading of any server.
//! After a difference, no version is deleted by age until the clock has run steadily for [`CLOCK_SETTLING`], long enough for
//! an operator to see the warning.

use chrono::{DateTime, TimeDelta, Utc};

use crate::ports::ClockRecord;

/// The clock readings of one process.
#[derive(Debug, Default)]
pub struct ClockWatch {
    /// A clock reading and the uptime of the process at that time. Later differences accumulate against it.
    reference: Option<(DateTime<Utc>, TimeDelta)>,
}

impl ClockWatch {
    /// Evaluates a clock reading `now` at the process's `uptime`, given the last record of any server. Returns the new record.
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

/// The maximum difference between the clock and the monotonic time of a process, more than NTP corrects. Also the maximum lag
/// of one server's clock behind another's.
pub const CLOCK_DIFFERENCE_MAX: TimeDelta = TimeDelta::minutes(10);

/// The maximum time between two readings of any servers before the clock has to settle again.
pub const CLOCK_GAP_MAX: TimeDelta = TimeDelta::days(1);

/// The time for which the clock must run steadily after a jump or a gap before versions are deleted by age.
pub const CLOCK_SETTLING: TimeDelta = TimeDelta::days(1);
