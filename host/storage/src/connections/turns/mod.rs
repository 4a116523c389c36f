//! Transactions that take turns on the one connection that writes to a file of SQLite, several of them in one commit.
//!
//! What makes a commit slow is the disk. So those that come while another one is under way go into one transaction of the
//! database, one after the other, and are written by one commit: a group. Nobody waits for company: the first begins at once,
//! the group takes in whoever is waiting when the one before has done its work, and is committed when nobody is. A single
//! writer begins, does its work and commits, as if there were no groups.
//!
//! Each has the outcome that it would have alone, whatever becomes of the others:
//!
//! 1. *One at a time.* The connection is owned by one task, [`owner::Owner`], which alone begins, commits and rolls back, and
//!    which nobody can cancel. It gives the connection away for a [`Turn`] and goes on when it has come back. So no two work
//!    at once, and each sees what those before it have done, as in transactions of their own, one after the other.
//! 2. *Nothing is told before it is on disk.* A turn ends by [`Turn::keep`] or [`Turn::undo`], and both return when the group
//!    is committed. That holds for one that wrote nothing, too: its answer may rest on what others of the group have written.
//!    The first of a group has seen nothing that was not committed. If it undoes its work, it is rolled back and told at once,
//!    and what comes next is the first of a group.
//! 3. *Undoing touches nobody else.* Each but the first begins with a savepoint. None of them is released before the commit,
//!    so the last one is always that of whose turn it was, and rolling back to it undoes that one's work alone. The first can
//!    do without, because what comes after it has savepoints, and nothing comes before it.
//! 4. *Who goes away undoes.* A turn that is dropped gives the connection back, also in the middle of a statement: SQLite runs
//!    what it is told in order, so the rollback comes after whatever is still running. Whether the one that waits is there,
//!    the owner need not know: a turn that nobody takes is dropped as well.
//! 5. *In doubt, all come to nothing.* When the connection does not come back in time, or anything fails that the owner itself
//!    asks of it, the whole group is told so and the connection is closed, which rolls back; the next group has another one.
//!    That covers a database that has rolled back by itself, as SQLite may when the disk is full: the savepoints are gone with
//!    it, so the rollback to one, and the commit, are refused. Nothing can slip in after it on its own, because
//!    `Transaction` runs nothing after a statement that has failed.

mod owner;
#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use keywright_core::ports::RepositoryFailure;
use tokio::sync::{mpsc, oneshot, watch};

use super::{PoolOccupancy, SqliteConnection, SqliteFile, engine::Executor};
use crate::failure::repository_failure;
use owner::{GroupFailed, Owner};

/// What those who write ask for their turns.
#[derive(Clone)]
pub(super) struct Turns {
    queue: mpsc::Sender<Asked>,
    wait_max: Duration,
    state: Arc<State>,
    /// Closed when the connection is.
    ended: watch::Receiver<()>,
}

/// What ends the taking in of further transactions by a group, so that the first does not wait for ever for those that come
/// after it.
#[derive(Clone, Copy)]
#[expect(
    clippy::struct_field_names,
    reason = "each is a limit, and says so where it is used"
)]
pub(super) struct GroupLimits {
    /// How many transactions are written by one commit at most.
    pub(super) length_max: usize,
    /// For how long a group takes in further ones.
    pub(super) time_max: Duration,
    /// How long one transaction may take. One that takes longer ends its group.
    pub(super) turn_max: Duration,
}

/// The connection, for one transaction. What was done is undone when this is dropped.
pub(super) struct Turn {
    /// None once it was given back.
    connection: Option<SqliteConnection>,
    /// How it is given back.
    back: Option<oneshot::Sender<Returned>>,
    /// What became of the group.
    told: oneshot::Receiver<Told>,
}

/// What the owner of the connection is asked.
enum Asked {
    /// To give a turn.
    Turn(Borrower),
    /// To give none to those who come later.
    Close,
}

/// Where the turn is expected.
type Borrower = oneshot::Sender<Result<Turn, RepositoryFailure>>;

/// What became of a group.
type Told = Result<(), GroupFailed>;

struct Returned {
    connection: SqliteConnection,
    verdict: Verdict,
}

/// What is to become of what was done in a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Keep,
    Undo,
}

/// What others may know.
#[derive(Default)]
struct State {
    waiting: AtomicUsize,
    is_in_use: AtomicBool,
    is_open: AtomicBool,
}

