//! Transactions that write.

use std::{
    collections::hash_map::RandomState,
    future::Future,
    hash::BuildHasher,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use keywright_core::ports::RepositoryFailure;
use sqlx::sqlite::SqliteConnectOptions;

use super::{
    Connections, PoolOccupancy,
    transaction::{Ended, Transaction},
    turns::{GroupLimits, Turns},
};
use crate::{failure::is_conflict, row::Row, statement::Statement};

/// What runs the transactions that write.
#[derive(Clone)]
pub(crate) struct Writer {
    means: Means,
    wait_max: Duration,
    retries: Arc<AtomicU64>,
}

#[derive(Clone)]
enum Means {
    /// PostgreSQL: each transaction has a connection, and the database sees to it that their outcomes agree. It also has
    /// transactions that end together share what they cost the disk.
    Connections(Connections),
    /// SQLite: transactions take turns on one connection.
    Turns(Turns),
}

impl Writer {
    /// Writes to PostgreSQL through these connections, or nowhere, where they can only read. A transaction is done again for
    /// `wait_max` at most.
    pub(crate) fn on_connections(connections: Connections, wait_max: Duration) -> Self {
        Self {
            means: Means::Connections(connections),
            wait_max,
            retries: Arc::default(),
        }
    }

    /// Writes to a file of SQLite. A transaction waits for its turn for `wait_max` at most.
    pub(crate) async fn on_sqlite(
        options: SqliteConnectOptions,
        wait_max: Duration,
    ) -> Result<Self, sqlx::Error> {
        Self::in_groups(options, wait_max, GROUP_LIMITS).await
    }

    /// As [`Self::on_sqlite`], with other groups.
    pub(super) async fn in_groups(
        options: SqliteConnectOptions,
        wait_max: Duration,
        limits: GroupLimits,
    ) -> Result<Self, sqlx::Error> {
        Ok(Self {
            means: Means::Turns(Turns::open(options, wait_max, limits).await?),
            wait_max,
            retries: Arc::default(),
        })
    }

    /// Does the work of a transaction, which ends it, and does it again while the database says that another one came
    /// between; for as long as a borrower waits at most. When this returns, the outcome and all that it rests on is on disk.
    ///
    /// # Errors
    /// Those of the work, after which nothing was written; and [`RepositoryFailure::Unavailable`] when no connection comes
    /// free in time, when none can be opened, or after [`Self::close`].
    pub(crate) async fn transaction<T, F>(
        &self,
        mut work: impl FnMut(Transaction) -> F,
    ) -> Result<T, RepositoryFailure>
    where
        F: Future<Output = Result<Ended<T>, RepositoryFailure>>,
    {
        let mut attempts = Attempts::new(self);
        loop {
            let outcome = match self.begin().await {
                Ok(transaction) => work(transaction).await,
                Err(failure) => Err(failure),
            };
            match outcome {
                Err(failure) if attempts.has_next(&failure).await => {}
                outcome => return outcome.map(Ended::into_outcome),
            }
        }
    }

    /// Runs a statement that changes something for all its rows. It is a transaction of its own; in PostgreSQL not a
    /// serializable one, as for one statement that decides on nothing but the rows that it changes none is needed.
    pub(crate) async fn fetch_all(
        &self,
        statement: Statement,
    ) -> Result<Vec<Row>, RepositoryFailure> {
        match &self.means {
            Means::Connections(connections) => {
                let mut attempts = Attempts::new(self);
                loop {
                    match connections.fetch_all(statement.clone()).await {
                        Err(failure) if attempts.has_next(&failure).await => {}
                        outcome => return outcome,
                    }
                }
            }
            Means::Turns(turns) => {
                let mut transaction = Transaction::in_turn(turns.take().await?);
                let rows = transaction.fetch_all(statement).await?;
                transaction.commit(rows).await.map(Ended::into_outcome)
            }
        }
    }

    /// As [`Self::fetch_all`], for how many rows it changed.
    pub(crate) async fn execute(&self, statement: Statement) -> Result<u64, RepositoryFailure> {
        match &self.means {
            Means::Connections(connections) => {
                let mut attempts = Attempts::new(self);
                loop {
                    match connections.execute(statement.clone()).await {
                        Err(failure) if attempts.has_next(&failure).await => {}
                        outcome => return outcome,
                    }
                }
            }
            Means::Turns(turns) => {
                let mut transaction = Transaction::in_turn(turns.take().await?);
                let changed = transaction.execute(statement).await?;
                transaction.commit(changed).await.map(Ended::into_outcome)
            }
        }
    }

    /// How many transactions were done again because others stood in their way, each as often as it was.
    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// How many connections there are, and how many wait for one.
    pub(crate) fn occupancy(&self) -> PoolOccupancy {
        match &self.means {
            Means::Connections(connections) => connections.occupancy(),
            Means::Turns(turns) => turns.occupancy(),
        }
    }

    /// Begins nothing from now on, waits, for as long as a borrower waits, for what has begun, and closes all connections.
    pub(crate) async fn close(&self) {
        match &self.means {
            Means::Connections(connections) => connections.close().await,
            Means::Turns(turns) => turns.close().await,
        }
    }

    pub(super) async fn begin(&self) -> Result<Transaction, RepositoryFailure> {
        match &self.means {
            Means::Connections(connections) => Transaction::begin(connections.lend().await?).await,
            Means::Turns(turns) => Ok(Transaction::in_turn(turns.take().await?)),
        }
    }
}

/// How often something has been done again because another transaction came between.
struct Attempts<'w> {
    writer: &'w Writer,
    begun: Instant,
    pause_max: Duration,
}

impl<'w> Attempts<'w> {
    fn new(writer: &'w Writer) -> Self {
        Self {
            writer,
            begun: Instant::now(),
            pause_max: RETRY_PAUSE_FIRST,
        }
    }

    /// Whether it is to be done again after this failure: after a pause, if so.
    async fn has_next(&mut self, failure: &RepositoryFailure) -> bool {
        let has_next = is_conflict(failure) && self.begun.elapsed() < self.writer.wait_max;
        if has_next {
            self.writer.retries.fetch_add(1, Ordering::Relaxed);
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

/// The longest pause before a transaction is done again, at first, and after it was in vain several times.
const RETRY_PAUSE_FIRST: Duration = Duration::from_millis(2);
const RETRY_PAUSE_MAX: Duration = Duration::from_millis(64);

/// What of transactions that come at once is written by one commit.
const GROUP_LIMITS: GroupLimits = GroupLimits {
    length_max: 128,
    time_max: Duration::from_millis(50),
};
