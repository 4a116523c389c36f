//! The connections to a database, lent one at a time.
//!
//! This stands in for sqlx's own pool, which asks each connection for a sign of life when it comes back: as a connection to
//! SQLite is a thread, that is a second hand-over between threads for each query, and the larger part of what a short read
//! costs. Here only those are asked whose last user did not see the end of what it began, and, of those to a server, those
//! that nobody has used for a while, or since another one was found dead. A connection to a server is not used for ever, and no
//! longer than until one like it was not allowed to write: the primary may be another server by then.

mod condition;
mod doubt;
mod engine;
#[cfg(test)]
mod tests;

use std::{
    collections::hash_map::RandomState,
    future::Future,
    hash::BuildHasher,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use deadpool::{
    Runtime,
    managed::{Manager, Metrics, Object, Pool, PoolError, RecycleError, RecycleResult},
};
use keywright_core::ports::RepositoryFailure;
use tokio::time::timeout;

use condition::Condition;
pub(crate) use doubt::Doubt;
use engine::{Connection, Transaction};
pub(crate) use engine::{Engine, Target};

use crate::{
    failure::{is_conflict, is_read_only, repository_failure},
    row::Row,
    statement::Statement,
};

/// Connections of one kind: at most a given number, opened when they are first needed.
#[derive(Clone)]
pub(crate) struct Connections {
    pool: Pool<Opener>,
    wait_max: Duration,
    is_closed: Arc<AtomicBool>,
    retries: Arc<AtomicU64>,
}

/// How many connections of one kind there are at a moment, and how many wait for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOccupancy {
    /// The most that there may be.
    pub connections_max: usize,
    /// Those that are lent.
    pub in_use: usize,
    /// Those that are open and not lent.
    pub idle: usize,
    /// The borrowers that wait.
    pub waiting: usize,
}

/// A connection that nobody else uses until this is dropped.
pub(crate) struct LentConnection {
    pooled: Object<Opener>,
    /// Until when it is waited for the beginning of a transaction.
    wait_ends: Instant,
}

/// A transaction that writes. It is rolled back when this is dropped.
pub(crate) struct LentTransaction<'c> {
    transaction: Transaction<'c>,
    condition: &'c mut Condition,
}

