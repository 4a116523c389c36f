//! The connections that read.
//!
//! On SQLite, a short read runs in place, on the caller's thread: reading a few rows by an index takes a few microseconds, less than
//! handing the read to another thread. Every other read is long: it runs on a thread where it may block, and long reads together
//! use only a part of the connections.

use std::{
    mem,
    ops::ControlFlow,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use deadpool::{
    Runtime,
    managed::{
        Manager, Metrics, Object, Pool, PoolError, QueueMode, RecycleResult, TimeoutType, Timeouts,
    },
};
use futures_util::future::{Either, select};
use keywright_core::{
    permission::Actor,
    ports::{Receive, RepositoryError},
};
use tokio::{sync::mpsc, task::spawn_blocking, time::timeout};

use super::{
    pool::{Engine, LongReads, PoolOccupancy, into_sqlx},
    postgres::PostgresConnections,
    sqlite::SqliteConnection,
    sqlite_file::SqliteFile,
};
use crate::{
    error::{is_busy, is_interrupted, is_unavailable, repository_failure},
    statement::{Decoded, Row, Statement},
};

/// The connections that read, on either engine.
#[derive(Clone)]
pub(crate) enum Connections {
    Postgres(PostgresConnections),
    Sqlite(SqliteReaders),
}

impl Connections {
    pub(crate) fn engine(&self) -> Engine {
        match self {
            Self::Postgres(_) => Engine::Postgres,
            Self::Sqlite(_) => Engine::Sqlite,
        }
    }

    /// Returns the same connections for reads of an actor, whose long reads wait for each other first.
    pub(crate) fn of_actor(&self, actor: &Actor) -> Self {
        match self {
            Self::Postgres(connections) => Self::Postgres(connections.of_actor(actor)),
            Self::Sqlite(readers) => Self::Sqlite(readers.of_actor(actor)),
        }
    }

    pub(crate) async fn fetch_all(
        &self,
        statement: Statement,
    ) -> Result<Vec<Row>, RepositoryError> {
        match self {
            Self::Postgres(connections) => connections.fetch_all(statement).await,
            Self::Sqlite(readers) => readers.read(statement, SqliteConnection::fetch_all).await,
        }
    }

    pub(crate) async fn decode_all<T: Decoded>(
        &self,
        statement: Statement,
    ) -> Result<Vec<T>, RepositoryError> {
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

    /// Runs a statement and passes its rows to the receiver, one by one, until there are no more or the receiver stops.
    /// Buffers only a few rows.
    pub(crate) async fn fetch_each(
        &self,
        statement: Statement,
        receive: &mut (dyn FnMut(Row) -> ControlFlow<()> + Send),
    ) -> Result<(), RepositoryError> {
        match self {
            Self::Postgres(connections) => connections.fetch_each(statement, receive).await,
            Self::Sqlite(readers) => readers.fetch_each(statement, receive).await,
        }
    }

    /// Like [`Self::fetch_each`], but decodes each row and passes the decoded value, if any, to the receiver.
    pub(crate) async fn decode_each<T>(
        &self,
        statement: Statement,
        mut decode: impl FnMut(&Row) -> Result<Option<T>, RepositoryError> + Send,
        receive: Receive<'_, T>,
    ) -> Result<(), RepositoryError> {
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
    ) -> Result<Option<Row>, RepositoryError> {
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

    /// Refuses new check-outs, waits for connections in use (at most as long as a caller waits), and closes all connections.
    pub(crate) async fn close(&self) {
        match self {
            Self::Postgres(connections) => connections.close().await,
            Self::Sqlite(readers) => readers.close().await,
        }
    }
}

/// Connections that read a SQLite file: opened on demand, up to a maximum number.
#[derive(Clone)]
pub(crate) struct SqliteReaders {
    pool: Pool<Opener>,
    wait_max: Duration,
    long_reads: LongReads,
}

struct Opener(SqliteFile);

impl Manager for Opener {
    /// Boxed, because the pool moves it several times per read.
    type Type = Box<SqliteConnection>;
    type Error = sqlx::Error;

    async fn create(&self) -> sqlx::Result<Self::Type> {
        let file = self.0.clone();
        let opening = spawn_blocking(move || file.connect());
        let opened = opening.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))?;
        opened.set_wait_max(Duration::ZERO)?;
        Ok(Box::new(opened))
    }

    async fn recycle(&self, _: &mut Self::Type, _: &Metrics) -> RecycleResult<sqlx::Error> {
        Ok(())
    }
}

impl SqliteReaders {
    /// Opens the first connection, to find out whether the file can be opened.
    ///
    /// A read waits for at most `wait_max`, both for a free connection and for a lock of another process.
    pub(crate) async fn open(
        file: SqliteFile,
        connections_max: u32,
        wait_max: Duration,
    ) -> sqlx::Result<Self> {
        let pool = Pool::builder(Opener(file))
            .max_size(connections_max as usize)
            .wait_timeout(Some(wait_max))
            // The connection that was used last has the most useful cache.
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| sqlx::Error::Configuration(error.into()))?;
        drop(pool.get().await.map_err(into_sqlx)?);
        let opener = pool.manager();
        if let Some(held) = opener.0.held_snapshot() {
            held.open(*opener.create().await?);
        }
        let long_reads = LongReads::for_pool(connections_max as usize);
        opener.0.limit_log(&long_reads, wait_max);
        Ok(Self {
            pool,
            wait_max,
            long_reads,
        })
    }

    /// Returns the same connections for reads of an actor.
    pub(super) fn of_actor(&self, actor: &Actor) -> Self {
        Self {
            long_reads: self.long_reads.of_actor(actor),
            ..self.clone()
        }
    }

    /// Runs a short read in place.
    ///
    /// # Errors
    /// [`RepositoryError::Unavailable`] if no connection becomes free in time, if none can be opened, or after
    /// [`Self::close`].
    pub(crate) async fn in_place<T>(
        &self,
        mut read: impl FnMut(&SqliteConnection) -> sqlx::Result<T>,
    ) -> Result<T, RepositoryError> {
        let begun = Instant::now();
        loop {
            let mut reader = self.check_out().await.map_err(repository_failure)?;
            match reader.run(&mut read) {
                Err(error) if is_busy(&error) && begun.elapsed() < self.wait_max => {
                    drop(reader);
                    tokio::time::sleep(BUSY_PAUSE).await;
                }
                outcome => return outcome.map_err(repository_failure),
            }
        }
    }

    /// Runs a statement, in place if it is short.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        statement: Statement,
        read: fn(&SqliteConnection, &Statement) -> sqlx::Result<T>,
    ) -> Result<T, RepositoryError> {
        if statement.is_short() {
            return self
                .in_place(|connection| read(connection, &statement))
                .await;
        }
        self.on_own_thread(move |connection| read(connection, &statement))
            .await
    }

    /// Runs a read on a thread where it may block. Dropping the future interrupts the read. A read of an actor is also interrupted
    /// after `wait_max`. Other reads, such as counts of all credentials, may take longer.
    pub(super) async fn on_own_thread<T: Send + 'static>(
        &self,
        read: impl FnOnce(&SqliteConnection) -> sqlx::Result<T> + Send + 'static,
    ) -> Result<T, RepositoryError> {
        let begun = Instant::now();
        let checking_out = timeout(self.wait_max, async {
            let permit = self.long_reads.acquire().await?;
            self.check_out().await.map(|reader| (permit, reader))
        });
        let checked_out = checking_out.await.unwrap_or(Err(sqlx::Error::PoolTimedOut));
        let (permit, mut reader) = checked_out.map_err(repository_failure)?;
        let interruption = Interruption::default();
        let is_interrupted = Arc::clone(&interruption.0);
        let wait_max = self.wait_max;
        let is_limited = self.long_reads.is_of_actor();
        let watch = move || {
            is_interrupted.load(Ordering::Relaxed) || is_limited && begun.elapsed() >= wait_max
        };
        let reading = spawn_blocking(move || {
            let _permit = permit;
            reader.run(|connection| connection.interruptible(wait_max, watch, read))
        });
        let outcome = reading.await.unwrap_or(Err(sqlx::Error::WorkerCrashed));
        drop(interruption);
        outcome.map_err(repository_failure)
    }

    /// Runs a statement on a thread where it may block. Passes its rows to the receiver, one by one, until there are no more or
    /// the receiver stops. At most [`BATCHES_AHEAD_MAX`] batches of rows wait for the receiver.
    pub(super) async fn fetch_each(
        &self,
        statement: Statement,
        receive: &mut (dyn FnMut(Row) -> ControlFlow<()> + Send),
    ) -> Result<(), RepositoryError> {
        let (sender, mut receiver) = mpsc::channel::<Vec<Row>>(BATCHES_AHEAD_MAX);
        let reading =
            pin!(self.on_own_thread(move |connection| {
                send_batches(connection, &statement, &sender)
            }));
        let receiving = pin!(async {
            while let Some(batch) = receiver.recv().await {
                if batch.into_iter().try_for_each(&mut *receive).is_break() {
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        });
        match select(reading, receiving).await {
            Either::Left((outcome, receiving)) => {
                outcome?;
                // The receiver has not yet got the last batches.
                let _ = receiving.await;
                Ok(())
            }
            Either::Right((ControlFlow::Break(()), _)) => Ok(()),
            Either::Right((ControlFlow::Continue(()), reading)) => reading.await,
        }
    }

    pub(crate) fn occupancy(&self) -> PoolOccupancy {
        PoolOccupancy::of(self.pool.status(), Some(&self.long_reads))
    }

    /// Refuses new check-outs, waits for connections in use (at most as long as a read waits), and closes all connections.
    pub(crate) async fn close(&self) {
        let begun = Instant::now();
        self.pool.close();
        self.long_reads.close();
        while self.pool.status().size > 0 && begun.elapsed() < self.wait_max {
            tokio::time::sleep(CLOSING_PAUSE).await;
        }
    }

    pub(super) async fn check_out(&self) -> sqlx::Result<Reader> {
        self.pool.manager().0.require_in_place()?;
        // Without a timer, because a connection is nearly always free.
        let mut connection = self.pool.timeout_get(&WITHOUT_WAITING).await;
        if let Err(PoolError::Timeout(TimeoutType::Wait)) = connection {
            connection = self.pool.get().await;
        }
        let connection = connection.map_err(into_sqlx)?;
        Ok(Reader(Some(connection)))
    }
}

/// A checked-out connection, which is returned to the pool when dropped. `None` after a failure, so that it is not used again.
pub(super) struct Reader(Option<Object<Opener>>);

impl Reader {
    /// Reads with the connection. Closes it after a failure that it may have caused.
    pub(super) fn run<T>(
        &mut self,
        read: impl FnOnce(&SqliteConnection) -> sqlx::Result<T>,
    ) -> sqlx::Result<T> {
        let outcome = read(self.0.as_ref().ok_or(sqlx::Error::WorkerCrashed)?);
        if let Err(error) = &outcome
            && is_unavailable(error)
            && !is_busy(error)
            && !is_interrupted(error)
        {
            drop(self.0.take().map(Object::take));
        }
        outcome
    }
}

impl Drop for Reader {
    /// Closes the connection if the read panicked: its next read would be interrupted like this one.
    fn drop(&mut self) {
        if thread::panicking() {
            drop(self.0.take().map(Object::take));
        }
    }
}

/// Interrupts a read on another thread when dropped.
#[derive(Default)]
struct Interruption(Arc<AtomicBool>);

impl Drop for Interruption {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn send_batches(
    connection: &SqliteConnection,
    statement: &Statement,
    sender: &mpsc::Sender<Vec<Row>>,
) -> sqlx::Result<()> {
    let mut batch = Vec::with_capacity(BATCH_ROWS);
    let mut receive = |row| {
        batch.push(row);
        if batch.len() < BATCH_ROWS {
            return ControlFlow::Continue(());
        }
        let full = mem::replace(&mut batch, Vec::with_capacity(BATCH_ROWS));
        match sender.blocking_send(full) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    };
    if connection
        .fetch_each(statement, &mut receive)?
        .is_continue()
    {
        // If the receiver is gone, this fails and nothing is lost.
        drop(sender.blocking_send(batch));
    }
    Ok(())
}

/// Timeouts for a connection that is free.
const WITHOUT_WAITING: Timeouts = Timeouts {
    wait: Some(Duration::ZERO),
    create: None,
    recycle: None,
};

/// The number of rows in a batch.
const BATCH_ROWS: usize = 128;
/// The maximum number of batches that wait for the receiver.
const BATCHES_AHEAD_MAX: usize = 2;

/// The pause before a retry of reading a locked file.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// The interval between checks for connections still in use.
const CLOSING_PAUSE: Duration = Duration::from_millis(10);
