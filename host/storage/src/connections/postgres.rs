//! Connections to a PostgreSQL server, and their pool.
//!
//! The pool replaces sqlx's own, which runs a health check on every returned connection. This pool checks a connection only if
//! its last use was cancelled, if it was idle for a while, or if another connection was found dead since its last use. A
//! connection is retired at a maximum age, and when a write on any connection is refused: another server may be the primary by
//! then.

use std::{
    future::Future,
    io,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use deadpool::{
    Runtime,
    managed::{Manager, Metrics, Object, Pool, QueueMode, RecycleError, RecycleResult},
};
use futures_util::TryStreamExt;
use keywright_core::{permission::Actor, ports::RepositoryError};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection as _, Either, Executor as _, PgConnection, Row as _,
    error::DatabaseError, postgres::PgConnectOptions,
};
use tokio::time::timeout;

use super::pool::{LongRead, LongReads, PoolOccupancy, Retries, ServerHealth, into_sqlx};
use crate::{
    error::{is_read_only, is_unavailable, repository_failure},
    statement::{Row, Statement},
};

/// Connections to a PostgreSQL server: opened on demand, up to a maximum number.
#[derive(Clone)]
pub(crate) struct PostgresConnections {
    pool: Pool<PostgresTarget>,
    wait_max: Duration,
    is_closed: Arc<AtomicBool>,
    retries: Arc<AtomicU64>,
    /// `None` if the connections write.
    long_reads: Option<LongReads>,
}

/// A checked-out connection. Dropping it returns it to the pool.
pub(super) struct CheckedOutConnection {
    pooled: Object<PostgresTarget>,
    /// The deadline for beginning a transaction.
    pub(super) wait_ends: Instant,
}

