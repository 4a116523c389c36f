//! Group commit on SQLite: one thread runs the transactions that write, and commits several of them together.
//!
//! The slow part of a commit is the flush of the disk. So transactions that arrive while another one runs or is committed form
//! a group: the thread runs them one after the other in one database transaction and commits them together. Each has the
//! outcome that it would have alone:
//!
//! 1. *One at a time.* The thread owns the connection and runs each transaction from its first statement to its last. So each
//!    sees the changes of those before it, as in transactions of their own.
//! 2. *No response before the flush.* The caller gets the outcome when the group is committed, even for a transaction that
//!    wrote nothing: its outcome may depend on the writes of others in the group.
//! 3. *A failure undoes one transaction.* Each begins with a savepoint. No savepoint is released before the commit, so the last
//!    one always belongs to the current transaction, and rolling back to it undoes that transaction alone. A transaction that
//!    panics is undone likewise.
//! 4. *A transaction runs to its end or not at all.* If its caller goes away before it begins, the thread skips it. If its
//!    caller goes away later, the thread finishes it.
//! 5. *If the thread itself fails, nothing of the group is written.* If it can't begin, roll back or commit, all callers of the
//!    group get an error, and the thread closes the connection, which rolls back; the next group gets a new one. This covers a
//!    database that rolls back by itself, as SQLite may when the disk is full: the savepoints are gone too, so rolling back to
//!    one and the commit fail. `Transaction` runs no statement after a failed one.

#[cfg(test)]
mod tests;
mod thread;

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use keywright_core::ports::RepositoryFailure;
use tokio::{sync::oneshot, task::spawn_blocking, time::timeout};

use super::{Ended, PoolOccupancy, SqliteFile, Transaction, queued::Waiting};
use thread::{Message, WriterThread, member};

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
    waiting: Waiting,
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
    /// The errors of the work, after which nothing was written; [`RepositoryFailure::Unavailable`] if it does not begin in
    /// time, if no connection can be opened, if the commit fails, or after [`Self::close`].
    pub(super) async fn transaction<T, F>(
        &self,
        work: impl FnOnce(Transaction) -> F + Send + 'static,
    ) -> Result<T, RepositoryFailure>
    where
        T: Send + 'static,
        F: Future<Output = Result<Ended<T>, RepositoryFailure>>,
    {
        let (answer, outcome) = oneshot::channel();
        let (queued, caller) = self.state.waiting.queued(member(work, answer));
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

    /// Refuses new transactions, waits for those in the queue, for at most as long as their callers, and closes the connection.
    pub(super) async fn close(&self) {
        let (closed, closing) = oneshot::channel();
        // If the thread has ended, there is nothing to close.
        drop(self.queue.send(Message::Close(closed)));
        if timeout(self.wait_max, closing).await.is_err() {
            tracing::warn!("could not close the writing database connection in time");
        }
    }
}

const THREAD_NAME: &str = "sqlite-writer";