impl Turns {
    /// Opens the connection, so that it is known whether the database can be opened at all. Whoever asks for a turn waits
    /// for `wait_max` at most.
    pub(super) async fn open(
        file: SqliteFile,
        wait_max: Duration,
        limits: GroupLimits,
    ) -> Result<Self, sqlx::Error> {
        let connection = file.connect()?;
        let state = Arc::<State>::default();
        let (queue, asked) = mpsc::channel(QUEUE_LENGTH_MAX);
        let owner = Owner::new(connection, file, limits, Arc::clone(&state));
        let (running, ended) = watch::channel(());
        tokio::spawn(async move {
            owner.run(asked).await;
            drop(running);
        });
        Ok(Self {
            queue,
            wait_max,
            state,
            ended,
        })
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// [`RepositoryFailure::Unavailable`] when it does not come in time, when no connection can be opened, or after
    /// [`Self::close`].
    pub(super) async fn take(&self) -> Result<Turn, RepositoryFailure> {
        let _waiting = Waiting::new(&self.state);
        let (borrower, turn) = oneshot::channel();
        let asking = async {
            let asked = self.queue.send(Asked::Turn(borrower)).await;
            asked.map_err(|_| repository_failure(sqlx::Error::PoolClosed))?;
            turn.await.unwrap_or_else(|_| Err(gone()))
        };
        let turn = tokio::time::timeout(self.wait_max, asking).await;
        turn.unwrap_or_else(|_| Err(repository_failure(sqlx::Error::PoolTimedOut)))
    }

    /// Whether the connection is in use, and how many wait for it.
    pub(super) fn occupancy(&self) -> PoolOccupancy {
        let is_in_use = self.state.is_in_use.load(Ordering::Relaxed);
        let is_idle = !is_in_use && self.state.is_open.load(Ordering::Relaxed);
        PoolOccupancy {
            connections_max: 1,
            in_use: is_in_use.into(),
            idle: is_idle.into(),
            waiting: self.state.waiting.load(Ordering::Relaxed),
        }
    }

    /// Gives no turn to those who come later, waits for the others, for as long as they would, and closes the connection.
    pub(super) async fn close(&self) {
        let closing = async {
            // What can't be asked any more has closed already.
            drop(self.queue.send(Asked::Close).await);
            let mut ended = self.ended.clone();
            while ended.changed().await.is_ok() {}
        };
        if tokio::time::timeout(self.wait_max, closing).await.is_err() {
            tracing::warn!("the connection that writes to the database did not close in time");
        }
    }
}

impl Turn {
    /// What runs statements; none once the turn has ended.
    pub(super) fn executor(&mut self) -> Option<Executor<'_>> {
        self.connection.as_mut().map(Executor::Sqlite)
    }

    /// Has what was done written; when this returns, it is on disk.
    ///
    /// # Errors
    /// [`RepositoryFailure::Unavailable`] when it can't be written; then nothing is.
    pub(super) async fn keep(self) -> Result<(), RepositoryFailure> {
        self.end(Verdict::Keep).await
    }

    /// Has what was done undone; when this returns, all that was there to be seen is on disk.
    ///
    /// # Errors
    /// [`RepositoryFailure::Unavailable`] when that can't be written.
    pub(super) async fn undo(self) -> Result<(), RepositoryFailure> {
        self.end(Verdict::Undo).await
    }

    async fn end(mut self, verdict: Verdict) -> Result<(), RepositoryFailure> {
        self.give_back(verdict);
        match (&mut self.told).await {
            Ok(told) => told.map_err(|failed| RepositoryFailure::Unavailable(Box::new(failed))),
            Err(_) => Err(gone()),
        }
    }

    fn give_back(&mut self, verdict: Verdict) {
        if let (Some(connection), Some(back)) = (self.connection.take(), self.back.take()) {
            // One that does not wait any more has told the group that it failed. The connection is closed here.
            drop(back.send(Returned {
                connection,
                verdict,
            }));
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.give_back(Verdict::Undo);
    }
}

/// Counts among those who wait.
struct Waiting<'s>(&'s State);

impl<'s> Waiting<'s> {
    fn new(state: &'s State) -> Self {
        state.waiting.fetch_add(1, Ordering::Relaxed);
        Self(state)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The owner has gone, which it does only with the whole runtime.
fn gone() -> RepositoryFailure {
    repository_failure(sqlx::Error::WorkerCrashed)
}

/// How many may wait in line. Further ones wait for a place in it, for as long as for their turns.
const QUEUE_LENGTH_MAX: usize = 1_024;
