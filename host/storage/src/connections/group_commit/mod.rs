//! Group commit on SQLite: one thread runs the transactions that write, and commits several of them together.
//!
//! What makes a commit slow is the flush of the disk. So transactions that arrive while another one runs or is committed form a
//! group: the thread runs them one after the other in one transaction of the database and commits them together. Each has the
//! outcome that it would have alone:
//!
//! 1. *One at a time.* The thread owns the connection and runs each transaction from its first statement to its last. So each
//!    sees what those before it have done, as in transactions of their own.
//! 2. *No response before the flush.* The caller gets the outcome when the group is committed. That holds for a transaction that
//!    wrote nothing, too: its outcome may rest on what others of the group have written.
//! 3. *A failure undoes one transaction.* Each begins with a savepoint. No savepoint is released before the commit, so the last
//!    one is always that of the current transaction, and rolling back to it undoes that transaction alone. A transaction that
//!    panics is undone likewise.
//! 4. *A transaction runs to its end or not at all.* If its caller has gone before it begins, the thread skips it. If its
//!    caller goes later, the thread finishes it.
//! 5. *In doubt, nothing of a group is written.* If the thread can't begin, roll back or commit, all callers of the group get an
//!    error, and the thread closes the connection, which rolls back; the next group has a new one. That covers a database that
//!    has rolled back by itself, as SQLite may when the disk is full: the savepoints are gone with it, so rolling back to one
//!    and the commit are refused. `Transaction` runs no statement after one that has failed.

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
    /// It is as long as there are callers.
    queue: mpsc::Sender<Message>,
    wait_max: Duration,
    state: Arc<State>,
}

/// What bounds a group, so that its first transaction does not wait for ever for those after it.
#[derive(Clone, Copy)]
pub(super) struct GroupLimits {
    /// The most transactions that one commit writes.
    pub(super) length_max: usize,
    /// For how long a group takes in further ones.
    pub(super) time_max: Duration,
}

/// What metrics report.
#[derive(Default)]
struct State {
    waiting: Waiting,
    is_in_use: AtomicBool,
    is_open: AtomicBool,
}

impl GroupCommit {
    /// Opens the connection and starts the thread. A transaction waits for `wait_max` at most until it begins.
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

    /// Has the thread run a transaction, and returns its outcome when all that it rests on is on disk.
    ///
    /// # Errors
    /// Those of the work, after which nothing was written; and [`RepositoryFailure::Unavailable`] if it does not begin in time,
    /// if no connection can be opened, if the commit fails, or after [`Self::close`].
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

    /// Whether the connection is in use, and how many transactions wait to begin.
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

    /// Takes no further transactions, waits for those in the queue, for as long as they would, and closes the connection.
    pub(super) async fn close(&self) {
        let (closed, closing) = oneshot::channel();
        // If the thread has ended, there is nothing to close.
        drop(self.queue.send(Message::Close(closed)));
        if timeout(self.wait_max, closing).await.is_err() {
            tracing::warn!("the connection that writes to the database did not close in time");
        }
    }
}

const THREAD_NAME: &str = "sqlite-writer";
