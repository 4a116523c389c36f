//! Doing something again because another transaction came between.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use keywright_core::ports::RepositoryFailure;

use crate::failure::is_conflict;

/// How often something has been done again because another transaction came between.
pub(super) struct Attempts<'r> {
    retries: &'r AtomicU64,
    wait_max: Duration,
    begun: Instant,
    pause_max: Duration,
}

impl<'r> Attempts<'r> {
    /// Nothing has been done so far. It is done again for `wait_max` at most, each time is counted among the retries.
    pub(super) fn new(retries: &'r AtomicU64, wait_max: Duration) -> Self {
        Self {
            retries,
            wait_max,
            begun: Instant::now(),
            pause_max: RETRY_PAUSE_FIRST,
        }
    }

    /// Whether it is to be done again after this failure: after a pause, if so.
    pub(super) async fn has_next(&mut self, failure: &RepositoryFailure) -> bool {
        let has_next = is_conflict(failure) && self.begun.elapsed() < self.wait_max;
        if has_next {
            self.retries.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(random_part_of(self.pause_max)).await;
            self.pause_max = (2 * self.pause_max).min(RETRY_PAUSE_MAX);
        }
        has_next
    }
}

/// So that those that stood in each other's way do not meet again. Nothing depends on nobody's being able to guess it.
fn random_part_of(pause_max: Duration) -> Duration {
    let random = RandomState::new().hash_one(());
    let microseconds_max = u64::try_from(pause_max.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(random % microseconds_max.max(1))
}

/// The longest pause before something is done again, at first, and after it was in vain several times.
const RETRY_PAUSE_FIRST: Duration = Duration::from_millis(2);
const RETRY_PAUSE_MAX: Duration = Duration::from_millis(64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::sequence_behind;

    #[tokio::test]
    async fn what_another_transaction_came_between_is_done_again_until_the_time_is_over() {
        let wait_max = Duration::from_mins(1);
        let retries = AtomicU64::new(0);
        let mut attempts = Attempts::new(&retries, wait_max);
        assert!(attempts.has_next(&sequence_behind()).await);
        assert!(attempts.has_next(&sequence_behind()).await);
        let other = RepositoryFailure::Unavailable("nobody answers".into());
        assert!(!attempts.has_next(&other).await);
        attempts.begun = Instant::now().checked_sub(wait_max).unwrap();
        assert!(!attempts.has_next(&sequence_behind()).await);
        assert_eq!(retries.load(Ordering::Relaxed), 2);
    }
}
