//! The connections to a server of PostgreSQL, lent one at a time.
//!
//! This stands in for sqlx's own pool, which asks each connection for a sign of life when it comes back. Here only those are
//! asked whose last user did not see the end of what it began, those that nobody has used for a while, and those that were last
//! used before another one was found dead. A connection is not used for ever, and no longer than until one like it was not
//! allowed to write: the primary may be another server by then.

use std::{
    future::Future,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use deadpool::{
    Runtime,
    managed::{Manager, Metrics, Object, Pool, PoolError, QueueMode, RecycleError, RecycleResult},
};
use keywright_core::ports::RepositoryFailure;
use tokio::time::timeout;

use super::{
    PoolOccupancy, PostgresTarget, attempts::Attempts, condition::Condition,
    engine::PostgresConnection,
};
use crate::{failure::repository_failure, row::Row, statement::Statement};

/// Connections to a server of PostgreSQL: at most a given number, opened when they are first needed.
#[derive(Clone)]
pub(crate) struct PostgresConnections {
    pool: Pool<Opener>,
    wait_max: Duration,
    is_closed: Arc<AtomicBool>,
    retries: Arc<AtomicU64>,
}

/// A connection that nobody else uses until this is dropped.
pub(super) struct LentConnection {
    pooled: Object<Opener>,
    /// Until when it is waited for the beginning of a transaction.
    pub(super) wait_ends: Instant,
}

impl PostgresConnections {
    /// Opens the first connection, so that it is known whether the database can be opened at all.
    ///
    /// A borrower waits for `wait_max` at most while all `connections_max` are lent.
    pub(crate) async fn open(
        target: PostgresTarget,
        connections_max: u32,
        wait_max: Duration,
    ) -> Result<Self, sqlx::Error> {
        let pool = Pool::builder(Opener { target })
            .max_size(connections_max as usize)
            .wait_timeout(Some(wait_max))
            .create_timeout(Some(wait_max))
            .recycle_timeout(Some(UNSETTLED_WAIT_MAX))
            // What was used last has the most of what is asked for next in its memory.
            .queue_mode(QueueMode::Lifo)
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

    /// Runs a statement for all its rows.
    pub(crate) async fn fetch_all(
        &self,
        statement: Statement,
    ) -> Result<Vec<Row>, RepositoryFailure> {
        let once = |statement| async move {
            let mut lent = self.lend().await?;
            let rows = lent.unsettled().fetch_all(statement).await;
            lent.settled(rows)
        };
        self.repeatedly(statement, once).await
    }

    /// Runs a statement and passes on its rows, one by one, until there are no more or no more are wanted. So no more of them
    /// are in memory than the receiver keeps.
    pub(crate) async fn fetch_each(
        &self,
        statement: Statement,
        receive: &mut (dyn FnMut(Row) -> ControlFlow<()> + Send),
    ) -> Result<(), RepositoryFailure> {
        let has_received = AtomicBool::new(false);
        let mut receive = |row| {
            has_received.store(true, Ordering::Relaxed);
            receive(row)
        };
        self.in_time(async {
            let mut attempts = Attempts::new(&self.retries, self.wait_max);
            loop {
                let mut connection = self.lend().await?;
                let using = connection.unsettled();
                let outcome = match using.fetch_each(statement.clone(), &mut receive).await {
                    // The connection stays unsettled: the rest of the rows is still to come.
                    Ok(ControlFlow::Break(())) => return Ok(()),
                    outcome => connection.settled(outcome.map(drop)),
                };
                drop(connection);
                let is_first = !has_received.load(Ordering::Relaxed);
                match outcome {
                    Err(failure) if is_first && attempts.has_next(&failure).await => {}
                    outcome => return outcome,
                }
            }
        })
        .await
    }

    /// Runs a statement for its first row, if there is one.
    pub(crate) async fn fetch_optional(
        &self,
        statement: Statement,
    ) -> Result<Option<Row>, RepositoryFailure> {
        let once = |statement| async move {
            let mut lent = self.lend().await?;
            let row = lent.unsettled().fetch_optional(statement).await;
            lent.settled(row)
        };
        self.repeatedly(statement, once).await
    }

    /// Runs a statement, and returns how many rows it changed.
    pub(crate) async fn execute(&self, statement: Statement) -> Result<u64, RepositoryFailure> {
        let once = |statement| async move {
            let mut lent = self.lend().await?;
            let done = lent.unsettled().execute(statement).await;
            lent.settled(done)
        };
        self.repeatedly(statement, once).await
    }

    /// Runs a statement, and again while the database says that another transaction came between: a standby may say so of one
    /// that only reads, and other databases than PostgreSQL.
    async fn repeatedly<T, F>(
        &self,
        statement: Statement,
        once: impl Fn(Statement) -> F,
    ) -> Result<T, RepositoryFailure>
    where
        F: Future<Output = Result<T, RepositoryFailure>>,
    {
        self.in_time(async {
            let mut attempts = Attempts::new(&self.retries, self.wait_max);
            loop {
                match once(statement.clone()).await {
                    Err(failure) if attempts.has_next(&failure).await => {}
                    outcome => return outcome,
                }
            }
        })
        .await
    }

    /// Counts what was done again.
    pub(super) fn retries_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.retries)
    }

    /// How many statements were done again because transactions stood in their way, each as often as it was.
    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Lends a connection.
    ///
    /// # Errors
    /// [`RepositoryFailure::Unavailable`] when none comes free in time, when none can be opened, or after
    /// [`Self::close`].
    pub(super) async fn lend(&self) -> Result<LentConnection, RepositoryFailure> {
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
    /// answering.
    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, RepositoryFailure>>,
    ) -> Result<T, RepositoryFailure> {
        timeout(self.wait_max, work)
            .await
            .unwrap_or_else(|_| Err(repository_failure(sqlx::Error::PoolTimedOut)))
    }
}

