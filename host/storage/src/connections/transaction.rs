//! One transaction that writes, from its beginning to its end.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use keywright_core::ports::RepositoryFailure;
use tokio::runtime::Handle;

use super::{
    SqliteConnection,
    condition::Condition,
    engine::{Engine, PostgresConnection, within},
    postgres::LentConnection,
};
use crate::{failure::repository_failure, row::Row, statement::Statement};

/// A transaction that writes. It is rolled back when this is dropped. Nothing that it reads changes before it ends, whatever
/// other servers do.
pub(crate) struct Transaction {
    held: Held,
    /// Whether a statement failed. It may have taken the transaction with it, so that the next one would run on its own.
    has_failed: bool,
}

/// The outcome of a transaction that has ended: what it wrote, if anything, is on disk, and so is all that it has seen. There
/// is no other way to one than [`Transaction::commit`], [`Transaction::conclude`] and [`Transaction::abandon`].
pub(crate) struct Ended<T> {
    outcome: T,
    verdict: Verdict,
}

/// What becomes of what a transaction wrote. PostgreSQL has done it already; on SQLite it is for the owner of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Keep,
    Undo,
}

/// What a transaction of PostgreSQL sees of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isolation {
    /// Each statement sees what was committed before it.
    ReadCommitted,
    /// The transactions that are committed have the same outcome as if they had come one after the other. Where that can't be,
    /// one of them is refused, and done again.
    Serializable,
}

enum Held {
    Postgres(PostgresTransaction),
    /// The owner of the connection begins and ends the transaction.
    Sqlite(Arc<Mutex<SqliteConnection>>),
}

impl Transaction {
    /// Begins a transaction on a connection to PostgreSQL.
    pub(super) async fn begin(
        connection: LentConnection,
        isolation: Isolation,
    ) -> Result<Self, RepositoryFailure> {
        let wait_max = connection
            .wait_ends
            .saturating_duration_since(Instant::now());
        let mut transaction = PostgresTransaction {
            connection: Some(connection),
        };
        transaction.run(isolation.begin(), wait_max).await?;
        Ok(Self {
            held: Held::Postgres(transaction),
            has_failed: false,
        })
    }

    /// The transaction that runs on a connection to SQLite. It blocks the thread.
    pub(super) fn on_sqlite(connection: Arc<Mutex<SqliteConnection>>) -> Self {
        Self {
            held: Held::Sqlite(connection),
            has_failed: false,
        }
    }

    /// Which database it is.
    pub(crate) fn engine(&self) -> Engine {
        match self.held {
            Held::Postgres(_) => Engine::Postgres,
            Held::Sqlite(_) => Engine::Sqlite,
        }
    }

    /// Runs a statement for all its rows.
    pub(crate) async fn fetch_all(
        &mut self,
        statement: Statement,
    ) -> Result<Vec<Row>, RepositoryFailure> {
        let rows = match self.held()? {
            Held::Postgres(transaction) => transaction.connection()?.fetch_all(statement).await,
            Held::Sqlite(connection) => locked(connection).fetch_all(&statement),
        };
        self.noted(rows)
    }

    /// Runs a statement for its first row, if there is one.
    pub(crate) async fn fetch_optional(
        &mut self,
        statement: Statement,
    ) -> Result<Option<Row>, RepositoryFailure> {
        let row = match self.held()? {
            Held::Postgres(transaction) => {
                transaction.connection()?.fetch_optional(statement).await
            }
            Held::Sqlite(connection) => locked(connection).fetch_optional(&statement),
        };
        self.noted(row)
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
        let done = match self.held()? {
            Held::Postgres(transaction) => transaction.connection()?.execute(statement).await,
            Held::Sqlite(connection) => locked(connection).execute(&statement),
        };
        self.noted(done)
    }

    /// Writes what was done, for this outcome.
    ///
    /// # Errors
    /// When it can't be written, and when a statement has failed; then nothing is written, unless the answer of the database
    /// was lost.
    pub(crate) async fn commit<T>(self, outcome: T) -> Result<Ended<T>, RepositoryFailure> {
        if self.has_failed {
            return Err(ends_here());
        }
        if let Held::Postgres(transaction) = self.held {
            transaction.end(POSTGRES_COMMIT).await?;
        }
        Ok(Ended {
            outcome,
            verdict: Verdict::Keep,
        })
    }

