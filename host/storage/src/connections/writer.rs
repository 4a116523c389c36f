//! Transactions that write.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use keywright_core::ports::RepositoryFailure;

use super::{
    PoolOccupancy, PostgresConnections, SqliteFile,
    attempts::Attempts,
    group_commit::{GroupCommit, GroupLimits},
    transaction::{Ended, Isolation, Transaction},
    write_probe::{WriteState, note},
};
use crate::{row::Row, statement::Statement};

/// What runs the transactions that write.
#[derive(Clone)]
pub(crate) struct Writer {
    means: Means,
    wait_max: Duration,
    retries: Arc<AtomicU64>,
    pub(super) state: Arc<WriteState>,
}

#[derive(Clone)]
enum Means {
    /// PostgreSQL: each transaction has a connection, and the database sees to it that their outcomes agree. It also has
    /// transactions that end together share what they cost the disk.
    Connections(PostgresConnections),
    /// SQLite: one thread runs all transactions.
    Thread(GroupCommit),
    /// Nothing is written: the database was opened to be read.
    ReadOnly,
}

#[derive(Debug, thiserror::Error)]
#[error("the database was opened to be read")]
struct OpenedToRead;

impl Writer {
    /// Refuses to write anything.
    pub(crate) fn read_only() -> Self {
        Self {
            means: Means::ReadOnly,
            wait_max: Duration::ZERO,
            retries: Arc::default(),
            state: Arc::default(),
        }
    }

    /// Writes to PostgreSQL through these connections. A transaction is done again for `wait_max` at most.
    pub(crate) fn on_connections(connections: PostgresConnections, wait_max: Duration) -> Self {
        Self {
            retries: connections.retries_counter(),
            means: Means::Connections(connections),
            wait_max,
            state: Arc::default(),
        }
    }

    /// Writes to a file of SQLite. A transaction waits for `wait_max` at most until it begins.
    pub(crate) async fn on_sqlite(
        file: SqliteFile,
        wait_max: Duration,
    ) -> Result<Self, sqlx::Error> {
        let limits = GroupLimits {
            length_max: GROUP_LENGTH_MAX,
            time_max: GROUP_TIME_MAX,
        };
        Self::in_groups(file, wait_max, limits).await
    }

    /// As [`Self::on_sqlite`], with other groups.
    pub(super) async fn in_groups(
        file: SqliteFile,
        wait_max: Duration,
        limits: GroupLimits,
    ) -> Result<Self, sqlx::Error> {
        Ok(Self {
            means: Means::Thread(GroupCommit::open(file, wait_max, limits).await?),
            wait_max,
            retries: Arc::default(),
            state: Arc::default(),
        })
    }

    /// Does the work of a transaction, which ends it. In PostgreSQL it does the work again while the database says that another
    /// transaction came between, for as long as a borrower waits at most. When this returns, the outcome and all that it rests
    /// on is on disk. SQLite runs the work on another thread, which it blocks: it must wait for nothing but the transaction.
    ///
    /// # Errors
    /// Those of the work, after which nothing was written, unless the answer to the commit was lost; and
    /// [`RepositoryFailure::Unavailable`] when no connection comes free in time, when none can be opened, or after
    /// [`Self::close`].
    pub(crate) async fn transaction<T, F>(
        &self,
        mut work: impl FnMut(Transaction) -> F + Send + 'static,
    ) -> Result<T, RepositoryFailure>
    where
        T: Send + 'static,
        F: Future<Output = Result<Ended<T>, RepositoryFailure>>,
    {
        let connections = match &self.means {
            Means::Connections(connections) => connections,
            Means::Thread(thread) => return note(self, thread.transaction(work).await),
            Means::ReadOnly => return Err(read_only()),
        };
        let mut attempts = Attempts::new(&self.retries, self.wait_max);
        loop {
            let once = async {
                let connection = connections.lend().await?;
                work(Transaction::begin(connection, Isolation::Serializable).await?).await
            };
            match once.await {
                Err(failure) if attempts.has_next(&failure).await => {}
                outcome => return note(self, outcome.map(Ended::into_outcome)),
            }
        }
    }

