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
        self.known().doubted_since = Some(Instant::now());
    }

    /// Whether a connection must be asked for a sign of life that was last used so long ago.
    pub(super) fn concerns(&self, last_used: Duration) -> bool {
        let since = self.known().doubted_since;
        is_before(since, last_used) || last_used > TRUSTED_IDLE_MAX
    }

    /// The primary may be another server by now: connections that were opened before are not used again. Where that does not
    /// help, it is not tried all the time.
    pub(super) fn outdate(&self) {
        self.known().moved_again = Some(Instant::now());
        self.count_moves();
    }

    /// Takes into account what was found since the last time, when that is long enough ago.
    fn count_moves(&self) -> Option<Instant> {
        let mut known = self.known();
        let is_recent = |since: Instant| since.elapsed() < OUTDATED_INTERVAL_MIN;
        if !known.moved_since.is_some_and(is_recent) {
            known.moved_since = known.moved_again.take().or(known.moved_since);
        }
        known.moved_since
    }

    /// Whether a connection must not be used again that was opened so long ago.
    pub(super) fn outdates(&self, age: Duration) -> bool {
        is_before(self.count_moves(), age) || age > AGE_MAX
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether something that was so long ago was before a moment.
fn is_before(moment: Option<Instant>, ago: Duration) -> bool {
    moment.is_some_and(|moment| ago > moment.elapsed())
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

    #[test]
    fn it_concerns_what_was_last_used_before_it_and_what_is_idle_for_long() {
        let doubt = Doubt::default();
        assert!(!doubt.concerns(TRUSTED_IDLE_MAX));
        assert!(doubt.concerns(TRUSTED_IDLE_MAX + Duration::from_nanos(1)));
        doubt.cast();
        assert!(doubt.concerns(TRUSTED_IDLE_MAX));
        assert!(!doubt.concerns(Duration::ZERO));
        assert!(doubt.clone().concerns(TRUSTED_IDLE_MAX));
    }

    #[test]
    fn it_outdates_what_was_opened_before_and_what_is_old() {
        let doubt = Doubt::default();
        assert!(!doubt.outdates(AGE_MAX));
        assert!(doubt.outdates(AGE_MAX + Duration::from_nanos(1)));
        doubt.clone().outdate();
        assert!(doubt.outdates(AGE_MAX));
        assert!(!doubt.outdates(Duration::ZERO));
        let since = doubt.known().moved_since;
        doubt.outdate();
        assert_eq!(doubt.known().moved_since, since);
    }

    #[test]
    fn what_is_found_too_soon_after_the_last_time_outdates_when_the_time_has_come() {
        let doubt = Doubt::default();
        doubt.outdate();
        doubt.outdate();
        let first = doubt.known().moved_since.unwrap();
        let again = doubt.known().moved_again.unwrap();
        // As if both were longer ago; a connection was opened between them, far from either.
        let earlier = |moment: Instant, times| moment.checked_sub(OUTDATED_INTERVAL_MIN * times);
        doubt.known().moved_since = earlier(first, 60);
        doubt.known().moved_again = earlier(again, 1);
        assert!(doubt.outdates(OUTDATED_INTERVAL_MIN * 30));
        assert_eq!(doubt.known().moved_since, earlier(again, 1));
        assert_eq!(doubt.known().moved_again, None);
        assert!(!doubt.outdates(Duration::ZERO));
    }
}
