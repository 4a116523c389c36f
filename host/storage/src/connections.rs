//! The connections to a SQLite database, lent one at a time.
//!
//! This stands in for sqlx's own pool, which asks each connection for a sign of life when it comes back: as a connection is
//! a thread, that is a second hand-over between threads for each query, and the larger part of what a short read costs. Here
//! only those are asked whose last user did not see the end of what it began.

use std::{
    ops::{Deref, DerefMut},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use deadpool::{
    Runtime,
    managed::{Manager, Metrics, Object, Pool, PoolError, RecycleResult},
};
use keywright_core::ports::RepositoryFailure;
use sqlx::{
    ConnectOptions, Connection, Sqlite, SqliteConnection, Transaction,
    query::Query,
    sqlite::{SqliteArguments, SqliteConnectOptions, SqliteRow},
};

use crate::failure::repository_failure;

/// A query with its parameters.
pub(crate) type SqliteQuery<'q> = Query<'q, Sqlite, SqliteArguments>;

/// Connections of one kind: at most a given number, opened when they are first needed.
#[derive(Clone)]
pub(crate) struct Connections {
    pool: Pool<Opener>,
    wait_max: Duration,
    is_closed: Arc<AtomicBool>,
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
}

/// A transaction that writes. It is rolled back when this is dropped.
pub(crate) struct LentTransaction<'c> {
    transaction: Transaction<'c, Sqlite>,
    is_settled: &'c mut bool,
}

impl Connections {
    /// Opens the first connection, so that it is known whether the database can be opened at all.
    ///
    /// A borrower waits for `wait_max` at most while all `connections_max` are lent.
    pub(crate) async fn open(
        options: SqliteConnectOptions,
        connections_max: u32,
        wait_max: Duration,
    ) -> Result<Self, sqlx::Error> {
        let pool = Pool::builder(Opener { options })
            .max_size(connections_max as usize)
            .wait_timeout(Some(wait_max))
            .recycle_timeout(Some(UNSETTLED_WAIT_MAX))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| sqlx::Error::Configuration(error.into()))?;
        drop(pool.get().await.map_err(into_sqlx)?);
        Ok(Self {
            pool,
            wait_max,
            is_closed: Arc::new(AtomicBool::new(false)),
        })
    }

    /// Runs a query for all its rows.
    pub(crate) async fn fetch_all(
        &self,
        query: SqliteQuery<'_>,
    ) -> Result<Vec<SqliteRow>, RepositoryFailure> {
        let mut lent = self.lend().await?;
        let rows = query.fetch_all(lent.unsettled()).await;
        lent.settled(rows)
    }

    /// Runs a query for its first row, if there is one.
    pub(crate) async fn fetch_optional(
        &self,
        query: SqliteQuery<'_>,
    ) -> Result<Option<SqliteRow>, RepositoryFailure> {
        let mut lent = self.lend().await?;
        let row = query.fetch_optional(lent.unsettled()).await;
        lent.settled(row)
    }

    /// Runs a statement, and returns how many rows it changed.
    pub(crate) async fn execute(&self, query: SqliteQuery<'_>) -> Result<u64, RepositoryFailure> {
        let mut lent = self.lend().await?;
        let done = query.execute(lent.unsettled()).await;
        Ok(lent.settled(done)?.rows_affected())
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
        match self.pool.get().await {
            Ok(pooled) => Ok(LentConnection { pooled }),
            Err(error) => Err(repository_failure(into_sqlx(error))),
        }
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
}

impl LentConnection {
    /// The connection, for a use of which [`Self::settled`] tells the end.
    pub(crate) fn unsettled(&mut self) -> &mut SqliteConnection {
        self.pooled.is_settled = false;
        &mut self.pooled.connection
    }

    /// What a use of the connection has come to.
    pub(crate) fn settled<T>(
        &mut self,
        outcome: Result<T, sqlx::Error>,
    ) -> Result<T, RepositoryFailure> {
        self.pooled.is_settled = !matches!(outcome, Err(sqlx::Error::WorkerCrashed));
        outcome.map_err(repository_failure)
    }

    /// Begins a transaction that writes.
    pub(crate) async fn begin(&mut self) -> Result<LentTransaction<'_>, RepositoryFailure> {
        let Opened {
            connection,
            is_settled,
        } = &mut *self.pooled;
        *is_settled = false;
        let begun = connection.begin_with(BEGIN).await;
        Ok(LentTransaction {
            transaction: begun.map_err(repository_failure)?,
            is_settled,
        })
    }
}

impl LentTransaction<'_> {
    /// Commits it; when this returns, it is on disk.
    pub(crate) async fn commit(self) -> Result<(), RepositoryFailure> {
        self.transaction
            .commit()
            .await
            .map_err(repository_failure)?;
        *self.is_settled = true;
        Ok(())
    }
}

impl Deref for LentTransaction<'_> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.transaction
    }
}

impl DerefMut for LentTransaction<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.transaction
    }
}

struct Opener {
    options: SqliteConnectOptions,
}

