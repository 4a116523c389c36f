//! The engines, and a connection to a server of PostgreSQL.

use std::{future::Future, io, ops::ControlFlow, time::Duration};

use futures_util::TryStreamExt;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection as _, PgConnection, postgres::PgConnectOptions,
};

use super::doubt::Doubt;
use crate::{row::Row, statement::Statement};

/// Which database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// PostgreSQL, or what takes the same SQL.
    Postgres,
    /// SQLite.
    Sqlite,
}

/// How a connection to a server of PostgreSQL is opened.
pub(crate) struct PostgresTarget {
    pub(crate) options: Box<PgConnectOptions>,
    /// How long a statement may take before its server counts as gone.
    pub(crate) wait_max: Duration,
    /// Whether nothing can be written.
    pub(crate) is_read_only: bool,
    /// Shared by all pools of connections to the server.
    pub(crate) doubt: Doubt,
}

pub(super) struct PostgresConnection {
    connection: PgConnection,
    wait_max: Duration,
}

impl PostgresTarget {
    /// Opens a connection. What that takes is large, and seldom needed: it stands apart, so that the futures of all requests
    /// are small.
    pub(super) async fn connect(&self) -> Result<PostgresConnection, sqlx::Error> {
        let connecting = connect(&self.options, self.wait_max, self.is_read_only);
        Ok(PostgresConnection {
            connection: Box::pin(connecting).await?,
            wait_max: self.wait_max,
        })
    }
}

impl PostgresConnection {
    pub(super) async fn fetch_all(
        &mut self,
        statement: Statement,
    ) -> Result<Vec<Row>, sqlx::Error> {
        let fetching = statement.into_query().fetch_all(&mut self.connection);
        let rows = within(self.wait_max, fetching).await?;
        Ok(rows.into_iter().map(Row::Postgres).collect())
    }

    /// Passes on rows until there are no more, or until the receiver breaks off.
    pub(super) async fn fetch_each(
        &mut self,
        statement: Statement,
        receive: &mut (dyn FnMut(Row) -> ControlFlow<()> + Send),
    ) -> Result<ControlFlow<()>, sqlx::Error> {
        let mut rows = statement.into_query().fetch(&mut self.connection);
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

    pub(super) async fn fetch_optional(
        &mut self,
        statement: Statement,
    ) -> Result<Option<Row>, sqlx::Error> {
        let fetching = statement.into_query().fetch_optional(&mut self.connection);
        Ok(within(self.wait_max, fetching).await?.map(Row::Postgres))
    }

    /// Runs a statement, and returns how many rows it changed.
    pub(super) async fn execute(&mut self, statement: Statement) -> Result<u64, sqlx::Error> {
        let executing = statement.into_query().execute(&mut self.connection);
        Ok(within(self.wait_max, executing).await?.rows_affected())
    }

    /// Runs a statement that has neither parameters nor rows.
    pub(super) async fn run(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        let running = sqlx::raw_sql(sql).execute(&mut self.connection);
        within(self.wait_max, running).await.map(drop)
    }

    /// Ends what an earlier user has left: done after all that is still under way.
    pub(super) async fn settle(&mut self) -> Result<(), sqlx::Error> {
        self.run(POSTGRES_ROLLBACK).await
    }

    /// Asks for a sign of life.
    pub(super) async fn ping(&mut self) -> Result<(), sqlx::Error> {
        self.connection.ping().await
    }

    pub(super) async fn close(self) -> Result<(), sqlx::Error> {
        self.connection.close().await
    }
}

/// Connects to a server. What is given up here it gives up as well: else the statement would go on there, and another
/// connection would be opened beside it. It reads by indexes, as it is expected to: a table that is still small, or an index
/// with much in its list of what is to be entered, would have it read whole tables, and what a transaction has read as a whole
/// is in the way of all that write there. And it does not compile plans, which takes longer than what they do.
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
                "the database does not know a setting"
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

/// Waits for a server, which may have gone without a word, or for what may never end.
pub(super) async fn within<T>(
    wait_max: Duration,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    tokio::time::timeout(wait_max, work)
        .await
        .unwrap_or_else(|_| Err(sqlx::Error::Io(io::ErrorKind::TimedOut.into())))
}

/// The most milliseconds that PostgreSQL takes for a limit.
const STATEMENT_MILLISECONDS_MAX: u128 = 0x7fff_ffff;

/// What begins on the connection from now on can't write.
const POSTGRES_READ_ONLY: &str = "set default_transaction_read_only = on";

/// Where there is no transaction, it changes nothing.
const POSTGRES_ROLLBACK: &str = "rollback";
