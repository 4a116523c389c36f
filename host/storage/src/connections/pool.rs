//! Parts that several kinds of connections share: the occupancy of a pool, the limit on long reads, queued work, retries after
//! conflicts, and the health of a PostgreSQL server.

use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::BuildHasher,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use deadpool::{Status, managed::PoolError};
use keywright_core::{permission::Actor, ports::RepositoryError};
use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::timeout,
};

use crate::error::{is_conflict, repository_failure};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// PostgreSQL, or a database that accepts the same SQL.
    Postgres,
    Sqlite,
}

impl Engine {
    /// Returns the value for this engine.
    pub(crate) fn choose<T>(self, postgres: T, sqlite: T) -> T {
        match self {
            Self::Postgres => postgres,
            Self::Sqlite => sqlite,
        }
    }
}

/// The current number of connections of one kind, and of the callers that wait for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolOccupancy {
    /// The maximum number of connections.
    pub connections_max: usize,
    /// Connections that are checked out.
    pub in_use: usize,
    /// Open connections that are not checked out.
    pub idle: usize,
    /// Callers that wait for a connection.
    pub waiting: usize,
}

impl PoolOccupancy {
    /// Returns the occupancy of a pool with this status. Long reads wait before they check out a connection.
    pub(super) fn of(status: Status, long_reads: Option<&LongReads>) -> Self {
        Self {
            connections_max: status.max_size,
            in_use: status.size.saturating_sub(status.available),
            idle: status.available,
            waiting: status.waiting + long_reads.map_or(0, LongReads::waiting),
        }
    }
}

pub(super) fn into_sqlx(error: PoolError<sqlx::Error>) -> sqlx::Error {
    match error {
        PoolError::Backend(error) => error,
        PoolError::Closed => sqlx::Error::PoolClosed,
        PoolError::Timeout(_) | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
            sqlx::Error::PoolTimedOut
        }
    }
}

/// The same number of slots for each actor.
#[derive(Clone)]
pub(crate) struct ActorSlots {
    slots_max: usize,
    of_actors: Arc<Mutex<HashMap<Actor, Weak<Semaphore>>>>,
}

impl ActorSlots {
    pub(crate) fn new(slots_max: usize) -> Self {
        Self {
            slots_max,
            of_actors: Arc::default(),
        }
    }

    pub(crate) fn of(&self, actor: &Actor) -> Arc<Semaphore> {
        let mut of_actors = self.of_actors.lock();
        let known = of_actors.get(actor).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let slots = Arc::new(Semaphore::new(self.slots_max));
            of_actors.retain(|_, slots| slots.strong_count() > 0);
            of_actors.insert(actor.clone(), Arc::downgrade(&slots));
            slots
        })
    }
}

/// The connections that long reads may use at a time. The others remain available to point reads.
///
/// Each actor may have only as many long reads running or queued as there are slots. Otherwise one actor's searches, which read many
/// names even if the actor may read none of them, could delay the searches of all other actors.
#[derive(Clone)]
pub(super) struct LongReads {
    slots: Arc<Semaphore>,
    slots_max: usize,
    waiting: Arc<WaitCounter>,
    of_actors: ActorSlots,
    /// The permits of the actor to use or wait for a slot; `None` for reads without an actor.
    of_actor: Option<Arc<Semaphore>>,
}

/// A long read that may check out a connection, until it is dropped.
pub(super) struct LongRead {
    _slot: OwnedSemaphorePermit,
    _of_actor: Option<OwnedSemaphorePermit>,
}

impl LongReads {
    /// Returns the limit for a pool of this size.
    pub(super) fn for_pool(connections_max: usize) -> Self {
        let slots_max = half_of(connections_max);
        Self {
            slots: Arc::new(Semaphore::new(slots_max)),
            slots_max,
            waiting: Arc::default(),
            of_actors: ActorSlots::new(slots_max),
            of_actor: None,
        }
    }

    /// Returns the same slots for reads by this actor.
    pub(super) fn of_actor(&self, actor: &Actor) -> Self {
        Self {
            of_actor: Some(self.of_actors.of(actor)),
            ..self.clone()
        }
    }

    pub(super) fn is_of_actor(&self) -> bool {
        self.of_actor.is_some()
    }

