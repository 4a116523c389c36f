//! What differs between the engines when a statement is run: the types of sqlx.

use std::{future::Future, io, ops::ControlFlow, time::Duration};

use futures_util::TryStreamExt;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection as _, PgConnection, postgres::PgConnectOptions,
};

use super::{SqliteConnection, doubt::Doubt, file::SqliteFile};
use crate::{row::Row, statement::Statement};

/// Which database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// PostgreSQL, or what takes the same SQL.
    Postgres,
    /// SQLite.
    Sqlite,
}

/// How a connection is opened.
pub(crate) enum Target {
    Postgres {
        options: Box<PgConnectOptions>,
        /// How long a statement may take before its server counts as gone.
        wait_max: Duration,
        /// Whether nothing can be written.
        is_read_only: bool,
        /// Shared by all pools of connections to the server.
        doubt: Doubt,
    },
    Sqlite(Box<SqliteFile>),
}

pub(super) enum Connection {
    Postgres {
        connection: PgConnection,
        wait_max: Duration,
    },
    Sqlite(SqliteConnection),
}

/// What runs a statement.
pub(super) enum Executor<'c> {
    Postgres {
        connection: &'c mut PgConnection,
        wait_max: Duration,
    },
    Sqlite(&'c mut SqliteConnection),
}

impl Target {
    pub(super) fn engine(&self) -> Engine {
        match self {
            Self::Postgres { .. } => Engine::Postgres,
            Self::Sqlite(_) => Engine::Sqlite,
        }
    }

    /// After a connection was found dead.
    pub(super) fn doubt(&self) {
        if let Self::Postgres { doubt, .. } = self {
            doubt.cast();
        }
    }

    /// Whether a connection must be asked for a sign of life that was last used so long ago. One to a file needs none.
    pub(super) fn is_doubted(&self, last_used: Duration) -> bool {
        match self {
            Self::Postgres { doubt, .. } => doubt.concerns(last_used),
            Self::Sqlite(_) => false,
        }
    }

    /// Fails while the file of the database is not in its place.
    pub(super) fn require_in_place(&self) -> Result<(), sqlx::Error> {
        match self {
            Self::Postgres { .. } => Ok(()),
            Self::Sqlite(file) => file.require_in_place(),
        }
    }

    /// After a connection was found to lead where nobody may write.
    pub(super) fn outdate(&self) {
        if let Self::Postgres { doubt, .. } = self {
            doubt.outdate();
        }
    }

    /// Whether a connection must not be used again that was opened so long ago. A file does not move.
    pub(super) fn is_outdated(&self, age: Duration) -> bool {
        match self {
            Self::Postgres { doubt, .. } => doubt.outdates(age),
            Self::Sqlite(_) => false,
        }
    }

    /// Opens a connection. What that takes is large, and seldom needed: it stands apart, so that the futures of all requests
    /// are small.
    pub(super) async fn connect(&self) -> Result<Connection, sqlx::Error> {
        Ok(match self {
            Self::Postgres {
                options,
                wait_max,
                is_read_only,
                ..
            } => Connection::Postgres {
                connection: Box::pin(connect(options, *wait_max, *is_read_only)).await?,
                wait_max: *wait_max,
            },
            Self::Sqlite(file) => Connection::Sqlite(file.connect()?),
        })
    }
}

impl Connection {
    pub(super) fn executor(&mut self) -> Executor<'_> {
        match self {
            Self::Postgres {
                connection,
                wait_max,
            } => Executor::Postgres {
                connection,
                wait_max: *wait_max,
            },
            Self::Sqlite(connection) => Executor::Sqlite(connection),
        }
    }

    /// Runs a statement that has neither parameters nor rows.
    pub(super) async fn run(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        match self {
            Self::Postgres {
                connection,
                wait_max,
            } => {
                let running = sqlx::raw_sql(sql).execute(connection);
                within(*wait_max, running).await.map(drop)
            }
            Self::Sqlite(connection) => connection.run(sql),
        }
    }

    /// Ends what an earlier user has left: done after all that is still under way.
    pub(super) async fn settle(&mut self) -> Result<(), sqlx::Error> {
        match self {
            Self::Postgres { .. } => self.run(POSTGRES_ROLLBACK).await,
            // One that is lent only reads: there is no transaction to end.
            Self::Sqlite(_) => Ok(()),
        }
    }

    /// Asks for a sign of life.
    pub(super) async fn ping(&mut self) -> Result<(), sqlx::Error> {
        match self {
            Self::Postgres { connection, .. } => connection.ping().await,
            Self::Sqlite(_) => Ok(()),
        }
    }

    pub(super) async fn close(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Postgres { connection, .. } => connection.close().await,
            Self::Sqlite(_) => Ok(()),
        }
    }
}

impl Executor<'_> {
    pub(super) async fn fetch_all(self, statement: Statement) -> Result<Vec<Row>, sqlx::Error> {
        match self {
            Self::Postgres {
                connection,
                wait_max,
            } => {
                let query = statement.into_query();
                let rows = within(wait_max, query.fetch_all(connection)).await?;
                Ok(rows.into_iter().map(Row::Postgres).collect())
            }
            Self::Sqlite(connection) => connection.fetch_all(&statement),
        }
    }

    /// Passes on rows until there are no more, or until the receiver breaks off.
    pub(super) async fn fetch_each(
        self,
        statement: Statement,
        receive: &mut (dyn FnMut(Row) -> ControlFlow<()> + Send),
    ) -> Result<ControlFlow<()>, sqlx::Error> {
        match self {
            Self::Postgres {
                connection,
                wait_max,
            } => {
                let query = statement.into_query();
                let mut rows = query.fetch(connection);
                let receiving = async {
                    while let Some(row) = rows.try_next().await? {
                        if receive(Row::Postgres(row)).is_break() {
                            return Ok(ControlFlow::Break(()));
                        }
                    }
                    Ok(ControlFlow::Continue(()))
                };
                within(wait_max, receiving).await
            }
            Self::Sqlite(connection) => connection.fetch_each(&statement, receive),
        }
    }

    pub(super) async fn fetch_optional(
        self,
        statement: Statement,
    ) -> Result<Option<Row>, sqlx::Error> {
        match self {
            Self::Postgres {
                connection,
                wait_max,
            } => {
                let query = statement.into_query();
                let row = within(wait_max, query.fetch_optional(connection));
                Ok(row.await?.map(Row::Postgres))
            }
            Self::Sqlite(connection) => connection.fetch_optional(&statement),
        }
    }

    /// How many rows were changed.
    pub(super) async fn execute(self, statement: Statement) -> Result<u64, sqlx::Error> {
        match self {
            Self::Postgres {
                connection,
                wait_max,
            } => {
                let query = statement.into_query();
                let done = within(wait_max, query.execute(connection));
                Ok(done.await?.rows_affected())
            }
            Self::Sqlite(connection) => connection.execute(&statement),
        }
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
