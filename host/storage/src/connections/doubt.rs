//! What one dead connection says of the others.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// What is known of a server, for all pools of connections to it.
#[derive(Clone, Default)]
pub(crate) struct Doubt {
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    /// When a connection was last found dead, or none could be opened.
    doubted_since: Option<Instant>,
    /// When a connection was last found to lead where nobody may write, and that counted.
    moved_since: Option<Instant>,
    /// When one was last found since that did not count so soon after the one before. It does when the time has come.
    moved_again: Option<Instant>,
}

impl Doubt {
    /// Doubts all connections that are idle.
    pub(super) fn cast(&self) {
        self.known().cast(Instant::now());
    }

    /// Whether a connection must be asked for a sign of life that was last used so long ago.
    pub(super) fn concerns(&self, last_used: Duration) -> bool {
        self.known().concerns(last_used, Instant::now())
    }

    /// The primary may be another server by now: connections that were opened before are not used again. Where that does not
    /// help, it is not tried all the time.
    pub(super) fn outdate(&self) {
        self.known().outdate(Instant::now());
    }

    /// Whether a connection must not be used again that was opened so long ago.
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

    /// Takes into account what was found since the last time, when that is long enough ago.
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

/// Whether something that was so long ago was before a moment.
fn is_before(moment: Option<Instant>, ago: Duration, now: Instant) -> bool {
    moment.is_some_and(|moment| ago > now.saturating_duration_since(moment))
}

/// How long a connection may have been idle that is not asked for a sign of life.
const TRUSTED_IDLE_MAX: Duration = Duration::from_secs(1);

/// How old a connection grows. One that only reads would never find out by itself that it leads to a standby.
const AGE_MAX: Duration = Duration::from_mins(10);

/// How often all connections are opened anew at most because nobody may write.
const OUTDATED_INTERVAL_MIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const INSTANT: Duration = Duration::from_nanos(1);

    #[test]
    fn it_concerns_what_was_last_used_before_it_and_what_is_idle_for_long() {
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
    fn it_outdates_what_was_opened_before_and_what_is_old() {
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
    fn what_is_found_too_soon_after_the_last_time_outdates_when_the_time_has_come() {
        let mut known = Known::default();
        let first = Instant::now();
        let again = first + OUTDATED_INTERVAL_MIN.saturating_sub(INSTANT);
        known.outdate(first);
        known.outdate(again);
        // A connection that was opened between them.
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