impl Connections {
    /// Opens the first connection, so that it is known whether the database can be opened at all.
    ///
    /// A borrower waits for `wait_max` at most while all `connections_max` are lent.
    pub(crate) async fn open(
        target: Target,
        connections_max: u32,
        wait_max: Duration,
    ) -> Result<Self, sqlx::Error> {
        let pool = Pool::builder(Opener { target })
            .max_size(connections_max as usize)
            .wait_timeout(Some(wait_max))
            .create_timeout(Some(wait_max))
            .recycle_timeout(Some(UNSETTLED_WAIT_MAX))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| sqlx::Error::Configuration(error.into()))?;
        drop(pool.get().await.map_err(into_sqlx)?);
        Ok(Self {
            pool,
            wait_max,
            is_closed: Arc::new(AtomicBool::new(false)),
            retries: Arc::default(),
        })
    }

    /// Which database it is.
    pub(crate) fn engine(&self) -> Engine {
        self.pool.manager().target.engine()
    }

    /// Runs a statement for all its rows.
    pub(crate) async fn fetch_all(
        &self,
        statement: Statement,
    ) -> Result<Vec<Row>, RepositoryFailure> {
        self.in_time(async {
            let mut lent = self.lend().await?;
            let rows = lent.unsettled().executor().fetch_all(statement).await;
            lent.settled(rows)
        })
        .await
    }

    /// Runs a statement for its first row, if there is one.
    pub(crate) async fn fetch_optional(
        &self,
        statement: Statement,
    ) -> Result<Option<Row>, RepositoryFailure> {
        self.in_time(async {
            let mut lent = self.lend().await?;
            let row = lent.unsettled().executor().fetch_optional(statement).await;
            lent.settled(row)
        })
        .await
    }

    /// Runs a statement, and returns how many rows it changed.
    pub(crate) async fn execute(&self, statement: Statement) -> Result<u64, RepositoryFailure> {
        self.in_time(async {
            let mut lent = self.lend().await?;
            let done = lent.unsettled().executor().execute(statement).await;
            lent.settled(done)
        })
        .await
    }

    /// Does the work of a transaction, from its beginning to its commit, and does it again while the database says that
    /// another one came between; for as long as a borrower waits at most.
    pub(crate) async fn retry<T, F>(
        &self,
        mut work: impl FnMut() -> F,
    ) -> Result<T, RepositoryFailure>
    where
        F: Future<Output = Result<T, RepositoryFailure>>,
    {
        let begun = Instant::now();
        let mut pause_max = RETRY_PAUSE_FIRST;
        loop {
            match work().await {
                Err(failure) if is_conflict(&failure) && begun.elapsed() < self.wait_max => {
                    self.retries.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(random_part_of(pause_max)).await;
                    pause_max = (2 * pause_max).min(RETRY_PAUSE_MAX);
                }
                outcome => return outcome,
            }
        }
    }

    /// Lends a connection.
    ///
    /// # Errors
    /// [`RepositoryFailure::Unavailable`] when none comes free in time, when none can be opened, or after
    /// [`Self::close`].
    pub(crate) async fn lend(&self) -> Result<LentConnection, RepositoryFailure> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(repository_failure(sqlx::Error::PoolClosed));
        }
        let wait_ends = Instant::now() + self.wait_max;
        self.in_time(async {
            match self.pool.get().await {
                Ok(pooled) => Ok(LentConnection { pooled, wait_ends }),
                Err(error) => Err(repository_failure(into_sqlx(error))),
            }
        })
        .await
    }

    /// How many transactions were done again because others stood in their way, each as often as it was.
    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// How many connections there are, and how many wait for one.
    pub(crate) fn occupancy(&self) -> PoolOccupancy {
        let status = self.pool.status();
        PoolOccupancy {
            connections_max: status.max_size,
            in_use: status.size.saturating_sub(status.available),
            idle: status.available,
            waiting: status.waiting,
        }
    }

    /// Lends nothing from now on, waits, for as long as a borrower waits, for those that are lent, and closes all.
    pub(crate) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        let begun = Instant::now();
        loop {
            for idle in self.pool.retain(|_, _| false).removed {
                if let Err(error) = idle.connection.close().await {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "a connection to the database did not close"
                    );
                }
            }
            if self.pool.status().size == 0 || begun.elapsed() > self.wait_max {
                break;
            }
            tokio::time::sleep(CLOSING_PAUSE).await;
        }
        self.pool.close();
    }

    /// Waits no longer than a borrower waits at most, however many steps it takes and in whichever of them a server stops
    /// answering. A file answers by itself, however long it takes.
    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, RepositoryFailure>>,
    ) -> Result<T, RepositoryFailure> {
        match self.engine() {
            Engine::Postgres => timeout(self.wait_max, work)
                .await
                .unwrap_or_else(|_| Err(repository_failure(sqlx::Error::PoolTimedOut))),
            Engine::Sqlite => work.await,
        }
    }
}

impl LentConnection {
    /// Begins a transaction that writes.
    pub(crate) async fn begin(&mut self) -> Result<LentTransaction<'_>, RepositoryFailure> {
        let Opened {
            connection,
            condition,
        } = &mut *self.pooled;
        *condition = Condition::Unsettled;
        let begun = connection.begin(self.wait_ends).await;
        Ok(LentTransaction {
            transaction: begun.map_err(repository_failure)?,
            condition,
        })
    }

    /// The connection, for a use of which [`Self::settled`] tells the end.
    fn unsettled(&mut self) -> &mut Connection {
        self.pooled.condition = Condition::Unsettled;
        &mut self.pooled.connection
    }

    /// What a use of the connection has come to.
    fn settled<T>(&mut self, outcome: Result<T, sqlx::Error>) -> Result<T, RepositoryFailure> {
        self.pooled.condition = match &outcome {
            Err(error) => Condition::after(error),
            Ok(_) => Condition::Settled,
        };
        outcome.map_err(repository_failure)
    }
}

