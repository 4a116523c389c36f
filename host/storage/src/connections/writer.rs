//! Transactions that write.
//!
//! After a write fails because the disk is full or broken, the writer periodically attempts a small write until it succeeds. So
//! a server recovers even without requests that write.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use keywright_core::ports::RepositoryError;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};
use uuid::Uuid;

use super::{
    group_commit::{GroupCommit, GroupLimits},
    pool::{PoolOccupancy, Retries, half_of},
    postgres::PostgresConnections,
    sqlite_file::SqliteFile,
    transaction::{Ended, Isolation, Transaction},
};
use crate::{
    error::{is_lock_timeout, is_storage_medium_failure, repository_failure},
    statement::{Row, Statement, statement},
};

/// Runs the transactions that write.
#[derive(Clone)]
pub(crate) struct Writer {
    backend: Backend,
    wait_max: Duration,
    retries: Arc<AtomicU64>,
    state: Arc<WriteState>,
}

/// The state of the disk, according to the last writes.
#[derive(Default)]
struct WriteState {
    /// Whether a write has failed because of the disk, and none has succeeded since.
    is_failing: AtomicBool,
    /// Whether probing stops.
    is_closed: AtomicBool,
}

#[derive(Clone)]
enum Backend {
    /// PostgreSQL: each transaction has its own connection. The database isolates them, and flushes concurrent commits
    /// together. The semaphore has a permit for each serializable transaction that may wait longer than 20 ms for a lock. The
    /// other connections remain available to other writes.
    Connections(PostgresConnections, Arc<Semaphore>),
    /// SQLite: one thread runs all transactions.
    Thread(GroupCommit),
    /// The database was opened read-only.
    ReadOnly,
}

#[derive(Debug, thiserror::Error)]
#[error("the database was opened read-only")]
struct OpenedReadOnlyError;

impl Writer {
    /// Returns a writer that refuses every write.
    pub(crate) fn read_only() -> Self {
        Self {
            backend: Backend::ReadOnly,
            wait_max: Duration::ZERO,
            retries: Arc::default(),
            state: Arc::default(),
        }
    }

    /// Writes to PostgreSQL through these connections. Transactions are retried for at most `wait_max`.
    pub(crate) fn on_connections(connections: PostgresConnections, wait_max: Duration) -> Self {
        let lock_waits = Semaphore::new(half_of(connections.occupancy().connections_max));
        Self {
            retries: connections.retries_counter(),
            backend: Backend::Connections(connections, Arc::new(lock_waits)),
            wait_max,
            state: Arc::default(),
        }
    }

    /// Writes to a SQLite file. A transaction waits for at most `wait_max` until it begins.
    pub(crate) async fn on_sqlite(
        file: SqliteFile,
        wait_max: Duration,
    ) -> Result<Self, sqlx::Error> {
        let limits = GroupLimits {
            length_max: GROUP_LENGTH_MAX,
            time_max: GROUP_TIME_MAX,
        };
        Ok(Self {
            backend: Backend::Thread(GroupCommit::open(file, wait_max, limits).await?),
            wait_max,
            retries: Arc::default(),
            state: Arc::default(),
        })
    }

    /// Runs a transaction, which the work must commit or roll back. On PostgreSQL, retries the work after conflicts with other
    /// transactions, for at most as long as a caller waits for a connection. If the work needs a row that stays locked, it begins
    /// again when it may wait for the lock. When this returns, everything that the outcome depends on is on disk. On SQLite, the
    /// work blocks the writer thread: it must wait only for the transaction.
    ///
    /// # Errors
    /// The errors of the work, after which nothing is written, unless the response to the commit was lost;
    /// [`RepositoryError::Unavailable`] if no connection becomes free in time, if none can be opened, or after
    /// [`Self::close`].
    pub(crate) async fn transaction<T, F>(
        &self,
        mut work: impl FnMut(Transaction) -> F + Send + 'static,
    ) -> Result<T, RepositoryError>
    where
        T: Send + 'static,
        F: Future<Output = Result<Ended<T>, RepositoryError>>,
    {
        let (connections, lock_waits) = match &self.backend {
            Backend::Connections(connections, lock_waits) => (connections, lock_waits),
            Backend::Thread(thread) => return self.record_outcome(thread.transaction(work).await),
            Backend::ReadOnly => return Err(opened_read_only()),
        };
        let begun = Instant::now();
        let mut retries = Retries::new(&self.retries, self.wait_max);
        let mut permit = None;
        loop {
            let isolation = match permit {
                Some(_) => Isolation::SERIALIZABLE,
                None => Isolation::SERIALIZABLE_WITHOUT_LOCK_WAIT,
            };
            let once = async {
                let connection = connections.check_out().await?;
                work(Transaction::begin(connection, isolation).await?).await
            };
            match once.await {
                Err(failure) if permit.is_none() && is_lock_timeout(&failure) => {
                    self.count_retry();
                    let left = self.wait_max.saturating_sub(begun.elapsed());
                    permit = Some(permit_within(lock_waits, left).await?);
                }
                Err(failure) if retries.should_retry(&failure).await => {}
                outcome => return self.record_outcome(outcome.map(Ended::into_outcome)),
            }
        }
    }

