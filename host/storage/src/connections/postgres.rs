//! The connection pool of a PostgreSQL server.
//!
//! It replaces sqlx's own pool, which runs a health check on every returned connection. This pool checks a connection only if
//! its last user went away early, if it was idle for a while, or if another connection was found dead since its last use. A
//! connection is retired at a maximum age, and when a write on any connection is refused: another server may be the primary by
//! then.

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
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use super::{
    PoolOccupancy, PostgresTarget, attempts::Attempts, condition::Condition,
    engine::PostgresConnection, long_reads::LongReads,
};
use crate::{failure::repository_failure, row::Row, statement::Statement};

/// Connections to a PostgreSQL server: opened on demand, up to a maximum number.
#[derive(Clone)]
pub(crate) struct PostgresConnections {
    pool: Pool<Opener>,
    wait_max: Duration,
    is_closed: Arc<AtomicBool>,
    retries: Arc<AtomicU64>,
    /// `None` if the connections write.
    long_reads: Option<LongReads>,
}

/// A checked-out connection. Dropping it returns it to the pool.
pub(super) struct CheckedOutConnection {
    pooled: Object<Opener>,
    /// The deadline for beginning a transaction.
    pub(super) wait_ends: Instant,
}

impl PostgresConnections {
    /// Opens the first connection, to find out whether the database can be opened.
    ///
    /// A caller waits for at most `wait_max` while all `connections_max` are checked out.
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
            // The connection that was used last has the most useful cache.
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
            long_reads: None,
        })
    }

    /// Reserves a part of the connections for point reads.
    pub(crate) fn reading(self) -> Self {
        Self {
            long_reads: Some(LongReads::in_pool_of(self.pool.status().max_size)),
            ..self
        }
    }

    /// Runs a statement and returns all its rows.
    pub(crate) async fn fetch_all(
        &self,
        statement: Statement,
    ) -> Result<Vec<Row>, RepositoryFailure> {
        self.run(statement).await.map(|(rows, _)| rows)
    }

    /// Runs a statement and returns its rows and the number of rows that it changed. Retries it after conflicts with
    /// transactions: reads conflict on a standby, and on databases other than PostgreSQL.
    pub(crate) async fn run(
        &self,
        statement: Statement,
    ) -> Result<(Vec<Row>, u64), RepositoryFailure> {
        self.in_time(async {
            let _permit = self.permit(&statement).await?;
            let mut attempts = Attempts::new(&self.retries, self.wait_max);
            loop {
                let mut connection = self.check_out().await?;
                let done = connection.unsettled().run(&statement).await;
                let outcome = connection.settled(done);
                drop(connection);
                match outcome {
                    Err(failure) if attempts.has_next(&failure).await => {}
                    outcome => return outcome,
                }
            }
        })
        .await
    }

    /// Runs a statement and passes its rows to the receiver, one by one, until there are no more or the receiver breaks off. No
    /// more rows are in memory than the receiver keeps.
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
            let _permit = self.permit(&statement).await?;
            let mut attempts = Attempts::new(&self.retries, self.wait_max);
            loop {
                let mut connection = self.check_out().await?;
                let using = connection.unsettled();
                let outcome = match using.fetch_each(&statement, &mut receive).await {
                    // The connection stays unsettled: more rows are pending.
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

    /// Waits until a statement may check out a connection.
    async fn permit(
        &self,
        statement: &Statement,
    ) -> Result<Option<OwnedSemaphorePermit>, RepositoryFailure> {
        match &self.long_reads {
            Some(long_reads) if !statement.is_short() => {
                let permit = long_reads.begin().await;
                permit.map(Some).map_err(repository_failure)
            }
            _ => Ok(None),
        }
    }

    /// Returns the counter of retries.
    pub(super) fn retries_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.retries)
    }

    /// Returns how often statements were retried after conflicts with transactions.
    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Checks out a connection.
    ///
    /// # Errors
    /// [`RepositoryFailure::Unavailable`] if no connection becomes free in time, if none can be opened, or after
    /// [`Self::close`].
    pub(super) async fn check_out(&self) -> Result<CheckedOutConnection, RepositoryFailure> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(repository_failure(sqlx::Error::PoolClosed));
        }
        let wait_ends = Instant::now() + self.wait_max;
        self.in_time(async {
            match self.pool.get().await {
                Ok(pooled) => Ok(CheckedOutConnection { pooled, wait_ends }),
                Err(error) => Err(repository_failure(into_sqlx(error))),
            }
        })
        .await
    }

    pub(crate) fn occupancy(&self) -> PoolOccupancy {
        let status = self.pool.status();
        let long_reads = self.long_reads.as_ref();
        PoolOccupancy {
            connections_max: status.max_size,
            in_use: status.size.saturating_sub(status.available),
            idle: status.available,
            waiting: status.waiting + long_reads.map_or(0, LongReads::waiting),
        }
    }

    /// Refuses new check-outs, waits for connections in use, for at most as long as a caller waits for one, and closes all.
    pub(crate) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        if let Some(long_reads) = &self.long_reads {
            long_reads.close();
        }
        let begun = Instant::now();
        loop {
            for idle in self.pool.retain(|_, _| false).removed {
                if let Err(error) = idle.connection.close().await {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "could not close a connection to the database"
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

    /// Limits work to the longest time that a caller waits, over all its steps: a server may stop responding in any of them.
    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, RepositoryFailure>>,
    ) -> Result<T, RepositoryFailure> {
        timeout(self.wait_max, work)
            .await
            .unwrap_or_else(|_| Err(repository_failure(sqlx::Error::PoolTimedOut)))
    }
}

impl CheckedOutConnection {
    /// Returns the connection for a use that ends with [`Self::settled`].
    pub(super) fn unsettled(&mut self) -> &mut PostgresConnection {
        self.pooled.condition.become_at_best(Condition::Unsettled);
        &mut self.pooled.connection
    }

    /// Records the outcome of a use of the connection.
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

    /// Retires this connection and all that were opened before now, after a write was refused.
    pub(super) fn spend(&mut self) {
        self.pooled.condition = Condition::Spent;
        if let Some(pool) = Object::pool(&self.pooled) {
            pool.manager().target.doubt.outdate();
        }
    }

    /// Rolls back. If that fails, the next check-out tries again. A spent connection is closed.
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
            return Err(RecycleError::message("its server may be a former primary"));
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

/// How long the pool waits for a connection whose last user went away before it opens another one instead.
const UNSETTLED_WAIT_MAX: Duration = Duration::from_millis(500);

/// The interval between checks for connections still in use.
const CLOSING_PAUSE: Duration = Duration::from_millis(10);
