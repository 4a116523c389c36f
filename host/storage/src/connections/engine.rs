//! The database engines, and a connection to a PostgreSQL server.

use std::{future::Future, io, ops::ControlFlow, time::Duration};

use futures_util::TryStreamExt;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection as _, Either, Executor as _, PgConnection,
    postgres::PgConnectOptions,
};

use super::doubt::Doubt;
use crate::{row::Row, statement::Statement};

/// A database engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// PostgreSQL, or a database that accepts the same SQL.
    Postgres,
    Sqlite,
}

/// How to open a connection to a PostgreSQL server.
pub(crate) struct PostgresTarget {
    pub(crate) options: Box<PgConnectOptions>,
    /// The longest time that a statement may take before its server is considered unreachable.
    pub(crate) wait_max: Duration,
    /// Whether writes are refused.
    pub(crate) is_read_only: bool,
    /// Shared by all pools of connections to the server.
    pub(crate) doubt: Doubt,
}

pub(super) struct PostgresConnection {
    connection: PgConnection,
    wait_max: Duration,
}

impl PostgresTarget {
    /// Opens a connection. Boxed, because the future is large and rarely needed, and the futures of all requests contain it.
    pub(super) async fn connect(&self) -> Result<PostgresConnection, sqlx::Error> {
        let connecting = connect(&self.options, self.wait_max, self.is_read_only);
        Ok(PostgresConnection {
            connection: Box::pin(connecting).await?,
            wait_max: self.wait_max,
        })
    }
}

impl PostgresConnection {
    /// Runs a statement and returns its rows and the number of rows that it changed.
    pub(super) async fn run(
        &mut self,
        statement: &Statement,
    ) -> Result<(Vec<Row>, u64), sqlx::Error> {
        let mut results = self.connection.fetch_many(statement.query());
        let running = async {
            let (mut rows, mut changed) = (Vec::new(), 0);
            while let Some(result) = results.try_next().await? {
                match result {
                    Either::Left(done) => changed += done.rows_affected(),
                    Either::Right(row) => rows.push(Row::Postgres(row)),
                }
            }
            Ok((rows, changed))
        };
        within(self.wait_max, running).await
    }

    /// Passes rows to the receiver until there are no more or the receiver breaks off.
    pub(super) async fn fetch_each(
        &mut self,
        statement: &Statement,
        receive: &mut (dyn FnMut(Row) -> ControlFlow<()> + Send),
    ) -> Result<ControlFlow<()>, sqlx::Error> {
        let mut rows = self.connection.fetch(statement.query());
        let receiving = async {
            while let Some(row) = rows.try_next().await? {
                if receive(Row::Postgres(row)).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        };
        within(self.wait_max, receiving).await
    }

    /// Runs a statement that has neither parameters nor rows.
    pub(super) async fn run_raw(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        let running = sqlx::raw_sql(sql).execute(&mut self.connection);
        within(self.wait_max, running).await.map(drop)
    }

    /// Rolls back the transaction of an earlier user, after all its pending statements.
    pub(super) async fn settle(&mut self) -> Result<(), sqlx::Error> {
        self.run_raw(POSTGRES_ROLLBACK).await
    }

    /// Runs a health check.
    pub(super) async fn ping(&mut self) -> Result<(), sqlx::Error> {
        self.connection.ping().await
    }

    pub(super) async fn close(self) -> Result<(), sqlx::Error> {
        self.connection.close().await
    }
}

/// Connects to a server. `statement_timeout` also cancels, on the server, a statement that is given up here: otherwise it would
/// keep running next to those of a new connection. `enable_seqscan` is off because a sequential scan in a serializable
/// transaction conflicts with every write to the table; PostgreSQL would choose one for a small table, or for an index with a
/// long pending list. `jit` is off because compiling these plans takes longer than running them.
async fn connect(
    options: &PgConnectOptions,
    wait_max: Duration,
    is_read_only: bool,
) -> Result<PgConnection, sqlx::Error> {
    let mut connection = options.connect().await?;
    let milliseconds = wait_max.as_millis().clamp(1, STATEMENT_MILLISECONDS_MAX);
    for setting in [
        format!("set statement_timeout = {milliseconds}"),
        "set enable_seqscan = off".to_owned(),
        "set jit = off".to_owned(),
    ] {
        match set(&mut connection, setting.clone()).await {
            Err(error @ sqlx::Error::Database(_)) => tracing::debug!(
                error = &error as &dyn std::error::Error,
                setting,
                "the database does not support a setting"
            ),
            outcome => outcome?,
        }
    }
    if is_read_only {
        set(&mut connection, POSTGRES_READ_ONLY.to_owned()).await?;
    }
    Ok(connection)
}

async fn set(connection: &mut PgConnection, sql: String) -> Result<(), sqlx::Error> {
    let setting = sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection);
    setting.await.map(drop)
}

/// Limits the time of work on a server, which may have become unreachable without closing its connections.
pub(super) async fn within<T>(
    wait_max: Duration,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    tokio::time::timeout(wait_max, work)
        .await
        .unwrap_or_else(|_| Err(sqlx::Error::Io(io::ErrorKind::TimedOut.into())))
}

/// The largest limit that PostgreSQL accepts, in milliseconds.
const STATEMENT_MILLISECONDS_MAX: u128 = 0x7fff_ffff;

/// Makes all later transactions on the connection read-only.
const POSTGRES_READ_ONLY: &str = "set default_transaction_read_only = on";

/// Changes nothing if there is no transaction.
const POSTGRES_ROLLBACK: &str = "rollback";