impl PostgresConnections {
    /// Opens the first connection, to find out whether the database can be opened.
    ///
    /// A caller waits for at most `wait_max` while all `connections_max` are checked out.
    pub(crate) async fn open(
        target: PostgresTarget,
        connections_max: u32,
        wait_max: Duration,
    ) -> Result<Self, sqlx::Error> {
        let pool = Pool::builder(target)
            .max_size(connections_max as usize)
            .wait_timeout(Some(wait_max))
            .create_timeout(Some(wait_max))
            .recycle_timeout(Some(ROLLBACK_WAIT_MAX))
            // The connection that was used last has the most useful cache.
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| sqlx::Error::Configuration(error.into()))?;
        drop(pool.get().await.map_err(into_sqlx)?);
        Ok(Self {
            pool,
            wait_max,
            is_closed: Arc::new(AtomicBool::new(false)),
            retries: Arc::default(),
            long_reads: None,
        })
    }

    /// Reserves a part of the connections for point reads.
    pub(crate) fn reading(self) -> Self {
        Self {
            long_reads: Some(LongReads::for_pool(self.pool.status().max_size)),
            ..self
        }
    }

    /// Returns the same connections for reads of an actor.
    pub(super) fn of_actor(&self, actor: &Actor) -> Self {
        let long_reads = self.long_reads.as_ref();
        Self {
            long_reads: long_reads.map(|long_reads| long_reads.of_actor(actor)),
            ..self.clone()
        }
    }

    pub(crate) async fn fetch_all(
        &self,
        statement: Statement,
    ) -> Result<Vec<Row>, RepositoryError> {
        self.run(statement).await.map(|(rows, _)| rows)
    }

    /// Runs a statement and returns its rows and the number of rows that it changed. Retries it after conflicts with
    /// transactions: reads conflict on a standby, and on databases other than PostgreSQL.
    pub(crate) async fn run(
        &self,
        statement: Statement,
    ) -> Result<(Vec<Row>, u64), RepositoryError> {
        self.in_time(async {
            let _permit = self.permit(&statement).await?;
            let mut retries = Retries::new(&self.retries, self.wait_max);
            loop {
                let mut connection = self.check_out().await?;
                let done = connection.begin_use().run(&statement).await;
                let outcome = connection.end_use(done);
                drop(connection);
                match outcome {
                    Err(failure) if retries.should_retry(&failure).await => {}
                    outcome => return outcome,
                }
            }
        })
        .await
    }

    /// Runs a statement and passes its rows to the receiver, one by one, until there are no more or the receiver stops. Does
    /// not buffer rows.
    pub(crate) async fn fetch_each(
        &self,
        statement: Statement,
        receive: &mut (dyn FnMut(Row) -> ControlFlow<()> + Send),
    ) -> Result<(), RepositoryError> {
        let has_received = AtomicBool::new(false);
        let mut receive = |row| {
            has_received.store(true, Ordering::Relaxed);
            receive(row)
        };
        self.in_time(async {
            let _permit = self.permit(&statement).await?;
            let mut retries = Retries::new(&self.retries, self.wait_max);
            loop {
                let mut connection = self.check_out().await?;
                let using = connection.begin_use();
                let outcome = match using.fetch_each(&statement, &mut receive).await {
                    // The connection stays in use: more rows are pending.
                    Ok(ControlFlow::Break(())) => return Ok(()),
                    outcome => connection.end_use(outcome.map(drop)),
                };
                drop(connection);
                let is_first = !has_received.load(Ordering::Relaxed);
                match outcome {
                    Err(failure) if is_first && retries.should_retry(&failure).await => {}
                    outcome => return outcome,
                }
            }
        })
        .await
    }

    /// Waits until a statement may check out a connection.
    async fn permit(&self, statement: &Statement) -> Result<Option<LongRead>, RepositoryError> {
        match &self.long_reads {
            Some(long_reads) if !statement.is_short() => {
                let permit = long_reads.acquire().await;
                permit.map(Some).map_err(repository_failure)
            }
            _ => Ok(None),
        }
    }

    pub(super) fn retries_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.retries)
    }

    /// Returns how often statements were retried after conflicts with transactions.
    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Checks out a connection.
    ///
    /// # Errors
    /// [`RepositoryError::Unavailable`] if no connection becomes free in time, if none can be opened, or after
    /// [`Self::close`].
    pub(super) async fn check_out(&self) -> Result<CheckedOutConnection, RepositoryError> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(repository_failure(sqlx::Error::PoolClosed));
        }
        let wait_ends = Instant::now() + self.wait_max;
        self.in_time(async {
            match self.pool.get().await {
                Ok(pooled) => Ok(CheckedOutConnection { pooled, wait_ends }),
                Err(error) => Err(repository_failure(into_sqlx(error))),
            }
        })
        .await
    }

    pub(crate) fn occupancy(&self) -> PoolOccupancy {
        PoolOccupancy::of(self.pool.status(), self.long_reads.as_ref())
    }

    /// Refuses new check-outs, waits for connections in use (at most as long as a caller waits), and closes all connections.
    pub(crate) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        if let Some(long_reads) = &self.long_reads {
            long_reads.close();
        }
        let begun = Instant::now();
        loop {
            for idle in self.pool.retain(|_, _| false).removed {
                if let Err(error) = idle.connection.session.close().await {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "could not close a connection to the database"
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

    /// Limits work to the longest time that a caller waits, over all its steps: a server may stop responding in any of them.
    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, RepositoryError>>,
    ) -> Result<T, RepositoryError> {
        timeout(self.wait_max, work)
            .await
            .unwrap_or_else(|_| Err(repository_failure(sqlx::Error::PoolTimedOut)))
    }
}

impl CheckedOutConnection {
    /// Returns the connection for a use that ends with [`Self::end_use`].
    pub(super) fn begin_use(&mut self) -> &mut PostgresConnection {
        self.pooled.state.set_unless_retired(ConnectionState::InUse);
        &mut self.pooled.connection
    }

    /// Records the outcome of a use of the connection.
    pub(super) fn end_use<T>(
        &mut self,
        outcome: Result<T, sqlx::Error>,
    ) -> Result<T, RepositoryError> {
        let state = match &outcome {
            Err(error) => ConnectionState::after(error),
            Ok(_) => ConnectionState::Clean,
        };
        if state == ConnectionState::Retired {
            self.retire();
        }
        self.pooled.state.set_unless_retired(state);
        outcome.map_err(repository_failure)
    }

    /// Retires this connection and all that were opened before now, after a write was refused.
    pub(super) fn retire(&mut self) {
        self.pooled.state = ConnectionState::Retired;
        if let Some(pool) = Object::pool(&self.pooled) {
            let health = &pool.manager().server_health;
            health.retire_older(Instant::now());
        }
    }

    /// Rolls back. If that fails, the next check-out tries again. A retired connection is closed.
    pub(super) async fn roll_back(mut self) {
        if self.pooled.state == ConnectionState::Retired {
            drop(Object::take(self.pooled));
            return;
        }
        let rolling_back = self.pooled.connection.roll_back();
        if let Ok(Ok(())) = timeout(ROLLBACK_WAIT_MAX, rolling_back).await {
            self.pooled.state.set_unless_retired(ConnectionState::Clean);
        }
    }
}

pub(crate) struct Opened {
    connection: PostgresConnection,
    state: ConnectionState,
}

impl Manager for PostgresTarget {
    type Type = Opened;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<Opened, sqlx::Error> {
        // Boxed, because the future is large and rarely needed, and the futures of all requests contain it.
        let connected = Box::pin(connect(&self.options, self.wait_max)).await;
        let session = connected.inspect_err(|_| self.server_health.suspect_idle(Instant::now()))?;
        Ok(Opened {
            connection: PostgresConnection {
                session,
                wait_max: self.wait_max,
            },
            state: ConnectionState::Clean,
        })
    }

    async fn recycle(&self, opened: &mut Opened, metrics: &Metrics) -> RecycleResult<sqlx::Error> {
        let (health, now) = (&self.server_health, Instant::now());
        if opened.state == ConnectionState::Retired || health.retires(metrics.age(), now) {
            return Err(RecycleError::message("its server may be a former primary"));
        }
        if opened.state == ConnectionState::InUse {
            let rolled_back = opened.connection.roll_back().await;
            rolled_back.inspect_err(|_| health.suspect_idle(Instant::now()))?;
            opened.state = ConnectionState::Clean;
        } else if health.needs_check(metrics.last_used(), now) {
            let checked = opened.connection.session.ping().await;
            checked.inspect_err(|_| health.suspect_idle(Instant::now()))?;
        }
        Ok(())
    }
}

/// The state in which the last use left a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// No statement or transaction is pending.
    Clean,
    /// The use did not end: a query may still be running, or a rollback may have failed.
    InUse,
    /// A write was refused: the former primary is now a standby. A new connection may lead to the primary.
    Retired,
}

