//! The connections to a SQLite database, lent one at a time.
//!
//! This stands in for sqlx's own pool, which asks each connection for a sign of life when it comes back: as a connection is
//! a thread, that is a second hand-over between threads for each query, and the larger part of what a short read costs.

use std::{
    ops::{Deref, DerefMut},
    time::Duration,
};

use deadpool::{
    Runtime,
    managed::{Manager, Metrics, Object, Pool, PoolError, RecycleError, RecycleResult},
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
}

/// A connection that nobody else uses until this is dropped.
///
/// What a borrower leaves unfinished, because its future was dropped, the connection finishes or rolls back before it does
/// what the next one asks.
pub(crate) struct LentConnection {
    pooled: Object<Opener>,
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
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| sqlx::Error::Configuration(error.into()))?;
        drop(pool.get().await.map_err(into_sqlx)?);
        Ok(Self { pool })
    }

    /// Runs a query for all its rows.
    pub(crate) async fn fetch_all(
        &self,
        query: SqliteQuery<'_>,
    ) -> Result<Vec<SqliteRow>, RepositoryFailure> {
        let mut connection = self.lend().await?;
        let rows = query.fetch_all(&mut *connection).await;
        connection.checked(rows)
    }

    /// Runs a query for its first row, if there is one.
    pub(crate) async fn fetch_optional(
        &self,
        query: SqliteQuery<'_>,
    ) -> Result<Option<SqliteRow>, RepositoryFailure> {
        let mut connection = self.lend().await?;
        let row = query.fetch_optional(&mut *connection).await;
        connection.checked(row)
    }

    /// Runs a statement, and returns how many rows it changed.
    pub(crate) async fn execute(&self, query: SqliteQuery<'_>) -> Result<u64, RepositoryFailure> {
        let mut connection = self.lend().await?;
        let done = query.execute(&mut *connection).await;
        Ok(connection.checked(done)?.rows_affected())
    }

    /// Lends a connection.
    ///
    /// # Errors
    /// [`RepositoryFailure::Unavailable`] when none comes free in time, when none can be opened, or after
    /// [`Self::close`].
    pub(crate) async fn lend(&self) -> Result<LentConnection, RepositoryFailure> {
        match self.pool.get().await {
            Ok(pooled) => Ok(LentConnection { pooled }),
            Err(error) => Err(repository_failure(into_sqlx(error))),
        }
    }

    /// Waits for those that are lent, and closes all; nothing is lent from then on.
    pub(crate) async fn close(&self) {
        while self.pool.status().size > 0 {
            let Ok(pooled) = self.pool.get().await else {
                break;
            };
            if let Err(error) = Object::take(pooled).connection.close().await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a connection to the database did not close"
                );
            }
        }
        self.pool.close();
    }
}

impl LentConnection {
    /// Begins a transaction that writes.
    pub(crate) async fn begin(&mut self) -> Result<Transaction<'_, Sqlite>, RepositoryFailure> {
        let Opened {
            connection,
            is_broken,
        } = &mut *self.pooled;
        let begun = connection.begin_with(BEGIN).await;
        begun.map_err(|error| failure(error, is_broken))
    }

    /// Translates what this connection answered.
    fn checked<T>(&mut self, outcome: Result<T, sqlx::Error>) -> Result<T, RepositoryFailure> {
        outcome.map_err(|error| failure(error, &mut self.pooled.is_broken))
    }
}

impl Deref for LentConnection {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.pooled.connection
    }
}

impl DerefMut for LentConnection {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.pooled.connection
    }
}

struct Opener {
    options: SqliteConnectOptions,
}

struct Opened {
    connection: SqliteConnection,
    /// Whether its thread has ended: then it is not lent again.
    is_broken: bool,
}

impl Manager for Opener {
    type Type = Opened;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<Opened, sqlx::Error> {
        Ok(Opened {
            connection: self.options.connect().await?,
            is_broken: false,
        })
    }

    async fn recycle(&self, opened: &mut Opened, _: &Metrics) -> RecycleResult<sqlx::Error> {
        if opened.is_broken {
            return Err(RecycleError::message("its thread has ended"));
        }
        Ok(())
    }
}

fn failure(error: sqlx::Error, is_broken: &mut bool) -> RepositoryFailure {
    *is_broken |= matches!(error, sqlx::Error::WorkerCrashed);
    repository_failure(error)
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
    async fn a_connection_whose_thread_has_ended_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let connections = one_connection(&folder).await;
        // What is temporary belongs to one connection.
        let create = sqlx::query("create temporary table t (a integer)");
        connections.execute(create).await.unwrap();
        let read = || sqlx::query("select a from t");
        assert!(connections.fetch_all(read()).await.is_ok());
        let mut lent = connections.lend().await.unwrap();
        let ended = lent.checked::<()>(Err(sqlx::Error::WorkerCrashed));
        assert!(is_unavailable(&ended));
        drop(lent);
        assert!(connections.fetch_all(read()).await.is_err());
    }
}
