//! Group commit on SQLite: one thread runs the transactions that write, and commits several of them together.
//!
//! The slow part of a commit is the flush of the disk. So transactions that arrive while another one runs or is committed form
//! a group: the thread runs them one after the other in one database transaction and commits them together. Each has the
//! outcome that it would have alone:
//!
//! 1. *One at a time.* The thread owns the connection and runs each transaction from its first statement to its last. So each
//!    transaction sees the changes of the earlier ones in its group, as if they were already committed.
//! 2. *No response before the flush.* The caller gets the outcome when the group is committed, even for a transaction that
//!    wrote nothing: its outcome may depend on the writes of others in the group.
//! 3. *A failure undoes one transaction.* Each begins with a savepoint. No savepoint is released before the commit, so the last
//!    one always belongs to the current transaction, and rolling back to it undoes only that transaction. A transaction that
//!    panics is undone in the same way.
//! 4. *A transaction runs to its end or not at all.* If its caller is dropped before it begins, the thread skips it. If its
//!    caller is dropped later, the thread finishes it.
//! 5. *If the thread itself fails, nothing of the group is written.* If it can't begin, roll back or commit, all callers of the
//!    group get an error, and the thread closes the connection, which rolls back; the next group gets a new one. This covers a
//!    database that rolls back by itself, as SQLite may when the disk is full: the savepoints are gone too, so a rollback to a
//!    savepoint fails, and so does the commit. `Transaction` runs no statement after a failed one. If the file was moved during
//!    the commit, the callers also get an error, although the moved file contains the writes.

#[cfg(test)]
mod tests;

use std::{
    error::Error,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver},
    },
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use keywright_core::ports::RepositoryError;
use parking_lot::Mutex;
use tokio::{sync::oneshot, task::spawn_blocking, time::timeout};

use super::{
    pool::{PoolOccupancy, Queued, WaitCounter},
    sqlite::SqliteConnection,
    sqlite_file::SqliteFile,
    transaction::{Completion, Ended, Transaction},
};
use crate::{error::SqlxError, statement::statement};

/// Passes transactions to the thread that writes to a SQLite file.
#[derive(Clone)]
pub(super) struct GroupCommit {
    /// Its length is bounded by the number of callers.
    queue: mpsc::Sender<Message>,
    wait_max: Duration,
    state: Arc<State>,
}

/// Limits of a group, so that its first transaction does not wait forever for later ones.
#[derive(Clone, Copy)]
pub(super) struct GroupLimits {
    /// The most transactions that one commit writes.
    pub(super) length_max: usize,
    /// How long a group accepts more transactions.
    pub(super) time_max: Duration,
}

/// The state for metrics.
#[derive(Default)]
struct State {
    waiting: WaitCounter,
    is_in_use: AtomicBool,
    is_open: AtomicBool,
}

impl GroupCommit {
    /// Opens the connection and starts the thread. A transaction waits for at most `wait_max` until it begins.
    pub(super) async fn open(
        file: SqliteFile,
        wait_max: Duration,
        limits: GroupLimits,
    ) -> sqlx::Result<Self> {
        let opening = file.clone();
        let connection = spawn_blocking(move || opening.connect()).await;
        let connection = connection.map_err(|_| sqlx::Error::WorkerCrashed)??;
        let state = Arc::new(State {
            is_open: true.into(),
            ..State::default()
        });
        let (queue, messages) = mpsc::channel();
        let thread = WriterThread::new(connection, file, limits, messages, Arc::clone(&state));
        std::thread::Builder::new()
            .name(THREAD_NAME.to_owned())
            .spawn(|| thread.run())?;
        Ok(Self {
            queue,
            wait_max,
            state,
        })
    }

    /// Runs a transaction on the thread. Returns its outcome when everything that it depends on is on disk.
    ///
    /// # Errors
    /// The errors of the work, after which nothing was written; [`RepositoryError::Unavailable`] if it does not begin in
    /// time, if no connection can be opened, if the commit fails, or after [`Self::close`].
    pub(super) async fn transaction<T, F>(
        &self,
        work: impl FnOnce(Transaction) -> F + Send + 'static,
    ) -> Result<T, RepositoryError>
    where
        T: Send + 'static,
        F: Future<Output = Result<Ended<T>, RepositoryError>>,
    {
        let (response, outcome) = oneshot::channel();
        let (queued, caller) = self.state.waiting.queued(job(work, response));
        // If the thread has ended, there is no outcome.
        drop(self.queue.send(Message::Run(queued)));
        caller.outcome(outcome, self.wait_max).await?
    }

