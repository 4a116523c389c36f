//! Retries after conflicts between transactions.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use keywright_core::ports::RepositoryError;

use crate::failure::is_conflict;

/// The retries of one operation after conflicts with other transactions.
pub(super) struct Retries<'r> {
    counter: &'r AtomicU64,
    wait_max: Duration,
    begun: Instant,
    is_retried: bool,
    pause_max: Duration,
}

impl<'r> Retries<'r> {
    /// Allows retries for `wait_max`, and counts each of them in `counter`.
    pub(super) fn new(counter: &'r AtomicU64, wait_max: Duration) -> Self {
        Self {
            counter,
            wait_max,
            begun: Instant::now(),
            is_retried: false,
            pause_max: PAUSE_FIRST,
        }
    }

    /// Returns whether to retry after this failure. If so, first waits for the backoff. The first retry is always allowed, even
    /// if the operation took longer than `wait_max`.
    pub(super) async fn should_retry(&mut self, failure: &RepositoryError) -> bool {
        let is_in_time = !self.is_retried || self.begun.elapsed() < self.wait_max;
        let should_retry = is_conflict(failure) && is_in_time;
        if should_retry {
            self.is_retried = true;
            self.counter.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(random_pause(self.pause_max)).await;
            self.pause_max = (2 * self.pause_max).min(PAUSE_MAX);
        }
        should_retry
    }
}

/// Returns a random pause, so that two conflicting transactions do not conflict again. It need not be unpredictable.
fn random_pause(pause_max: Duration) -> Duration {
    let random = RandomState::new().hash_one(());
    let microseconds_max = u64::try_from(pause_max.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(random % microseconds_max.max(1))
}

/// The maximum backoff before the first retry. It doubles with each retry, up to [`PAUSE_MAX`].
const PAUSE_FIRST: Duration = Duration::from_millis(2);
const PAUSE_MAX: Duration = Duration::from_millis(64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::sequence_behind;

    #[tokio::test]
    async fn conflicts_are_retried_until_the_time_is_over() {
        let wait_max = Duration::from_mins(1);
        let counter = AtomicU64::new(0);
        let mut retries = Retries::new(&counter, wait_max);
        assert!(retries.should_retry(&sequence_behind()).await);
        assert!(retries.should_retry(&sequence_behind()).await);
        let other = RepositoryError::Unavailable("no response".into());
        assert!(!retries.should_retry(&other).await);
        retries.begun = Instant::now().checked_sub(wait_max).unwrap();
        assert!(!retries.should_retry(&sequence_behind()).await);
        assert_eq!(counter.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn a_long_operation_is_retried_once() {
        let counter = AtomicU64::new(0);
        let mut retries = Retries::new(&counter, Duration::ZERO);
        assert!(retries.should_retry(&sequence_behind()).await);
        assert!(!retries.should_retry(&sequence_behind()).await);
    }
}