    /// Does the work of a transaction once. In PostgreSQL it is read committed: the work itself sees to it that nothing changes
    /// on which it decides.
    ///
    /// # Errors
    /// As [`Self::transaction`], also when another transaction came between.
    pub(crate) async fn read_committed<T, F>(
        &self,
        work: impl FnOnce(Transaction) -> F + Send + 'static,
    ) -> Result<T, RepositoryFailure>
    where
        T: Send + 'static,
        F: Future<Output = Result<Ended<T>, RepositoryFailure>>,
    {
        let outcome = match &self.means {
            Means::Connections(connections) => {
                let once = async {
                    let connection = connections.lend().await?;
                    work(Transaction::begin(connection, Isolation::ReadCommitted).await?).await
                };
                once.await.map(Ended::into_outcome)
            }
            Means::Thread(thread) => thread.transaction(work).await,
            Means::ReadOnly => Err(read_only()),
        };
        note(self, outcome)
    }

    /// Runs a statement that changes something for all its rows. It is a transaction of its own; in PostgreSQL not a
    /// serializable one, as for one statement that decides on nothing but the rows that it changes none is needed.
    pub(crate) async fn fetch_all(
        &self,
        statement: Statement,
    ) -> Result<Vec<Row>, RepositoryFailure> {
        let rows = match &self.means {
            Means::Connections(connections) => connections.fetch_all(statement).await,
            Means::Thread(thread) => {
                let fetching = thread.transaction(|mut transaction| async move {
                    let rows = transaction.fetch_all(statement).await?;
                    transaction.commit(rows).await
                });
                fetching.await
            }
            Means::ReadOnly => Err(read_only()),
        };
        note(self, rows)
    }

    /// As [`Self::fetch_all`], for how many rows it changed.
    pub(crate) async fn execute(&self, statement: Statement) -> Result<u64, RepositoryFailure> {
        note(self, self.execute_unnoted(statement).await)
    }

    /// As [`Self::execute`]; what it comes to says nothing about the disk.
    pub(super) async fn execute_unnoted(
        &self,
        statement: Statement,
    ) -> Result<u64, RepositoryFailure> {
        match &self.means {
            Means::Connections(connections) => connections.execute(statement).await,
            Means::Thread(thread) => {
                let executing = thread.transaction(|mut transaction| async move {
                    let changed = transaction.execute(statement).await?;
                    transaction.commit(changed).await
                });
                executing.await
            }
            Means::ReadOnly => Err(read_only()),
        }
    }

    /// Whether a write has failed because the disk is full or does not work, and a later attempt has not succeeded yet.
    pub(crate) fn is_failing(&self) -> bool {
        self.state.is_failing()
    }

    /// How many transactions were done again because others stood in their way, each as often as it was.
    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Counts one more transaction that is done again.
    pub(crate) fn count_retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// How many connections there are, and how many wait for one.
    pub(crate) fn occupancy(&self) -> PoolOccupancy {
        match &self.means {
            Means::Connections(connections) => connections.occupancy(),
            Means::Thread(thread) => thread.occupancy(),
            Means::ReadOnly => PoolOccupancy::default(),
        }
    }

    /// Begins nothing from now on, waits, for as long as a borrower waits, for what has begun, and closes all connections.
    pub(crate) async fn close(&self) {
        self.state.close();
        match &self.means {
            Means::Connections(connections) => connections.close().await,
            Means::Thread(thread) => thread.close().await,
            Means::ReadOnly => {}
        }
    }
}

fn read_only() -> RepositoryFailure {
    RepositoryFailure::Query(Box::new(OpenedToRead))
}

/// How many transactions are written by one commit at most, and for how long those that come are taken in.
const GROUP_LENGTH_MAX: usize = 128;
const GROUP_TIME_MAX: Duration = Duration::from_millis(50);