    /// Ends a transaction that has written nothing, or of which a statement has failed, for this outcome.
    ///
    /// # Errors
    /// When what the outcome rests on could not be written, or can't have been so.
    pub(crate) async fn conclude<T>(self, outcome: T) -> Result<Ended<T>, RepositoryFailure> {
        match self.held {
            // What a serializable transaction has read holds when it is committed, and not before.
            Held::Postgres(transaction) if !self.has_failed => {
                transaction.end(POSTGRES_COMMIT).await?;
                Ok(Ended {
                    outcome,
                    verdict: Verdict::Keep,
                })
            }
            _ => self.abandon(outcome).await,
        }
    }

    /// Undoes what was done, for this outcome. That others stood in the way of what it rests on, it does not say: it is for
    /// those that look again.
    ///
    /// # Errors
    /// When what the outcome rests on could not be written.
    pub(crate) async fn abandon<T>(self, outcome: T) -> Result<Ended<T>, RepositoryFailure> {
        if let Held::Postgres(transaction) = self.held {
            transaction.end(POSTGRES_ROLLBACK).await?;
        }
        Ok(Ended {
            outcome,
            verdict: Verdict::Undo,
        })
    }

    fn held(&mut self) -> Result<&mut Held, RepositoryFailure> {
        if self.has_failed {
            return Err(ends_here());
        }
        Ok(&mut self.held)
    }

    fn noted<T>(&mut self, outcome: Result<T, sqlx::Error>) -> Result<T, RepositoryFailure> {
        if let Err(error) = &outcome {
            self.has_failed = true;
            if let Held::Postgres(transaction) = &mut self.held {
                transaction.note(error);
            }
        }
        outcome.map_err(repository_failure)
    }
}

impl Isolation {
    fn begin(self) -> &'static str {
        match self {
            Self::ReadCommitted => POSTGRES_BEGIN_READ_COMMITTED,
            Self::Serializable => POSTGRES_BEGIN_SERIALIZABLE,
        }
    }
}

impl<T> Ended<T> {
    pub(super) fn into_outcome(self) -> T {
        self.outcome
    }

    pub(super) fn into_parts(self) -> (T, Verdict) {
        (self.outcome, self.verdict)
    }
}

/// Locks the connection, which nothing else does while its transaction runs.
fn locked(connection: &Mutex<SqliteConnection>) -> MutexGuard<'_, SqliteConnection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A transaction of PostgreSQL, on a connection of its own.
struct PostgresTransaction {
    /// None once it has ended.
    connection: Option<LentConnection>,
}

impl PostgresTransaction {
    fn connection(&mut self) -> Result<&mut PostgresConnection, RepositoryFailure> {
        let connection = self.connection.as_mut().ok_or_else(ends_here)?;
        Ok(connection.unsettled())
    }

    /// What an error says of the connection. That the transaction has not ended holds all the same.
    fn note(&mut self, error: &sqlx::Error) {
        if let Some(connection) = &mut self.connection
            && Condition::after(error) == Condition::Spent
        {
            connection.spend();
        }
    }

    async fn run(
        &mut self,
        sql: &'static str,
        wait_max: Duration,
    ) -> Result<(), RepositoryFailure> {
        let connection = self.connection.as_mut().ok_or_else(ends_here)?;
        let done = within(wait_max, connection.unsettled().run(sql)).await;
        done.inspect_err(|error| self.note(error))
            .map_err(repository_failure)
    }

    async fn end(mut self, sql: &'static str) -> Result<(), RepositoryFailure> {
        self.run(sql, Duration::MAX).await?;
        let connection = self.connection.take();
        connection.map_or(Ok(()), |mut connection| connection.settled(Ok(())))
    }
}

impl Drop for PostgresTransaction {
    /// Rolled back at once, and not when the connection is lent next: until then it would stand in the way of others.
    fn drop(&mut self) {
        if let (Some(connection), Ok(runtime)) = (self.connection.take(), Handle::try_current()) {
            runtime.spawn(async move { connection.settle().await });
        }
    }
}

fn ends_here() -> RepositoryFailure {
    let reason = "the transaction has come to its end, or a statement of it has failed";
    repository_failure(sqlx::Error::Protocol(reason.to_owned()))
}

/// The next statement comes at once. Where it does not, whoever began has gone without a word, and what it has locked would
/// stay so.
const POSTGRES_BEGIN_READ_COMMITTED: &str = "begin isolation level read committed;
    set local idle_in_transaction_session_timeout = '10s'";
const POSTGRES_BEGIN_SERIALIZABLE: &str = "begin isolation level serializable;
    set local idle_in_transaction_session_timeout = '10s'";
const POSTGRES_COMMIT: &str = "commit";
const POSTGRES_ROLLBACK: &str = "rollback";
