//! The connections that read a SQLite file.
//!
//! A short read runs in place, on the caller's thread: reading a few rows by an index takes a few microseconds, less than
//! handing the read to another thread. Every other read is long: it runs on a thread where it may block, and long reads together
//! use only a part of the connections.

use std::{
    mem,
    ops::ControlFlow,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::{Either, select};
use keywright_core::ports::RepositoryError;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::spawn_blocking,
    time::timeout,
};

use super::{
    pool::{LongReads, PoolOccupancy, WaitCounter},
    sqlite::{SqliteConnection, SqliteFile},
};
use crate::{
    failure::{is_busy, is_unavailable, repository_failure},
    row::Row,
    statement::Statement,
};

/// Connections that read a SQLite file: opened on demand, up to a maximum number.
#[derive(Clone)]
pub(crate) struct SqliteReaders {
    shared: Arc<Shared>,
}

struct Shared {
    file: SqliteFile,
    connections_max: usize,
    wait_max: Duration,
    slots: Arc<Semaphore>,
    /// The connections that are not checked out. The most recently used connection is last: it has the most useful cache.
    idle: Mutex<Vec<SqliteConnection>>,
    waiting: WaitCounter,
    long_reads: LongReads,
}

impl SqliteReaders {
    /// Opens the first connection, to find out whether the file can be opened.
    ///
    /// A read waits for at most `wait_max`, both for a free connection and for a lock of another process.
    pub(crate) fn open(
        file: SqliteFile,
        connections_max: u32,
        wait_max: Duration,
    ) -> sqlx::Result<Self> {
        let first = file.connect()?;
        first.set_wait_max(Duration::ZERO)?;
        let connections_max = connections_max as usize;
        let shared = Shared {
            file,
            connections_max,
            wait_max,
            slots: Arc::new(Semaphore::new(connections_max)),
            idle: Mutex::new(vec![first]),
            waiting: WaitCounter::default(),
            long_reads: LongReads::for_pool(connections_max),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Runs a short read in place.
    ///
    /// # Errors
    /// [`RepositoryError::Unavailable`] if no connection becomes free in time, if none can be opened, or after
    /// [`Self::close`].
    pub(super) async fn in_place<T>(
        &self,
        mut read: impl FnMut(&SqliteConnection) -> sqlx::Result<T>,
    ) -> Result<T, RepositoryError> {
        let begun = Instant::now();
        loop {
            let mut reader = self.check_out().await.map_err(repository_failure)?;
            match reader.run(&mut read) {
                Err(error) if is_busy(&error) && begun.elapsed() < self.shared.wait_max => {
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

    /// Runs several short reads in place, on one snapshot of the database.
    pub(crate) async fn snapshot<T>(
        &self,
        mut read: impl FnMut(&SqliteConnection) -> sqlx::Result<T>,
    ) -> Result<T, RepositoryError> {
        self.in_place(|connection| connection.snapshot(|| read(connection)))
            .await
    }

    /// Runs a read on a thread where it may block. Dropping the future interrupts the read.
    pub(super) async fn on_own_thread<T: Send + 'static>(
        &self,
        read: impl FnOnce(&SqliteConnection) -> sqlx::Result<T> + Send + 'static,
    ) -> Result<T, RepositoryError> {
        let checking_out = timeout(self.shared.wait_max, async {
            let permit = self.shared.long_reads.acquire().await?;
            self.check_out().await.map(|reader| (permit, reader))
        });
        let checked_out = checking_out.await.unwrap_or(Err(sqlx::Error::PoolTimedOut));
        let (permit, mut reader) = checked_out.map_err(repository_failure)?;
        let interruption = Interruption::default();
        let is_interrupted = Arc::clone(&interruption.0);
        let wait_max = self.shared.wait_max;
        let reading = spawn_blocking(move || {
            let _permit = permit;
            reader.run(|connection| connection.interruptible(wait_max, is_interrupted, read))
        });
        let outcome = reading.await.unwrap_or(Err(sqlx::Error::WorkerCrashed));
        drop(interruption);
        outcome.map_err(repository_failure)
    }

    /// Runs a statement on a thread where it may block. Passes its rows to the receiver, one by one, until there are no more or
    /// the receiver breaks off. At most [`BATCHES_AHEAD_MAX`] batches of rows wait for the receiver.
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
        let Shared {
            connections_max,
            slots,
            waiting,
            long_reads,
            ..
        } = self.shared.as_ref();
        PoolOccupancy {
            connections_max: *connections_max,
            in_use: connections_max.saturating_sub(slots.available_permits()),
            idle: self.shared.idle().len(),
            waiting: waiting.count() + long_reads.waiting(),
        }
    }

    /// Refuses new check-outs, waits for connections in use (at most as long as a read waits), and closes all connections.
    pub(crate) async fn close(&self) {
        let begun = Instant::now();
        self.shared.slots.close();
        self.shared.long_reads.close();
        loop {
            self.shared.idle().clear();
            let occupancy = self.occupancy();
            if occupancy.in_use == 0 || begun.elapsed() > self.shared.wait_max {
                return;
            }
            tokio::time::sleep(CLOSING_PAUSE).await;
        }
    }

    pub(super) async fn check_out(&self) -> sqlx::Result<Reader> {
        self.shared.file.require_in_place()?;
        let slots = &self.shared.slots;
        let slot = match Arc::clone(slots).try_acquire_owned() {
            Ok(slot) => slot,
            Err(_) => self.wait_for_slot().await?,
        };
        let idle = self.shared.idle().pop();
        let connection = if let Some(connection) = idle {
            connection
        } else {
            let file = self.shared.file.clone();
            let opening = spawn_blocking(move || file.connect());
            let opened = opening.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))?;
            opened.set_wait_max(Duration::ZERO)?;
            opened
        };
        Ok(Reader {
            connection: Some(connection),
            shared: Arc::clone(&self.shared),
            _slot: slot,
        })
    }

    async fn wait_for_slot(&self) -> sqlx::Result<OwnedSemaphorePermit> {
        let _waiting = self.shared.waiting.enter();
        let acquiring = Arc::clone(&self.shared.slots).acquire_owned();
        match timeout(self.shared.wait_max, acquiring).await {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) => Err(sqlx::Error::PoolClosed),
            Err(_) => Err(sqlx::Error::PoolTimedOut),
        }
    }
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<SqliteConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A checked-out connection. Dropping it returns it.
pub(super) struct Reader {
    /// `None` once it has failed, so that it is not used again.
    connection: Option<SqliteConnection>,
    shared: Arc<Shared>,
    _slot: OwnedSemaphorePermit,
}

impl Reader {
    /// Reads with the connection. Closes it after a failure that it may have caused.
    pub(super) fn run<T>(
        &mut self,
        read: impl FnOnce(&SqliteConnection) -> sqlx::Result<T>,
    ) -> sqlx::Result<T> {
        let connection = self.connection.as_ref();
        let outcome = read(connection.ok_or(sqlx::Error::WorkerCrashed)?);
        if let Err(error) = &outcome
            && is_unavailable(error)
            && !is_busy(error)
        {
            self.connection = None;
        }
        outcome
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && !self.shared.slots.is_closed()
        {
            self.shared.idle().push(connection);
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

/// The number of rows in a batch, and the most batches that wait for the receiver.
const BATCH_ROWS: usize = 128;
const BATCHES_AHEAD_MAX: usize = 2;

/// The pause before a retry of reading a locked file.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// The interval between checks for connections still in use.
const CLOSING_PAUSE: Duration = Duration::from_millis(10);
