//! The connections to a database.
//!
//! [`Connections`] run read-only statements. A [`Writer`] runs transactions that write.

mod attempts;
mod condition;
mod doubt;
mod engine;
mod file;
mod group_commit;
mod long_reads;
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

use keywright_core::ports::{Receive, RepositoryFailure};

pub(crate) use doubt::Doubt;
pub(crate) use engine::{Engine, PostgresTarget};
pub(crate) use file::{FileWatch, SqliteFile};
pub(crate) use postgres::PostgresConnections;
pub(crate) use queued::{Queued, Waiting};
pub(crate) use readers::SqliteReaders;
pub(crate) use sqlite::{SqliteConnection, SqliteSettings};
pub(crate) use transaction::{Ended, Transaction};
pub(crate) use writer::Writer;

use crate::{
    row::{Decoded, Row},
    statement::Statement,
};

/// Connections that read.
#[derive(Clone)]
pub(crate) enum Connections {
    Postgres(PostgresConnections),
    Sqlite(SqliteReaders),
}

/// The current number of connections of one kind, and of the callers that wait for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolOccupancy {
    /// The maximum number of connections.
    pub connections_max: usize,
    /// Connections that are checked out.
    pub in_use: usize,
    /// Open connections that are not checked out.
    pub idle: usize,
    /// Callers that wait for a connection.
    pub waiting: usize,
}

impl Connections {
    pub(crate) fn engine(&self) -> Engine {
        match self {
            Self::Postgres(_) => Engine::Postgres,
            Self::Sqlite(_) => Engine::Sqlite,
        }
    }

    /// Runs a statement and returns all its rows.
    pub(crate) async fn fetch_all(
        &self,
        statement: Statement,
    ) -> Result<Vec<Row>, RepositoryFailure> {
        match self {
            Self::Postgres(connections) => connections.fetch_all(statement).await,
            Self::Sqlite(readers) => readers.read(statement, SqliteConnection::fetch_all).await,
        }
    }

    /// Runs a statement and decodes all its rows.
    pub(crate) async fn decode_all<T: Decoded>(
        &self,
        statement: Statement,
    ) -> Result<Vec<T>, RepositoryFailure> {
        match self {
            Self::Postgres(connections) => {
                let rows = connections.fetch_all(statement).await?;
                rows.iter().map(T::decode).collect()
            }
            Self::Sqlite(readers) => {
                let decoded = readers.read(statement, SqliteConnection::decode_all);
                decoded.await?
            }
        }
    }

    /// Runs a statement and passes its rows to the receiver, one by one, until there are no more or the receiver breaks off.
    /// Few more rows are in memory than the receiver keeps.
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

    /// As [`Self::fetch_each`], decodes the rows and passes on what they yield.
    pub(crate) async fn decode_each<T>(
        &self,
        statement: Statement,
        mut decode: impl FnMut(&Row) -> Result<Option<T>, RepositoryFailure> + Send,
        receive: Receive<'_, T>,
    ) -> Result<(), RepositoryFailure> {
        let mut outcome = Ok(());
        let mut receive_row = |row| match decode(&row) {
            Ok(Some(decoded)) => receive(decoded),
            Ok(None) => ControlFlow::Continue(()),
            Err(failure) => {
                outcome = Err(failure);
                ControlFlow::Break(())
            }
        };
        self.fetch_each(statement, &mut receive_row).await?;
        outcome
    }

    /// Runs a statement that returns at most one row, and returns it.
    pub(crate) async fn fetch_optional(
        &self,
        statement: Statement,
    ) -> Result<Option<Row>, RepositoryFailure> {
        let rows = self.fetch_all(statement).await?;
        Ok(rows.into_iter().next())
    }

    /// Returns how often statements were retried after conflicts with transactions.
    pub(crate) fn retries(&self) -> u64 {
        match self {
            Self::Postgres(connections) => connections.retries(),
            Self::Sqlite(_) => 0,
        }
    }

    pub(crate) fn occupancy(&self) -> PoolOccupancy {
        match self {
            Self::Postgres(connections) => connections.occupancy(),
            Self::Sqlite(readers) => readers.occupancy(),
        }
    }

    /// Refuses new check-outs, waits for connections in use, for at most as long as a caller waits for one, and closes all.
    pub(crate) async fn close(&self) {
        match self {
            Self::Postgres(connections) => connections.close().await,
            Self::Sqlite(readers) => readers.close().await,
        }
    }
}