impl LentTransaction<'_> {
    /// Runs a statement for all its rows.
    pub(crate) async fn fetch_all(
        &mut self,
        statement: Statement,
    ) -> Result<Vec<Row>, RepositoryFailure> {
        let rows = self.transaction.executor().fetch_all(statement).await;
        self.judged(rows)
    }

    /// Runs a statement for its first row, if there is one.
    pub(crate) async fn fetch_optional(
        &mut self,
        statement: Statement,
    ) -> Result<Option<Row>, RepositoryFailure> {
        let row = self.transaction.executor().fetch_optional(statement).await;
        self.judged(row)
    }

    /// Runs a statement for its first row, of which there is one.
    pub(crate) async fn fetch_one(
        &mut self,
        statement: Statement,
    ) -> Result<Row, RepositoryFailure> {
        let row = self.fetch_optional(statement).await?;
        row.ok_or_else(|| repository_failure(sqlx::Error::RowNotFound))
    }

    /// Runs a statement, and returns how many rows it changed.
    pub(crate) async fn execute(&mut self, statement: Statement) -> Result<u64, RepositoryFailure> {
        let done = self.transaction.executor().execute(statement).await;
        self.judged(done)
    }

    /// Commits it; when this returns, it is on disk.
    pub(crate) async fn commit(self) -> Result<(), RepositoryFailure> {
        self.transaction
            .commit()
            .await
            .map_err(repository_failure)?;
        *self.condition = Condition::Settled;
        Ok(())
    }

    fn judged<T>(&mut self, outcome: Result<T, sqlx::Error>) -> Result<T, RepositoryFailure> {
        if outcome.as_ref().is_err_and(is_read_only) {
            *self.condition = Condition::Spent;
        }
        outcome.map_err(repository_failure)
    }
}

struct Opener {
    target: Target,
}

struct Opened {
    connection: Connection,
    condition: Condition,
}

impl Manager for Opener {
    type Type = Opened;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<Opened, sqlx::Error> {
        let connected = self.target.connect().await;
        Ok(Opened {
            connection: connected.inspect_err(|_| self.target.doubt())?,
            condition: Condition::Settled,
        })
    }

    async fn recycle(&self, opened: &mut Opened, metrics: &Metrics) -> RecycleResult<sqlx::Error> {
        if opened.condition == Condition::Spent {
            self.target.outdate();
        }
        if opened.condition == Condition::Spent || self.target.is_outdated(metrics.age()) {
            return Err(RecycleError::message("it may lead to a former primary"));
        }
        if opened.condition == Condition::Unsettled {
            let settled = opened.connection.settle().await;
            settled.inspect_err(|_| self.target.doubt())?;
            opened.condition = Condition::Settled;
        } else if self.target.is_doubted(metrics.last_used()) {
            let answered = opened.connection.ping().await;
            answered.inspect_err(|_| self.target.doubt())?;
        }
        Ok(())
    }
}

fn into_sqlx(error: PoolError<sqlx::Error>) -> sqlx::Error {
    match error {
        PoolError::Backend(error) => error,
        PoolError::Closed => sqlx::Error::PoolClosed,
        PoolError::Timeout(_) | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
            sqlx::Error::PoolTimedOut
        }
    }
}

/// So that those that stood in each other's way do not meet again. Nothing depends on nobody's being able to guess it.
fn random_part_of(pause_max: Duration) -> Duration {
    let random = RandomState::new().hash_one(());
    let microseconds_max = u64::try_from(pause_max.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(random % microseconds_max.max(1))
}

/// How long a connection is waited for whose last user went away, before another is opened in its place.
const UNSETTLED_WAIT_MAX: Duration = Duration::from_millis(500);

/// The longest pause before a transaction is done again, at first, and after it was in vain several times.
const RETRY_PAUSE_FIRST: Duration = Duration::from_millis(2);
const RETRY_PAUSE_MAX: Duration = Duration::from_millis(64);

/// How long to wait before looking again whether the last connections have come back.
const CLOSING_PAUSE: Duration = Duration::from_millis(10);