    /// Returns whether the connection is in use, and how many transactions are queued.
    pub(super) fn occupancy(&self) -> PoolOccupancy {
        let is_in_use = self.state.is_in_use.load(Ordering::Relaxed);
        let is_idle = !is_in_use && self.state.is_open.load(Ordering::Relaxed);
        PoolOccupancy {
            connections_max: 1,
            in_use: is_in_use.into(),
            idle: is_idle.into(),
            waiting: self.state.waiting.count(),
        }
    }

    /// Refuses new transactions, waits for queued transactions (at most as long as their callers wait), and closes the connection.
    pub(super) async fn close(&self) {
        let (closed, closing) = oneshot::channel();
        // If the thread has ended, there is nothing to close.
        drop(self.queue.send(Message::Close(closed)));
        if timeout(self.wait_max, closing).await.is_err() {
            tracing::warn!("could not close the writing database connection in time");
        }
    }
}

/// Runs transactions on one connection. Only this thread begins, commits and rolls back.
struct WriterThread {
    /// `None` if the last group left its state unknown.
    connection: Option<SharedConnection>,
    file: SqliteFile,
    limits: GroupLimits,
    messages: Receiver<Message>,
    state: Arc<State>,
    last_length: usize,
    last_commit: Duration,
    /// Dropped after the connection.
    closing: Option<oneshot::Sender<()>>,
}

enum Message {
    Run(Queued<Job>),
    /// The last message. Its sender is dropped when the connection is closed.
    Close(oneshot::Sender<()>),
}

/// Runs a transaction, unless beginning it failed.
type Job = Box<dyn FnOnce(Result<SharedConnection, GroupError>) -> (Completion, Response) + Send>;

/// Passes the outcome of a transaction to its caller, given the outcome of the commit.
type Response = Box<dyn FnOnce(Result<(), GroupError>)>;

/// The connection, shared by the thread and the running transaction. It is never contended.
type SharedConnection = Arc<Mutex<SqliteConnection>>;

/// Transactions that are committed together.
struct Group {
    responses: Vec<Response>,
    begun: Instant,
    /// When the thread stops waiting for more transactions. `None` if it has not waited.
    gathering_ends: Option<Instant>,
}

/// The reason why all transactions of a group failed.
#[derive(Clone, Debug)]
struct GroupError(Arc<SqlxError>);

impl fmt::Display for GroupError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("all transactions of the group failed")
    }
}

impl Error for GroupError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.0.as_ref())
    }
}

impl From<sqlx::Error> for GroupError {
    fn from(cause: sqlx::Error) -> Self {
        Self(Arc::new(SqlxError(cause)))
    }
}

impl From<GroupError> for RepositoryError {
    fn from(failed: GroupError) -> Self {
        Self::Unavailable(Box::new(failed))
    }
}

/// A transaction did not complete.
#[derive(Debug, thiserror::Error)]
#[error("the transaction panicked or waited for something other than the database")]
struct UnfinishedError;

/// Returns a closure that runs a transaction and sends its outcome.
fn job<T, F>(
    work: impl FnOnce(Transaction) -> F + Send + 'static,
    response: oneshot::Sender<Result<T, RepositoryError>>,
) -> Job
where
    T: Send + 'static,
    F: Future<Output = Result<Ended<T>, RepositoryError>>,
{
    Box::new(|begun| {
        let ended = match begun {
            Ok(connection) => finish(work, connection),
            Err(failed) => Err(failed.into()),
        };
        let (outcome, completion) = match ended.map(Ended::into_parts) {
            Ok((outcome, completion)) => (Ok(outcome), completion),
            // The failure does not depend on any write, so the outcome of the commit does not matter.
            Err(failure) => (Err(failure), Completion::RollBack),
        };
        let response = |committed: Result<(), GroupError>| {
            let outcome =
                outcome.and_then(|outcome| committed.map(|()| outcome).map_err(Into::into));
            // Fails only if the caller is gone.
            drop(response.send(outcome));
        };
        (completion, Box::new(response))
    })
}

/// Runs a transaction to its end.
fn finish<T, F>(
    work: impl FnOnce(Transaction) -> F,
    connection: SharedConnection,
) -> Result<Ended<T>, RepositoryError>
where
    F: Future<Output = Result<Ended<T>, RepositoryError>>,
{
    let transaction = Transaction::on_sqlite(connection);
    // Each statement runs in place, so the future never waits. The changes of a panicking transaction are rolled back.
    let ran = catch_unwind(AssertUnwindSafe(|| work(transaction).now_or_never()));
    let ended = ran.ok().flatten();
    ended.unwrap_or_else(|| Err(RepositoryError::Query(Box::new(UnfinishedError))))
}