impl ConnectionState {
    /// Records the result of another use. A retired connection stays retired.
    pub(super) fn set_unless_retired(&mut self, next: Self) {
        if *self != Self::Retired {
            *self = next;
        }
    }

    /// Returns the state after a use that failed with this error.
    pub(super) fn after(error: &sqlx::Error) -> Self {
        if is_read_only(error) {
            Self::Retired
        } else if is_unavailable(error) {
            Self::InUse
        } else {
            Self::Clean
        }
    }
}

/// How to open a connection to a PostgreSQL server.
pub(crate) struct PostgresTarget {
    pub(crate) options: Box<PgConnectOptions>,
    /// The longest time that a statement may take before its server is considered unreachable.
    pub(crate) wait_max: Duration,
    /// Shared by all pools of connections to the server.
    pub(crate) server_health: ServerHealth,
}

pub(super) struct PostgresConnection {
    session: PgConnection,
    wait_max: Duration,
}

impl PostgresConnection {
    pub(super) async fn run(
        &mut self,
        statement: &Statement,
    ) -> Result<(Vec<Row>, u64), sqlx::Error> {
        let mut results = self.session.fetch_many(statement.query());
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

    /// Passes rows to the receiver until there are no more or the receiver stops.
    pub(super) async fn fetch_each(
        &mut self,
        statement: &Statement,
        receive: &mut (dyn FnMut(Row) -> ControlFlow<()> + Send),
    ) -> Result<ControlFlow<()>, sqlx::Error> {
        let mut rows = self.session.fetch(statement.query());
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
        let running = sqlx::raw_sql(sql).execute(&mut self.session);
        within(self.wait_max, running).await.map(drop)
    }

    /// Rolls back the transaction of an earlier user, after all its pending statements.
    pub(super) async fn roll_back(&mut self) -> Result<(), sqlx::Error> {
        self.run_raw(POSTGRES_ROLLBACK).await
    }
}

/// Connects to a server. Refuses a database in which the server's statements would run the code of any role, before it runs one, and
/// a session without triggers. Then sets:
///
/// - With `statement_timeout`, the server also cancels a statement that this program has given up, and with
///   `client_connection_check_interval` a statement whose connection was closed. Otherwise the statement would keep running
///   alongside the statements of a new connection.
/// - `enable_seqscan` is off because a sequential scan in a serializable transaction conflicts with every write to the table;
///   PostgreSQL would choose one for a small table, or for an index with a long pending list.
/// - `jit` is off because compiling these plans takes longer than running them.
/// - `quote_all_identifiers` is off because it changes the definitions that `keywright check` compares.
/// - `row_security` is off so that a statement fails if a policy would hide rows: otherwise, stored credentials would appear absent.
/// - `synchronous_commit` is not off, so that a crash of the database loses no acknowledged write.
/// - `idle_session_timeout` and `transaction_timeout` are off because defaults of the role or the database could close pooled
///   connections and end migrations.
///
/// A pooler may pass the session with these settings to another client of the database, so all pools have the same settings.
pub(crate) async fn connect(
    options: &PgConnectOptions,
    wait_max: Duration,
) -> Result<PgConnection, sqlx::Error> {
    let mut connection = options.connect().await?;
    for (condition, refusal) in [
        (SCHEMA_IS_OPEN, OPEN_SCHEMA),
        (TRIGGERS_ARE_OFF, NO_TRIGGERS),
    ] {
        let row = sqlx::raw_sql(condition).fetch_one(&mut connection).await?;
        if row.try_get(0)? {
            return Err(sqlx::Error::Configuration(refusal.into()));
        }
    }
    let milliseconds = milliseconds(wait_max);
    for setting in [
        format!("set statement_timeout = {milliseconds}"),
        // PostgreSQL 13 does not support it.
        "set client_connection_check_interval = 250".to_owned(),
        "set enable_seqscan = off".to_owned(),
        "set jit = off".to_owned(),
        "set quote_all_identifiers = off".to_owned(),
        "set row_security = off".to_owned(),
        "select set_config(name, 'on', false) from pg_settings where name = 'synchronous_commit' and setting = 'off'"
            .to_owned(),
        // Older versions have none or one of the two.
        "select set_config(name, '0', false) from pg_settings where name in ('idle_session_timeout', 'transaction_timeout')"
            .to_owned(),
    ] {
        match set(&mut connection, setting.clone()).await {
            Err(error) if is_unknown_setting(&error) => tracing::debug!(
                error = &error as &dyn std::error::Error,
                setting,
                "the database does not support a setting"
            ),
            outcome => outcome?,
        }
    }
    Ok(connection)
}

fn is_unknown_setting(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.is_some_and(|code| UNKNOWN_SETTING.contains(&&*code))
}

async fn set(connection: &mut PgConnection, sql: String) -> Result<(), sqlx::Error> {
    let setting = sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection);
    setting.await.map(drop)
}

