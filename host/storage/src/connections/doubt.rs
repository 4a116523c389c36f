//! Suspect connections: how the failure of one connection affects the others.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The observed state of a server, shared by all pools of connections to it.
#[derive(Clone, Default)]
pub(crate) struct Doubt {
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    /// When a connection was last found dead or could not be opened.
    doubted_since: Option<Instant>,
    /// Connections that were opened before this moment are retired, because a write was refused then.
    moved_since: Option<Instant>,
    /// A later refusal, less than [`OUTDATED_INTERVAL_MIN`] after `moved_since`. It replaces `moved_since` after the interval.
    moved_again: Option<Instant>,
}

impl Doubt {
    /// Marks all idle connections as suspect.
    pub(super) fn cast(&self) {
        self.known().cast(Instant::now());
    }

    /// Whether a connection that was last used this long ago needs a health check.
    pub(super) fn concerns(&self, last_used: Duration) -> bool {
        self.known().concerns(last_used, Instant::now())
    }

    /// Retires all open connections, because another server may be the primary now. At most once per [`OUTDATED_INTERVAL_MIN`],
    /// in case reconnecting does not help.
    pub(super) fn outdate(&self) {
        self.known().outdate(Instant::now());
    }

    /// Whether a connection that was opened this long ago is retired.
    pub(super) fn outdates(&self, age: Duration) -> bool {
        self.known().outdates(age, Instant::now())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn cast(&mut self, now: Instant) {
        self.doubted_since = Some(now);
    }

    fn concerns(&self, last_used: Duration, now: Instant) -> bool {
        is_before(self.doubted_since, last_used, now) || last_used > TRUSTED_IDLE_MAX
    }

    fn outdate(&mut self, now: Instant) {
        self.moved_again = Some(now);
        self.count_moves(now);
    }

    /// Applies a later refusal once the interval is over.
    fn count_moves(&mut self, now: Instant) {
        let is_recent = |since| now.saturating_duration_since(since) < OUTDATED_INTERVAL_MIN;
        if !self.moved_since.is_some_and(is_recent) {
            self.moved_since = self.moved_again.take().or(self.moved_since);
        }
    }

    fn outdates(&mut self, age: Duration, now: Instant) -> bool {
        self.count_moves(now);
        is_before(self.moved_since, age, now) || age > AGE_MAX
    }
}

/// Whether an event this long ago happened before the moment.
fn is_before(moment: Option<Instant>, ago: Duration, now: Instant) -> bool {
    moment.is_some_and(|moment| ago > now.saturating_duration_since(moment))
}

/// The longest time that a connection may be idle without a health check.
const TRUSTED_IDLE_MAX: Duration = Duration::from_secs(1);

/// The maximum age of a connection. A connection that only reads would never notice that its server became a standby.
const AGE_MAX: Duration = Duration::from_mins(10);

/// The shortest interval between two retirements of all connections.
const OUTDATED_INTERVAL_MIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const INSTANT: Duration = Duration::from_nanos(1);

    #[test]
    fn suspect_and_long_idle_connections_need_a_health_check() {
        let doubt = Doubt::default();
        let now = Instant::now();
        let concerns = |last_used| doubt.clone().known().concerns(last_used, now);
        assert!(!concerns(TRUSTED_IDLE_MAX));
        assert!(concerns(TRUSTED_IDLE_MAX + INSTANT));
        doubt.known().cast(now);
        assert!(concerns(TRUSTED_IDLE_MAX));
        assert!(concerns(INSTANT));
        assert!(!concerns(Duration::ZERO));
    }

    #[test]
    fn old_connections_and_those_before_a_move_are_retired() {
        let doubt = Doubt::default();
        let begun = Instant::now();
        let outdates = |age, now| doubt.clone().known().outdates(age, now);
        assert!(!outdates(AGE_MAX, begun));
        assert!(outdates(AGE_MAX + INSTANT, begun));
        doubt.known().outdate(begun);
        assert!(outdates(AGE_MAX, begun));
        assert!(outdates(INSTANT, begun));
        assert!(!outdates(Duration::ZERO, begun));
    }

    #[test]
    fn a_second_move_retires_connections_after_the_interval() {
        let mut known = Known::default();
        let first = Instant::now();
        let again = first + OUTDATED_INTERVAL_MIN.saturating_sub(INSTANT);
        known.outdate(first);
        known.outdate(again);
        // A connection that was opened in between.
        let opened = first + INSTANT;
        assert!(!known.outdates(again - opened, again));
        assert_eq!(known.moved_since, Some(first));
        let later = first + OUTDATED_INTERVAL_MIN;
        assert!(known.outdates(later - opened, later));
        assert_eq!(known.moved_since, Some(again));
        assert_eq!(known.moved_again, None);
        assert!(!known.outdates(later - again, later));
    }
}
