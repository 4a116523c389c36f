//! Deciding whether the clock can be trusted to delete versions by age.
//!
//! If the clock jumps forward, every version appears old, and a deleted version can't be restored. So each clock reading is
//! compared with the monotonic time of this process since its last reading, and with the last recorded reading of any server.
//! If they differ, no version is deleted by age until the clock has run steadily for [`CLOCK_SETTLING`], long enough for an
//! operator to see the warning.

use chrono::{DateTime, TimeDelta, Utc};

use crate::ports::ClockRecord;

/// The clock readings of one process.
#[derive(Debug, Default)]
pub struct ClockWatch {
    /// A clock reading and the uptime of the process at that time. Later readings are compared with it, so that small differences
    /// add up.
    reference: Option<(DateTime<Utc>, TimeDelta)>,
    /// The uptime from which the process trusts the clock, after a jump that it found itself. Another server's record must not end
    /// this earlier.
    settled_at: TimeDelta,
}

impl ClockWatch {
    /// Evaluates a clock reading `now` at the process's `uptime`, given the last record of any server. Returns the new record.
    pub fn evaluate(
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
        if !runs_evenly {
            self.settled_at = uptime + CLOCK_SETTLING;
        }
        let settled = now + (self.settled_at - uptime);
        let trusted_from = follows.and_then(|last| {
            // The time between the last reading and the start of this process, in which the clock may have jumped.
            let unobserved = (now - last.seen_at - uptime).max(TimeDelta::zero());
            last.trusted_from.checked_add_signed(unobserved)
        });
        ClockRecord {
            seen_at: now,
            trusted_from: trusted_from.map_or(now + CLOCK_SETTLING, |from| from.max(settled)),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock reading: the uptime of the process, and the clock, in minutes since the first reading.
    type Reading = (i64, i64);

    /// Returns whether one process trusts the clock at the last of these readings, after a day without differences.
    fn is_trusted_after(readings: &[Reading]) -> bool {
        let first = DateTime::UNIX_EPOCH + TimeDelta::days(10_000);
        let mut record = Some(ClockRecord {
            seen_at: first,
            trusted_from: first - TimeDelta::days(1),
        });
        let mut watch = ClockWatch::default();
        for (uptime, clock) in readings {
            let now = first + TimeDelta::minutes(*clock);
            record = Some(watch.evaluate(now, TimeDelta::minutes(*uptime), record));
        }
        record.unwrap().is_trusted()
    }

    const DAY: i64 = 24 * 60;
    const YEAR: i64 = 365 * DAY;

    #[test]
    fn a_clock_that_jumped_is_trusted_after_a_steady_day() {
        let evenly = |from: i64, jump: i64| -> Vec<Reading> {
            let minutes = (from..=from + DAY).step_by(10);
            minutes.map(|minute| (minute, minute + jump)).collect()
        };
        let jumping = |jump: i64, after: &[Reading]| -> Vec<Reading> {
            [&[(0, 0), (10, 10), (20, 20 + jump)], after].concat()
        };
        for (readings, is_trusted) in [
            (vec![(0, 0), (10, 10), (20, 20)], true),
            // Differences that NTP corrects.
            (jumping(10, &[]), true),
            (jumping(-10, &[]), true),
            (jumping(11, &[]), false),
            (jumping(-11, &[]), false),
            (jumping(YEAR, &[]), false),
            (jumping(YEAR, &[(30, 30 + YEAR)]), false),
            (jumping(YEAR, &evenly(21, YEAR)[..144]), false),
            (jumping(YEAR, &evenly(20, YEAR)), true),
            // The clock may or may not be correct again.
            (jumping(YEAR, &[(30, 30)]), false),
            // Small jumps add up.
            (vec![(0, 0), (10, 18), (20, 31)], false),
            // The first reading of a process, some time after the last reading of other processes.
            (vec![(0, DAY)], true),
            (vec![(0, DAY + 1)], false),
            (vec![(0, -10)], true),
            (vec![(0, -11)], false),
        ] {
            assert_eq!(
                is_trusted_after(&readings),
                is_trusted,
                "{:?}",
                &readings[..readings.len().min(4)]
            );
        }
        let mut watch = ClockWatch::default();
        let first = watch.evaluate(DateTime::UNIX_EPOCH, TimeDelta::zero(), None);
        assert!(!first.is_trusted(), "there was no earlier reading");
        let later = first.seen_at + CLOCK_GAP_MAX;
        let restarted = ClockWatch::default().evaluate(later, TimeDelta::zero(), Some(first));
        assert!(!restarted.is_trusted(), "no process ran meanwhile");
    }

    #[test]
    fn a_record_of_another_server_does_not_end_the_settling() {
        let start = DateTime::UNIX_EPOCH + TimeDelta::days(10_000);
        let (mut jumping, mut steady) = (ClockWatch::default(), ClockWatch::default());
        let mut record = Some(ClockRecord {
            seen_at: start,
            trusted_from: start - TimeDelta::days(1),
        });
        for (minutes, jump_hours) in [(0, 0), (10, 23), (15, 0), (20, 23), (80, 23)] {
            let watch = if minutes == 15 {
                &mut steady
            } else {
                &mut jumping
            };
            let uptime = TimeDelta::minutes(minutes);
            let now = start + uptime + TimeDelta::hours(jump_hours);
            record = Some(watch.evaluate(now, uptime, record));
        }
        assert!(!record.unwrap().is_trusted());
    }
}