impl WriterThread {
    fn new(
        connection: SqliteConnection,
        file: SqliteFile,
        limits: GroupLimits,
        messages: Receiver<Message>,
        state: Arc<State>,
    ) -> Self {
        Self {
            connection: Some(Arc::new(Mutex::new(connection))),
            file,
            limits,
            messages,
            state,
            last_length: 0,
            last_commit: Duration::ZERO,
            closing: None,
        }
    }

    /// Runs transactions until the queue is closed.
    fn run(mut self) {
        while let Some(first) = self.next(None) {
            self.state.is_in_use.store(true, Ordering::Relaxed);
            let mut group = Group {
                responses: Vec::new(),
                begun: Instant::now(),
                gathering_ends: None,
            };
            let committed = self.write(&mut group, first);
            self.file.end_write();
            if committed.is_err() {
                self.connection = None;
            }
            let is_open = self.connection.is_some();
            self.state.is_open.store(is_open, Ordering::Relaxed);
            self.state.is_in_use.store(false, Ordering::Relaxed);
            for response in group.responses {
                response(committed.clone());
            }
        }
        self.state.is_open.store(false, Ordering::Relaxed);
    }

    /// Runs the first transaction and the transactions queued behind it, and commits them. After an error, the state of the
    /// connection is unknown.
    fn write(&mut self, group: &mut Group, first: Job) -> Result<(), GroupError> {
        let mut next = Some(first);
        while let Some(job) = next {
            let begun = self.begin(group);
            let (completion, response) = job(begun.clone());
            group.responses.push(response);
            let connection = begun?;
            if completion == Completion::RollBack {
                run(&connection, ROLLBACK_TO_SAVEPOINT)?;
            }
            next = self.next(Some(group));
        }
        let committing = Instant::now();
        run(&self.connected()?, COMMIT)?;
        self.last_length = group.responses.len();
        self.last_commit = committing.elapsed();
        // Writes to a file without a name are lost when this process ends.
        Ok(self.file.check()?)
    }

    fn begin(&mut self, group: &Group) -> Result<SharedConnection, GroupError> {
        let is_first = group.responses.is_empty();
        if is_first {
            self.file.prepare_to_write()?;
        }
        let connection = self.connected()?;
        if is_first {
            run(&connection, BEGIN)?;
        }
        run(&connection, SAVEPOINT)?;
        Ok(connection)
    }

    /// Returns the connection. Opens another one if the last group left its state unknown.
    fn connected(&mut self) -> sqlx::Result<SharedConnection> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => Arc::new(Mutex::new(self.file.connect()?)),
        };
        Ok(Arc::clone(self.connection.insert(connection)))
    }

    /// Returns the next transaction, of this group if there is one. `None` if the group is complete or the queue is closed.
    fn next(&mut self, mut group: Option<&mut Group>) -> Option<Job> {
        while self.closing.is_none() {
            let message = match &mut group {
                Some(group) => self.join(group),
                None => self.messages.recv().ok(),
            };
            match message? {
                Message::Run(queued) => {
                    if let Some(job) = queued.begin() {
                        return Some(job);
                    }
                }
                Message::Close(closing) => self.closing = Some(closing),
            }
        }
        None
    }

    /// Receives a message for a group that accepts more transactions. Flushing a slow disk takes much longer than running a
    /// transaction, so it pays to wait briefly: the callers of the last group have just got their outcomes, and may send more
    /// transactions. A single caller never waits.
    fn join(&self, group: &mut Group) -> Option<Message> {
        let length = group.responses.len();
        if length >= self.limits.length_max || group.begun.elapsed() >= self.limits.time_max {
            return None;
        }
        let message = self.messages.try_recv().ok();
        if message.is_some() || length >= self.last_length {
            return message;
        }
        let now = Instant::now();
        let wait_max = self.last_commit / GATHERING_PART;
        let ends = *group.gathering_ends.get_or_insert(now + wait_max);
        let waiting = ends.saturating_duration_since(now);
        self.messages.recv_timeout(waiting).ok()
    }
}

fn run(connection: &SharedConnection, sql: &'static str) -> sqlx::Result<()> {
    connection.lock().execute(&statement(sql))
}

const THREAD_NAME: &str = "sqlite-writer";

/// Takes the write lock at once, so that nothing changes between reading and writing.
const BEGIN: &str = "begin immediate";
const COMMIT: &str = "commit";

/// All savepoints share one name; SQLite uses the latest.
const SAVEPOINT: &str = "savepoint grouped";
const ROLLBACK_TO_SAVEPOINT: &str = "rollback to grouped";

/// A group waits for more transactions for at most the last commit's duration divided by this.
const GATHERING_PART: u32 = 4;