/// Returns a duration within the range of PostgreSQL's time limits.
pub(crate) fn milliseconds(duration: Duration) -> u128 {
    duration.as_millis().clamp(1, STATEMENT_MILLISECONDS_MAX)
}

/// Limits the time of work on a server, which may have become unreachable without closing its connections.
pub(crate) async fn within<T, E: From<sqlx::Error>>(
    wait_max: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    tokio::time::timeout(wait_max, work)
        .await
        .unwrap_or_else(|_| Err(sqlx::Error::Io(io::ErrorKind::TimedOut.into()).into()))
}

/// How long the pool waits for the rollback of a connection whose last use was cancelled. Then it opens another one instead.
const ROLLBACK_WAIT_MAX: Duration = Duration::from_millis(500);

/// The interval between checks for connections still in use.
const CLOSING_PAUSE: Duration = Duration::from_millis(10);

/// The largest limit that PostgreSQL accepts, in milliseconds.
const STATEMENT_MILLISECONDS_MAX: u128 = 0x7fff_ffff;

/// The codes of a setting that the database does not have, or not on its operating system.
const UNKNOWN_SETTING: [&str; 3] = ["42704", "0A000", "22023"];

/// Returns whether every role may create objects in a schema of the search path. Such objects can replace functions and operators
/// without a schema, so each one here has a schema.
const SCHEMA_IS_OPEN: &str = "select exists (
    select from pg_catalog.unnest(pg_catalog.current_schemas(false)) as name
    where pg_catalog.has_schema_privilege('public', name::pg_catalog.text, 'create'))";

const OPEN_SCHEMA: &str = "every role may create objects in a schema of search_path, and their code would run as the server's role; revoke \
                           create on the schema from public, and grant it to the server's role";

/// Returns whether a default of the role or the database disables triggers and foreign keys: writes would leave the index of names
/// incomplete. The server can't change the setting, which needs a privilege.
const TRIGGERS_ARE_OFF: &str = "select pg_catalog.current_setting('session_replication_role') operator(pg_catalog.=) 'replica'";

const NO_TRIGGERS: &str = "session_replication_role is replica, which disables triggers; reset it for the role and the database";

/// Changes nothing if there is no transaction.
pub(super) const POSTGRES_ROLLBACK: &str = "rollback";
