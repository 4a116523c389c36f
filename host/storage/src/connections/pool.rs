//! Shared parts of the pools of both engines: their occupancy, the limit on long reads, and queued work.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use keywright_core::ports::RepositoryError;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::timeout,
};

use crate::failure::repository_failure;

/// A database engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// PostgreSQL, or a database that accepts the same SQL.
    Postgres,
    Sqlite,
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

/// The connections that long reads may use at a time. The others remain available to point reads.
#[derive(Clone)]
pub(super) struct LongReads {
    slots: Arc<Semaphore>,
    waiting: Arc<WaitCounter>,
}

impl LongReads {
    /// Returns the limit for a pool of this size: half of its connections, but at least one.
    pub(super) fn for_pool(connections_max: usize) -> Self {
        let slots = (connections_max / POOL_DIVISOR).max(1);
        Self {
            slots: Arc::new(Semaphore::new(slots)),
            waiting: Arc::default(),
        }
    }

    /// Waits until a long read may check out a connection. The read holds the result until its end.
    pub(super) async fn acquire(&self) -> sqlx::Result<OwnedSemaphorePermit> {
        let _waiting = self.waiting.enter();
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        slot.map_err(|_| sqlx::Error::PoolClosed)
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

/// Queued work, shared by the consumer of the queue and the caller. The consumer takes it to run it; the caller takes it to give it
/// up. Only the first of them succeeds. If either of them drops its handle first, the work never begins.
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
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shared.take().map(|(work, _)| work)
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

/// Long reads may use the number of connections divided by this.
const POOL_DIVISOR: usize = 2;
