//! A transaction that writes.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use keywright_core::ports::RepositoryError;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::{
    pool::Engine,
    postgres::{
        CheckedOutConnection, ConnectionState, POSTGRES_ROLLBACK, PostgresConnection, within,
    },
    sqlite::SqliteConnection,
};
use crate::{
    error::repository_failure,
    statement::{Decoded, Row, Statement},
};

/// A transaction that writes. Dropping it rolls it back. Except on [`Isolation::READ_COMMITTED`], its reads stay valid until it
/// ends, regardless of writes by other servers.
pub(crate) struct Transaction {
    inner: Inner,
    /// Whether a statement failed. The failure may have ended the transaction; another statement would then run outside it.
    has_failed: bool,
}

/// The outcome of an ended transaction. Everything that it wrote or read is on disk. Only [`Transaction::commit`],
/// [`Transaction::conclude`] and [`Transaction::roll_back`] create one.
pub(crate) struct Ended<T> {
    outcome: T,
    completion: Completion,
}

/// Whether an ended transaction is committed or rolled back. On PostgreSQL, this has already happened; on SQLite, the owner of
/// the connection must do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completion {
    Commit,
    RollBack,
}

/// The isolation level of a PostgreSQL transaction: the statement that begins it.
///
/// Statements follow each other without delay. A longer pause means that the client has died; without the timeout, its locks would
/// remain.
pub(super) struct Isolation(&'static str);

impl Isolation {
    /// Each statement sees all transactions that were committed before it. The transaction writes for several callers, who must not
    /// wait for a lock that concerns one of them.
    pub(super) const READ_COMMITTED: Self = Self(
        "begin isolation level read committed;
         set local idle_in_transaction_session_timeout = '10s'; set local lock_timeout = '1s'",
    );

    /// Committed transactions have the same outcome as if they had run one after the other. If that is impossible, the database
    /// rejects one of them, and the writer retries it.
    pub(super) const SERIALIZABLE: Self = Self(
        "begin isolation level serializable; set local idle_in_transaction_session_timeout = '10s'",
    );

    /// Like [`Self::SERIALIZABLE`], but hardly waits for a lock, so that few connections wait for a row that stays locked.
    pub(super) const SERIALIZABLE_WITHOUT_LOCK_WAIT: Self = Self(
        "begin isolation level serializable;
         set local idle_in_transaction_session_timeout = '10s'; set local lock_timeout = '20ms'",
    );
}

enum Inner {
    Postgres(PostgresTransaction),
    /// The owner of the connection begins and ends the transaction.
    Sqlite(Arc<Mutex<SqliteConnection>>),
}

impl Transaction {
    pub(super) async fn begin(
        connection: CheckedOutConnection,
        isolation: Isolation,
    ) -> Result<Self, RepositoryError> {
        let wait_max = connection
            .wait_ends
            .saturating_duration_since(Instant::now());
        let mut transaction = PostgresTransaction {
            connection: Some(connection),
        };
        transaction.run(isolation.0, wait_max).await?;
        Ok(Self {
            inner: Inner::Postgres(transaction),
            has_failed: false,
        })
    }

    /// Returns the transaction that runs on a SQLite connection. Its methods block the thread.
    pub(super) fn on_sqlite(connection: Arc<Mutex<SqliteConnection>>) -> Self {
        Self {
            inner: Inner::Sqlite(connection),
            has_failed: false,
        }
    }

    pub(crate) fn engine(&self) -> Engine {
        match self.inner {
            Inner::Postgres(_) => Engine::Postgres,
            Inner::Sqlite(_) => Engine::Sqlite,
        }
    }

    /// Runs a statement and returns its rows and the number of rows that it changed.
    pub(super) async fn run(
        &mut self,
        statement: &Statement,
    ) -> Result<(Vec<Row>, u64), RepositoryError> {
        let ran = match self.usable()? {
            Inner::Postgres(transaction) => transaction.connection()?.run(statement).await,
            Inner::Sqlite(connection) => connection.lock().fetch_and_count(statement),
        };
        self.recorded(ran)
    }

    pub(crate) async fn fetch_all(
        &mut self,
        statement: Statement,
    ) -> Result<Vec<Row>, RepositoryError> {
        self.run(&statement).await.map(|(rows, _)| rows)
    }

    pub(crate) async fn decode_all<T: Decoded>(
        &mut self,
        statement: Statement,
    ) -> Result<Vec<T>, RepositoryError> {
        let decoded = match self.usable()? {
            Inner::Postgres(transaction) => {
                let ran = transaction.connection()?.run(&statement).await;
                ran.map(|(rows, _)| rows.iter().map(T::decode).collect())
            }
            Inner::Sqlite(connection) => connection.lock().decode_all(&statement),
        };
        self.recorded(decoded)?
    }

    /// Runs a statement and returns its first row, if there is one.
    pub(crate) async fn fetch_optional(
        &mut self,
        statement: Statement,
    ) -> Result<Option<Row>, RepositoryError> {
        let rows = self.fetch_all(statement).await?;
        Ok(rows.into_iter().next())
    }

    /// Runs a statement and returns its first row, which must exist.
    pub(crate) async fn fetch_one(&mut self, statement: Statement) -> Result<Row, RepositoryError> {
        let row = self.fetch_optional(statement).await?;
        row.ok_or_else(|| repository_failure(sqlx::Error::RowNotFound))
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub(crate) async fn execute(&mut self, statement: Statement) -> Result<u64, RepositoryError> {
        self.run(&statement).await.map(|(_, changed)| changed)
    }

    /// SQLite: inserts a row and returns its integer key.
    pub(crate) fn insert_on_sqlite(
        &mut self,
        statement: &Statement,
    ) -> Result<i64, RepositoryError> {
        let inserted = match self.usable()? {
            Inner::Postgres(_) => Err(sqlx::Error::InvalidArgument("not on SQLite".to_owned())),
            Inner::Sqlite(connection) => connection.lock().insert(statement),
        };
        self.recorded(inserted)
    }

    /// Commits, and returns this outcome.
    ///
    /// # Errors
    /// If the commit or an earlier statement failed. Then nothing is written, unless the database's response was lost.
    pub(crate) async fn commit<T>(self, outcome: T) -> Result<Ended<T>, RepositoryError> {
        if self.has_failed {
            return Err(transaction_ended());
        }
        if let Inner::Postgres(transaction) = self.inner {
            transaction.end(POSTGRES_COMMIT).await?;
        }
        Ok(Ended {
            outcome,
            completion: Completion::Commit,
        })
    }

    /// Ends a transaction that wrote nothing or in which a statement failed, and returns this outcome.
    ///
    /// # Errors
    /// If writes that the outcome depends on could not be committed, or if the transaction conflicts with another one.
    pub(crate) async fn conclude<T>(self, outcome: T) -> Result<Ended<T>, RepositoryError> {
        match self.inner {
            // The reads of a serializable transaction are valid only once it is committed.
            Inner::Postgres(_) if !self.has_failed => self.commit(outcome).await,
            _ => self.roll_back(outcome).await,
        }
    }

    /// Rolls back, and returns this outcome. Does not detect conflicts with other transactions: the caller must check again.
    ///
    /// # Errors
    /// If writes that the outcome depends on could not be committed.
    pub(crate) async fn roll_back<T>(self, outcome: T) -> Result<Ended<T>, RepositoryError> {
        if let Inner::Postgres(transaction) = self.inner {
            transaction.end(POSTGRES_ROLLBACK).await?;
        }
        Ok(Ended {
            outcome,
            completion: Completion::RollBack,
        })
    }

    fn usable(&mut self) -> Result<&mut Inner, RepositoryError> {
        if self.has_failed {
            return Err(transaction_ended());
        }
        Ok(&mut self.inner)
    }

    fn recorded<T>(&mut self, outcome: Result<T, sqlx::Error>) -> Result<T, RepositoryError> {
        if let Err(error) = &outcome {
            self.has_failed = true;
            if let Inner::Postgres(transaction) = &mut self.inner {
                transaction.record(error);
            }
        }
        outcome.map_err(repository_failure)
    }
}

impl<T> Ended<T> {
    pub(super) fn into_outcome(self) -> T {
        self.outcome
    }

    pub(super) fn into_parts(self) -> (T, Completion) {
        (self.outcome, self.completion)
    }
}

/// A PostgreSQL transaction, on a connection of its own.
struct PostgresTransaction {
    /// `None` once the transaction has ended.
    connection: Option<CheckedOutConnection>,
}

impl PostgresTransaction {
    fn connection(&mut self) -> Result<&mut PostgresConnection, RepositoryError> {
        let connection = self.connection.as_mut().ok_or_else(transaction_ended)?;
        Ok(connection.begin_use())
    }

    /// Updates the state of the connection after an error. The transaction stays open.
    fn record(&mut self, error: &sqlx::Error) {
        if let Some(connection) = &mut self.connection
            && ConnectionState::after(error) == ConnectionState::Retired
        {
            connection.retire();
        }
    }

    async fn run(&mut self, sql: &'static str, wait_max: Duration) -> Result<(), RepositoryError> {
        let connection = self.connection.as_mut().ok_or_else(transaction_ended)?;
        let done = within(wait_max, connection.begin_use().run_raw(sql)).await;
        done.inspect_err(|error| self.record(error))
            .map_err(repository_failure)
    }

    async fn end(mut self, sql: &'static str) -> Result<(), RepositoryError> {
        self.run(sql, Duration::MAX).await?;
        let connection = self.connection.take();
        connection.map_or(Ok(()), |mut connection| connection.end_use(Ok(())))
    }
}

impl Drop for PostgresTransaction {
    /// Rolls back now, and not at the next check-out: until then the transaction would block others.
    fn drop(&mut self) {
        if let (Some(connection), Ok(runtime)) = (self.connection.take(), Handle::try_current()) {
            runtime.spawn(async move { connection.roll_back().await });
        }
    }
}

fn transaction_ended() -> RepositoryError {
    let reason = "the transaction has ended, or one of its statements has failed";
    repository_failure(sqlx::Error::Protocol(reason.to_owned()))
}

const POSTGRES_COMMIT: &str = "commit";