struct Opened {
    connection: SqliteConnection,
    /// Whether the last user saw the end of what it began. One that went away may have left a query that is still running,
    /// or a transaction whose rollback did not succeed: SQLite itself rolls one back when the disk is full, and sqlx then
    /// believes that it still stands.
    is_settled: bool,
}

impl Manager for Opener {
    type Type = Opened;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<Opened, sqlx::Error> {
        Ok(Opened {
            connection: self.options.connect().await?,
            is_settled: true,
        })
    }

    async fn recycle(&self, opened: &mut Opened, _: &Metrics) -> RecycleResult<sqlx::Error> {
        if !opened.is_settled {
            // Done after all that is still under way, and refused within a transaction.
            let transaction = opened.connection.begin_with(BEGIN_NOTHING).await?;
            transaction.rollback().await?;
            opened.is_settled = true;
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

/// Takes the lock for writing at once, so that nothing changes between looking and inserting.
const BEGIN: &str = "begin immediate";

/// Takes no lock.
const BEGIN_NOTHING: &str = "begin deferred";

/// How long a connection is waited for whose last user went away, before another is opened in its place.
const UNSETTLED_WAIT_MAX: Duration = Duration::from_millis(500);

/// How long to wait before looking again whether the last connections have come back.
const CLOSING_PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// At most one connection, which nobody waits for.
    async fn one_connection(folder: &TempDir) -> Connections {
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("test.sqlite"))
            .create_if_missing(true);
        Connections::open(options, 1, Duration::from_millis(20))
            .await
            .unwrap()
    }

    fn is_unavailable<T>(outcome: &Result<T, RepositoryFailure>) -> bool {
        matches!(outcome, Err(RepositoryFailure::Unavailable(_)))
    }

    #[tokio::test]
    async fn no_more_than_the_most_are_lent_and_none_after_closing() {
        let folder = tempfile::tempdir().unwrap();
        let connections = one_connection(&folder).await;
        let lent = connections.lend().await.unwrap();
        assert!(is_unavailable(&connections.lend().await));
        drop(lent);
        connections.lend().await.unwrap();
        connections.close().await;
        assert!(is_unavailable(&connections.lend().await));
    }

    #[tokio::test]
    async fn its_occupancy_tells_who_has_a_connection_and_who_waits() {
        let folder = tempfile::tempdir().unwrap();
        let connections = one_connection(&folder).await;
        let occupancy = |in_use, idle, waiting| PoolOccupancy {
            connections_max: 1,
            in_use,
            idle,
            waiting,
        };
        assert_eq!(connections.occupancy(), occupancy(0, 1, 0));
        let lent = connections.lend().await.unwrap();
        assert_eq!(connections.occupancy(), occupancy(1, 0, 0));
        let (lent_later, _) = tokio::join!(connections.lend(), async {
            assert_eq!(connections.occupancy(), occupancy(1, 0, 1));
            drop(lent);
        });
        assert!(lent_later.is_ok());
    }

    #[tokio::test]
    async fn a_transaction_that_was_dropped_is_rolled_back_before_the_next_borrower_reads() {
        let folder = tempfile::tempdir().unwrap();
        let connections = one_connection(&folder).await;
        let create = sqlx::query("create table t (a integer)");
        connections.execute(create).await.unwrap();
        let mut lent = connections.lend().await.unwrap();
        let mut transaction = lent.begin().await.unwrap();
        sqlx::query("insert into t values (1)")
            .execute(&mut *transaction)
            .await
            .unwrap();
        drop(transaction);
        drop(lent);
        let read = sqlx::query("select a from t");
        assert!(connections.fetch_all(read).await.unwrap().is_empty());
        let mut lent = connections.lend().await.unwrap();
        assert!(lent.begin().await.is_ok());
    }

    #[tokio::test]
    async fn a_connection_that_is_still_busy_for_a_user_that_went_away_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let connections = one_connection(&folder).await;
        let long =
            "with recursive n (i) as (select 1 union all select i + 1 from n where i < 100000000)
                    select max(i) from n";
        let reading = connections.fetch_all(sqlx::query(long));
        let begun = tokio::time::timeout(Duration::ZERO, reading).await;
        assert!(begun.is_err());
        let row = connections.fetch_all(sqlx::query("select 1")).await;
        assert_eq!(row.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn writing_goes_on_after_the_disk_was_full() {
        let folder = tempfile::tempdir().unwrap();
        let connections = one_connection(&folder).await;
        let create = sqlx::query("create table t (a blob)");
        connections.execute(create).await.unwrap();
        let limit = sqlx::query("pragma max_page_count = 5");
        connections.fetch_all(limit).await.unwrap();
        let insert = || sqlx::query("insert into t values (zeroblob(100000))");
        let mut lent = connections.lend().await.unwrap();
        let mut transaction = lent.begin().await.unwrap();
        let full = insert().execute(&mut *transaction).await.unwrap_err();
        assert!(is_unavailable::<()>(&Err(repository_failure(full))));
        drop(transaction);
        drop(lent);
        // What is lent now is another connection, for which there is room again.
        let mut lent = connections.lend().await.unwrap();
        let mut transaction = lent.begin().await.unwrap();
        insert().execute(&mut *transaction).await.unwrap();
        transaction.commit().await.unwrap();
    }
}