    /// Waits until a long read may check out a connection. The read keeps the result until it completes.
    pub(super) async fn acquire(&self) -> sqlx::Result<LongRead> {
        let _waiting = self.waiting.enter();
        let closed = |_| sqlx::Error::PoolClosed;
        let of_actor = match &self.of_actor {
            Some(slots) => Some(Arc::clone(slots).acquire_owned().await.map_err(closed)?),
            None => None,
        };
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        Ok(LongRead {
            _slot: slot.map_err(closed)?,
            _of_actor: of_actor,
        })
    }

    /// Waits until no long read runs. None begins until the result is dropped.
    pub(super) async fn pause(&self) -> Option<OwnedSemaphorePermit> {
        let all = u32::try_from(self.slots_max).ok()?;
        let slots = Arc::clone(&self.slots);
        slots.acquire_many_owned(all).await.ok()
    }

    /// Returns the number of long reads that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.count()
    }

    /// Refuses long reads that have not begun.
    pub(super) fn close(&self) {
        self.slots.close();
    }
}

/// Queued work, shared by the consumer of the queue and the caller. The consumer takes it to run it; the caller takes it to cancel
/// it. Only the first of them succeeds. If either of them drops its handle first, the work never begins.
pub(crate) struct Queued<W>(Shared<W>);

/// The caller's handle to queued work.
pub(crate) struct Caller<W>(Queued<W>);

/// The work, and its reference to the [`WaitCounter`]. `None` once the work is taken.
type Shared<W> = Arc<Mutex<Option<(W, Arc<()>)>>>;

/// Counts waiting callers, or queued work that has not begun: each has a reference to the counter.
#[derive(Default)]
pub(crate) struct WaitCounter(Arc<()>);

impl WaitCounter {
    /// Returns work for the consumer of a queue, and the caller's handle to it.
    pub(crate) fn queued<W>(&self, work: W) -> (Queued<W>, Caller<W>) {
        let shared = Arc::new(Mutex::new(Some((work, self.enter()))));
        (Queued(Arc::clone(&shared)), Caller(Queued(shared)))
    }

    /// Counts a caller that waits, until the result is dropped.
    pub(super) fn enter(&self) -> Arc<()> {
        Arc::clone(&self.0)
    }