impl LentConnection {
    /// The connection, for a use of which [`Self::settled`] tells the end.
    pub(super) fn unsettled(&mut self) -> &mut PostgresConnection {
        self.pooled.condition.become_at_best(Condition::Unsettled);
        &mut self.pooled.connection
    }

    /// What a use of the connection has come to.
    pub(super) fn settled<T>(
        &mut self,
        outcome: Result<T, sqlx::Error>,
    ) -> Result<T, RepositoryFailure> {
        let condition = match &outcome {
            Err(error) => Condition::after(error),
            Ok(_) => Condition::Settled,
        };
        if condition == Condition::Spent {
            self.spend();
        }
        self.pooled.condition.become_at_best(condition);
        outcome.map_err(repository_failure)
    }

    /// After it was not allowed to write: neither it nor any that was opened before is used again.
    pub(super) fn spend(&mut self) {
        self.pooled.condition = Condition::Spent;
        if let Some(pool) = Object::pool(&self.pooled) {
            pool.manager().target.doubt.outdate();
        }
    }

    /// Ends what was begun with it. What that comes to is seen when it is lent next; one that is spent is closed.
    pub(super) async fn settle(mut self) {
        if self.pooled.condition == Condition::Spent {
            drop(Object::take(self.pooled));
            return;
        }
        let settling = self.pooled.connection.settle();
        if let Ok(Ok(())) = timeout(UNSETTLED_WAIT_MAX, settling).await {
            self.pooled.condition.become_at_best(Condition::Settled);
        }
    }
}

struct Opener {
    target: PostgresTarget,
}

struct Opened {
    connection: PostgresConnection,
    condition: Condition,
}

impl Manager for Opener {
    type Type = Opened;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<Opened, sqlx::Error> {
        let connected = self.target.connect().await;
        Ok(Opened {
            connection: connected.inspect_err(|_| self.target.doubt.cast())?,
            condition: Condition::Settled,
        })
    }

    async fn recycle(&self, opened: &mut Opened, metrics: &Metrics) -> RecycleResult<sqlx::Error> {
        if opened.condition == Condition::Spent || self.target.doubt.outdates(metrics.age()) {
            return Err(RecycleError::message("it may lead to a former primary"));
        }
        if opened.condition == Condition::Unsettled {
            let settled = opened.connection.settle().await;
            settled.inspect_err(|_| self.target.doubt.cast())?;
            opened.condition = Condition::Settled;
        } else if self.target.doubt.concerns(metrics.last_used()) {
            let answered = opened.connection.ping().await;
            answered.inspect_err(|_| self.target.doubt.cast())?;
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

/// How long a connection is waited for whose last user went away, before another is opened in its place.
const UNSETTLED_WAIT_MAX: Duration = Duration::from_millis(500);

/// How long to wait before looking again whether the last connections have come back.
const CLOSING_PAUSE: Duration = Duration::from_millis(10);
