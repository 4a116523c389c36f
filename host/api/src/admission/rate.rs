//! Limits the request rate of each actor with a token bucket.

use std::{
    num::NonZeroU32,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock, Reference},
    middleware::NoOpMiddleware,
    state::keyed::HashMapStateStore,
};

/// The request rates of actors. Each may make a burst of requests, and as many requests per second after it (the generic
/// cell rate algorithm, ITU-T I.371, which is a token bucket).
///
/// At most [`ACTORS_MAX`] actors are tracked at once. At this limit, actors with full buckets are removed; a bucket refills
/// within a second.
pub(super) struct ActorRates<C: Clock = DefaultClock> {
    limiter: RateLimiter<String, HashMapStateStore<String>, C, NoOpMiddleware<C::Instant>>,
    clock: C,
    actors_max: usize,
    forgotten_at: Mutex<Option<C::Instant>>,
}

impl ActorRates {
    pub(super) fn new(per_second_max: NonZeroU32) -> Self {
        Self::with_clock(per_second_max, ACTORS_MAX, DefaultClock::default())
    }
}

impl<C: Clock + Clone> ActorRates<C> {
    fn with_clock(per_second_max: NonZeroU32, actors_max: usize, clock: C) -> Self {
        let store = HashMapStateStore::default();
        Self {
            limiter: RateLimiter::new(Quota::per_second(per_second_max), store, clock.clone()),
            clock,
            actors_max,
            forgotten_at: Mutex::default(),
        }
    }

    /// Counts a request.
    ///
    /// # Errors
    /// The time to wait, if the request exceeds the rate or too many actors are tracked.
    pub(super) fn count(&self, actor: &str) -> Result<(), Duration> {
        if self.limiter.len() >= self.actors_max {
            self.forget();
            if self.limiter.len() >= self.actors_max {
                return Err(REFILL_TIME);
            }
        }
        self.limiter
            .check_key(&actor.to_owned())
            .map_err(|not_until| not_until.wait_time_from(self.clock.now()))
    }

    /// Removes actors with full buckets, at most once per second, because it checks all of them.
    fn forget(&self) {
        let now = self.clock.now();
        let mut forgotten_at = self
            .forgotten_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_soon =
            forgotten_at.is_some_and(|at| Duration::from(now.duration_since(at)) < REFILL_TIME);
        if !is_soon {
            *forgotten_at = Some(now);
            self.limiter.retain_recent();
        }
    }
}

/// Maximum number of tracked actors. Because buckets refill within a second, it limits the number of actors per second.
const ACTORS_MAX: usize = 10_000;

/// The time for an empty bucket to refill.
const REFILL_TIME: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    fn rates(
        per_second_max: u32,
        actors_max: usize,
    ) -> (ActorRates<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        let per_second_max = NonZeroU32::new(per_second_max).unwrap();
        (
            ActorRates::with_clock(per_second_max, actors_max, clock.clone()),
            clock,
        )
    }

    #[test]
    fn the_rate_of_an_actor_is_limited() {
        let (rates, clock) = rates(4, 10);
        for _ in 0..4 {
            assert_eq!(rates.count("one"), Ok(()));
        }
        assert_eq!(rates.count("one"), Err(Duration::from_millis(250)));
        assert_eq!(rates.count("other"), Ok(()));
        clock.advance(Duration::from_millis(249));
        assert_eq!(rates.count("one"), Err(Duration::from_millis(1)));
        clock.advance(Duration::from_millis(1));
        assert_eq!(rates.count("one"), Ok(()));
        assert_eq!(rates.count("one"), Err(Duration::from_millis(250)));
    }

    #[test]
    fn the_number_of_tracked_actors_is_limited() {
        let (rates, clock) = rates(4, 10);
        for number in 0..10 {
            assert_eq!(rates.count(&number.to_string()), Ok(()));
        }
        assert_eq!(rates.count("one more"), Err(REFILL_TIME));
        for round in 0..100 {
            clock.advance(REFILL_TIME);
            for number in 0..10 {
                assert_eq!(rates.count(&format!("{round} {number}")), Ok(()));
            }
            assert_eq!(rates.limiter.len(), 10);
        }
    }

    #[test]
    fn removing_actors_does_not_raise_their_limits() {
        let (rates, clock) = rates(1, 2);
        assert_eq!(rates.count("one"), Ok(()));
        clock.advance(Duration::from_millis(500));
        assert_eq!(rates.count("two"), Ok(()));
        assert_eq!(rates.count("three"), Err(REFILL_TIME));
        rates.forget();
        assert!(rates.count("one").is_err());
    }
}