    /// Waits for a slot, for at most as long as a transaction waits for a connection.
    pub(crate) async fn wait_for<'s>(
        &self,
        slots: &'s Semaphore,
    ) -> Result<SemaphorePermit<'s>, RepositoryError> {
        permit_within(slots, self.wait_max).await
    }

    /// Runs a transaction of one statement and returns its rows.
    pub(crate) async fn serializable(
        &self,
        statement: Statement,
    ) -> Result<Vec<Row>, RepositoryError> {
        let ran = self.transaction(move |transaction| run_alone(transaction, statement.clone()));
        ran.await.map(|(rows, _)| rows)
    }

    /// Runs a transaction without retries. On PostgreSQL it is read committed: the work must lock the rows that its decisions
    /// depend on.
    ///
    /// # Errors
    /// Like [`Self::transaction`], and after a conflict with another transaction.
    pub(crate) async fn read_committed<T, F>(
        &self,
        work: impl FnOnce(Transaction) -> F + Send + 'static,
    ) -> Result<T, RepositoryError>
    where
        T: Send + 'static,
        F: Future<Output = Result<Ended<T>, RepositoryError>>,
    {
        let outcome = match &self.backend {
            Backend::Connections(connections, _) => {
                let once = async {
                    let connection = connections.check_out().await?;
                    work(Transaction::begin(connection, Isolation::READ_COMMITTED).await?).await
                };
                once.await.map(Ended::into_outcome)
            }
            Backend::Thread(thread) => thread.transaction(work).await,
            Backend::ReadOnly => Err(opened_read_only()),
        };
        self.record_outcome(outcome)
    }

    /// Runs a statement that changes rows, in its own transaction, and returns all its rows. On PostgreSQL the transaction is
    /// not serializable: a single statement that depends only on the rows it changes need not be.
    pub(crate) async fn fetch_all(
        &self,
        statement: Statement,
    ) -> Result<Vec<Row>, RepositoryError> {
        let ran = self.record_outcome(self.run(statement).await);
        ran.map(|(rows, _)| rows)
    }

    /// Like [`Self::fetch_all`], but returns the number of changed rows.
    pub(crate) async fn execute(&self, statement: Statement) -> Result<u64, RepositoryError> {
        let ran = self.record_outcome(self.run(statement).await);
        ran.map(|(_, changed)| changed)
    }

    /// Like [`Self::fetch_all`] and [`Self::execute`], but does not record the outcome in the state of the disk.
    async fn run(&self, statement: Statement) -> Result<(Vec<Row>, u64), RepositoryError> {
        match &self.backend {
            Backend::Connections(connections, _) => connections.run(statement).await,
            Backend::Thread(thread) => {
                let running = thread.transaction(|transaction| run_alone(transaction, statement));
                running.await
            }
            Backend::ReadOnly => Err(opened_read_only()),
        }
    }

    /// Records the outcome of a write. The first disk failure starts the probe.
    fn record_outcome<T>(&self, outcome: Result<T, RepositoryError>) -> Result<T, RepositoryError> {
        if let Err(failure) = &outcome
            && is_storage_medium_failure(failure)
            && !self.state.is_failing.swap(true, Ordering::AcqRel)
        {
            tracing::error!(
                error = failure as &dyn std::error::Error,
                "could not write to the database: its disk is full or broken"
            );
            tokio::spawn(probe(self.clone()));
        }
        outcome
    }

    /// Returns whether a write has failed because the disk is full or broken, and no later attempt has succeeded.
    pub(crate) fn is_failing(&self) -> bool {
        self.state.is_failing.load(Ordering::Acquire)
    }

    /// Returns how often transactions were retried after conflicts.
    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    pub(crate) fn count_retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn occupancy(&self) -> PoolOccupancy {
        match &self.backend {
            Backend::Connections(connections, _) => connections.occupancy(),
            Backend::Thread(thread) => thread.occupancy(),
            Backend::ReadOnly => PoolOccupancy::default(),
        }
    }

    /// Refuses new transactions, waits for running transactions (at most as long as a caller waits), and closes all connections.
    pub(crate) async fn close(&self) {
        self.state.is_closed.store(true, Ordering::Release);
        match &self.backend {
            Backend::Connections(connections, _) => connections.close().await,
            Backend::Thread(thread) => thread.close().await,
            Backend::ReadOnly => {}
        }
    }
}

async fn permit_within(
    permits: &Semaphore,
    wait_max: Duration,
) -> Result<SemaphorePermit<'_>, RepositoryError> {
    let acquired = timeout(wait_max, permits.acquire()).await;
    let acquired = acquired.ok().and_then(Result::ok);
    acquired.ok_or_else(|| repository_failure(sqlx::Error::PoolTimedOut))
}

async fn run_alone(
    mut transaction: Transaction,
    statement: Statement,
) -> Result<Ended<(Vec<Row>, u64)>, RepositoryError> {
    let ran = transaction.run(&statement).await?;
    transaction.commit(ran).await
}

fn opened_read_only() -> RepositoryError {
    RepositoryError::Query(Box::new(OpenedReadOnlyError))
}

/// Periodically attempts a small write, until it succeeds.
async fn probe(writer: Writer) {
    let state = Arc::clone(&writer.state);
    loop {
        tokio::time::sleep(PROBE_INTERVAL).await;
        if state.is_closed.load(Ordering::Acquire) {
            return;
        }
        let write = statement(PROBE).bind(Uuid::nil());
        if writer.run(write).await.is_ok() {
            state.is_failing.store(false, Ordering::Release);
            tracing::info!("writes to the database succeed again");
            return;
        }
    }
}

/// The most transactions in one commit, and how long a group accepts more of them.
const GROUP_LENGTH_MAX: usize = 128;
const GROUP_TIME_MAX: Duration = Duration::from_millis(50);

const PROBE_INTERVAL: Duration = Duration::from_secs(2);

/// Changes a row that no other statement reads, to write to the disk. No background task uses its name.
pub(crate) const PROBE: &str = "
    insert into lease (name, holder, expires_at) values ('write probe', $1, 0)
    on conflict (name) do update set expires_at = lease.expires_at + 1";
