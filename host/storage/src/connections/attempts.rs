//! Retries after conflicts between transactions.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use keywright_core::ports::RepositoryFailure;

use crate::failure::is_conflict;

/// The retries of one operation after conflicts with other transactions.
pub(super) struct Attempts<'r> {
    retries: &'r AtomicU64,
    wait_max: Duration,
    begun: Instant,
    is_retried: bool,
    pause_max: Duration,
}

impl<'r> Attempts<'r> {
    /// Allows retries for `wait_max`, and counts each of them in `retries`.
    pub(super) fn new(retries: &'r AtomicU64, wait_max: Duration) -> Self {
        Self {
            retries,
            wait_max,
            begun: Instant::now(),
            is_retried: false,
            pause_max: RETRY_PAUSE_FIRST,
        }
    }

    /// Returns whether to retry after this failure. If so, it first waits for the backoff. An operation that takes longer than
    /// all retries may is retried once.
    pub(super) async fn has_next(&mut self, failure: &RepositoryFailure) -> bool {
        let is_in_time = !self.is_retried || self.begun.elapsed() < self.wait_max;
        let has_next = is_conflict(failure) && is_in_time;
        if has_next {
            self.is_retried = true;
            self.retries.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(random_part_of(self.pause_max)).await;
            self.pause_max = (2 * self.pause_max).min(RETRY_PAUSE_MAX);
        }
        has_next
    }
}

/// Random, so that two conflicting transactions do not collide again. It need not be unpredictable.
fn random_part_of(pause_max: Duration) -> Duration {
    let random = RandomState::new().hash_one(());
    let microseconds_max = u64::try_from(pause_max.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(random % microseconds_max.max(1))
}

/// The longest backoff before the first retry, and the limit that it doubles up to.
const RETRY_PAUSE_FIRST: Duration = Duration::from_millis(2);
const RETRY_PAUSE_MAX: Duration = Duration::from_millis(64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::sequence_behind;

    #[tokio::test]
    async fn conflicts_are_retried_until_the_time_is_over() {
        let wait_max = Duration::from_mins(1);
        let retries = AtomicU64::new(0);
        let mut attempts = Attempts::new(&retries, wait_max);
        assert!(attempts.has_next(&sequence_behind()).await);
        assert!(attempts.has_next(&sequence_behind()).await);
        let other = RepositoryFailure::Unavailable("no response".into());
        assert!(!attempts.has_next(&other).await);
        attempts.begun = Instant::now().checked_sub(wait_max).unwrap();
        assert!(!attempts.has_next(&sequence_behind()).await);
        assert_eq!(retries.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn a_long_operation_is_retried_once() {
        let retries = AtomicU64::new(0);
        let mut attempts = Attempts::new(&retries, Duration::ZERO);
        assert!(attempts.has_next(&sequence_behind()).await);
        assert!(!attempts.has_next(&sequence_behind()).await);
    }
}
