//! The connections to a database.
//!
//! [`Connections`] run statements that only read. A [`Writer`] runs the transactions that write.

mod attempts;
mod condition;
mod doubt;
mod engine;
mod file;
mod group_commit;
mod postgres;
mod queued;
mod readers;
mod sqlite;
#[cfg(test)]
mod tests;
mod transaction;
pub(crate) mod write_probe;
mod writer;

use std::ops::ControlFlow;

use keywright_core::ports::RepositoryFailure;

pub(crate) use doubt::Doubt;
pub(crate) use engine::{Engine, PostgresTarget};
pub(crate) use file::{FileWatch, SqliteFile};
pub(crate) use postgres::PostgresConnections;
pub(crate) use queued::{Queued, Waiting};
pub(crate) use readers::SqliteReaders;
pub(crate) use sqlite::{SqliteConnection, SqliteSettings};
pub(crate) use transaction::{Ended, Transaction};
pub(crate) use writer::Writer;

use crate::{row::Row, statement::Statement};

/// Connections that read.
#[derive(Clone)]
pub(crate) enum Connections {
    Postgres(PostgresConnections),
    Sqlite(SqliteReaders),
}

/// How many connections of one kind there are at a moment, and how many wait for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

impl Connections {
    /// Which database it is.
    pub(crate) fn engine(&self) -> Engine {
        match self {
            Self::Postgres(_) => Engine::Postgres,
            Self::Sqlite(_) => Engine::Sqlite,
        }
    }

    /// Runs a statement for all its rows.
    pub(crate) async fn fetch_all(
        &self,
        statement: Statement,
    ) -> Result<Vec<Row>, RepositoryFailure> {
        match self {
            Self::Postgres(connections) => connections.fetch_all(statement).await,
            Self::Sqlite(readers) if statement.is_short() => {
                let read = |connection: &SqliteConnection| connection.fetch_all(&statement);
                readers.in_place(read).await
            }
            Self::Sqlite(readers) => {
                let read = move |connection: &SqliteConnection| connection.fetch_all(&statement);
                readers.on_own_thread(read).await
            }
        }
    }

    /// Runs a statement and passes on its rows, one by one, until there are no more or no more are wanted. So few more of them
    /// are in memory than the receiver keeps.
    pub(crate) async fn fetch_each(
        &self,
        statement: Statement,
        receive: &mut (dyn FnMut(Row) -> ControlFlow<()> + Send),
    ) -> Result<(), RepositoryFailure> {
        match self {
            Self::Postgres(connections) => connections.fetch_each(statement, receive).await,
            Self::Sqlite(readers) => readers.fetch_each(statement, receive).await,
        }
    }

    /// Runs a statement for its first row, if there is one.
    pub(crate) async fn fetch_optional(
        &self,
        statement: Statement,
    ) -> Result<Option<Row>, RepositoryFailure> {
        match self {
            Self::Postgres(connections) => connections.fetch_optional(statement).await,
            Self::Sqlite(readers) if statement.is_short() => {
                let read = |connection: &SqliteConnection| connection.fetch_optional(&statement);
                readers.in_place(read).await
            }
            Self::Sqlite(readers) => {
                let read =
                    move |connection: &SqliteConnection| connection.fetch_optional(&statement);
                readers.on_own_thread(read).await
            }
        }
    }

    /// How many statements were done again because transactions stood in their way, each as often as it was.
    pub(crate) fn retries(&self) -> u64 {
        match self {
            Self::Postgres(connections) => connections.retries(),
            Self::Sqlite(_) => 0,
        }
    }

    /// How many connections there are, and how many wait for one.
    pub(crate) fn occupancy(&self) -> PoolOccupancy {
        match self {
            Self::Postgres(connections) => connections.occupancy(),
            Self::Sqlite(readers) => readers.occupancy(),
        }
    }

    /// Lends nothing from now on, waits, for as long as a borrower waits, for those that are lent, and closes all.
    pub(crate) async fn close(&self) {
        match self {
            Self::Postgres(connections) => connections.close().await,
            Self::Sqlite(readers) => readers.close().await,
        }
    }
}