    pub(crate) fn count(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

impl<W> Queued<W> {
    /// Takes the work to begin it. Returns `None` if the caller gave it up.
    pub(crate) fn begin(&self) -> Option<W> {
        self.0.lock().take().map(|(work, _)| work)
    }
}

impl<W> Caller<W> {
    /// Waits for the outcome of the work. Waits for at most `wait_max` until it begins.
    ///
    /// # Errors
    /// [`RepositoryError::Unavailable`] if it does not begin in time, or if the consumer has ended.
    pub(crate) async fn outcome<T>(
        self,
        mut outcome: oneshot::Receiver<T>,
        wait_max: Duration,
    ) -> Result<T, RepositoryError> {
        let outcome = match timeout(wait_max, &mut outcome).await {
            Err(_) if self.0.begin().is_some() => {
                return Err(repository_failure(sqlx::Error::PoolTimedOut));
            }
            // Work that has begun has no time limit here: the database ends it.
            Err(_) => outcome.await,
            Ok(outcome) => outcome,
        };
        outcome.map_err(|_| repository_failure(sqlx::Error::PoolClosed))
    }
}

impl<W> Drop for Queued<W> {
    fn drop(&mut self) {
        self.begin();
    }
}

/// Returns how many connections of a pool the work may occupy that can take long: half of them, but at least one.
pub(super) fn half_of(connections_max: usize) -> usize {
    const DIVISOR: usize = 2;
    (connections_max / DIVISOR).max(1)
}

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

/// The observed state of a server, shared by all pools of connections to it.
#[derive(Clone, Default)]
pub(crate) struct ServerHealth {
    state: Arc<Mutex<HealthState>>,
}

#[derive(Default)]
struct HealthState {
    /// When a connection was last found dead or could not be opened.
    suspect_since: Option<Instant>,
    /// Connections that were opened before this moment are retired, because a write was refused then.
    retired_before: Option<Instant>,
    /// A later refusal, less than [`RETIREMENT_INTERVAL_MIN`] after `retired_before`. Replaces it after the interval.
    next_retirement: Option<Instant>,
}

impl ServerHealth {
    /// Marks all idle connections as suspect.
    pub(super) fn suspect_idle(&self, now: Instant) {
        self.state.lock().suspect_since = Some(now);
    }

    /// Returns whether a connection that was last used this long ago needs a health check.
    pub(super) fn needs_check(&self, last_used: Duration, now: Instant) -> bool {
        is_before(self.state.lock().suspect_since, last_used, now) || last_used > UNCHECKED_IDLE_MAX
    }

    /// Retires all open connections, because another server may be the primary now. At most once per
    /// [`RETIREMENT_INTERVAL_MIN`], in case reconnecting does not help.
    pub(super) fn retire_older(&self, now: Instant) {
        let mut state = self.state.lock();
        state.next_retirement = Some(now);
        state.apply_next_retirement(now);
    }

    /// Returns whether a connection that was opened this long ago is retired.
    pub(super) fn retires(&self, age: Duration, now: Instant) -> bool {
        let mut state = self.state.lock();
        state.apply_next_retirement(now);
        is_before(state.retired_before, age, now) || age > AGE_MAX
    }
}

impl HealthState {
    /// Applies a later refusal once the interval is over.
    fn apply_next_retirement(&mut self, now: Instant) {
        let is_recent = |since| now.saturating_duration_since(since) < RETIREMENT_INTERVAL_MIN;
        if !self.retired_before.is_some_and(is_recent) {
            self.retired_before = self.next_retirement.take().or(self.retired_before);
        }
    }
}

/// Returns whether an event this long ago happened before the moment.
fn is_before(moment: Option<Instant>, ago: Duration, now: Instant) -> bool {
    moment.is_some_and(|moment| ago > now.saturating_duration_since(moment))
}

/// The longest time that a connection may be idle without a health check.
const UNCHECKED_IDLE_MAX: Duration = Duration::from_secs(1);

/// The maximum age of a connection. A connection that only reads would never notice that its server became a standby.
const AGE_MAX: Duration = Duration::from_mins(10);

/// The shortest interval between two retirements of all connections.
const RETIREMENT_INTERVAL_MIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::sequence_behind;

    #[tokio::test]
    async fn conflicts_are_retried_until_the_maximum_time() {
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

    const INSTANT: Duration = Duration::from_nanos(1);

    #[test]
    fn suspect_and_long_idle_connections_need_a_health_check() {
        let health = ServerHealth::default();
        let now = Instant::now();
        let needs_check = |last_used| health.needs_check(last_used, now);
        assert!(!needs_check(UNCHECKED_IDLE_MAX));
        assert!(needs_check(UNCHECKED_IDLE_MAX + INSTANT));
        health.suspect_idle(now);
        assert!(needs_check(UNCHECKED_IDLE_MAX));
        assert!(needs_check(INSTANT));
        assert!(!needs_check(Duration::ZERO));
    }

    #[test]
    fn connections_too_old_or_before_a_refused_write_are_retired() {
        let health = ServerHealth::default();
        let begun = Instant::now();
        let retires = |age, now| health.retires(age, now);
        assert!(!retires(AGE_MAX, begun));
        assert!(retires(AGE_MAX + INSTANT, begun));
        health.retire_older(begun);
        assert!(retires(AGE_MAX, begun));
        assert!(retires(INSTANT, begun));
        assert!(!retires(Duration::ZERO, begun));
    }

    #[test]
    fn a_second_refused_write_retires_connections_at_the_interval() {
        let health = ServerHealth::default();
        let first = Instant::now();
        let again = first + RETIREMENT_INTERVAL_MIN.saturating_sub(INSTANT);
        health.retire_older(first);
        health.retire_older(again);
        // A connection that was opened in between.
        let opened = first + INSTANT;
        assert!(!health.retires(again - opened, again));
        assert_eq!(health.state.lock().retired_before, Some(first));
        let later = first + RETIREMENT_INTERVAL_MIN;
        assert!(health.retires(later - opened, later));
        assert_eq!(health.state.lock().retired_before, Some(again));
        assert_eq!(health.state.lock().next_retirement, None);
        assert!(!health.retires(later - again, later));
    }
}
