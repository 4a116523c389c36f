//! The task that owns the connection.

use std::{
    error::Error,
    fmt,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use keywright_core::ports::RepositoryFailure;
use tokio::sync::{mpsc, oneshot};

use super::{
    super::{SqliteConnection, SqliteFile, engine::within},
    Asked, Borrower, GroupLimits, Returned, State, Told, Turn, Verdict,
};

/// Gives turns on one connection, and alone begins, commits and rolls back.
pub(super) struct Owner {
    /// None when the last group has left it in doubt.
    connection: Option<SqliteConnection>,
    file: SqliteFile,
    limits: GroupLimits,
    state: Arc<State>,
}

/// Why nothing of a group was written. All of it share the cause.
#[derive(Clone, Debug)]
pub(super) struct GroupFailed(Arc<sqlx::Error>);

impl fmt::Display for GroupFailed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the transactions that were to be written together were rolled back")
    }
}

impl Error for GroupFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.0.as_ref())
    }
}

impl Owner {
    /// The owner of a connection to this file.
    pub(super) fn new(
        connection: SqliteConnection,
        file: SqliteFile,
        limits: GroupLimits,
        state: Arc<State>,
    ) -> Self {
        state.is_open.store(true, Ordering::Relaxed);
        Self {
            connection: Some(connection),
            file,
            limits,
            state,
        }
    }

    /// Gives turns until it is told to close, and then to those who asked before.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Asked>) {
        while let Some(asked) = queue.recv().await {
            match asked {
                Asked::Close => queue.close(),
                Asked::Turn(borrower) => self.run_group(borrower, &mut queue).await,
            }
        }
        let connection = self.connection.take();
        drop(connection);
    }

    async fn run_group(&mut self, first: Borrower, queue: &mut mpsc::Receiver<Asked>) {
        self.state.is_in_use.store(true, Ordering::Relaxed);
        match self.connected().await {
            Ok(connection) => {
                let mut group = Group::new(connection, self.limits);
                let written = group.write(first, queue).await;
                // What was written into a file without its name is lost with this process.
                match written.and_then(|()| self.file.check().map_err(failed)) {
                    Ok(()) => {
                        group.tell(&Ok(()));
                        self.connection = group.connection;
                    }
                    Err(failed) => {
                        drop(group.connection.take());
                        group.tell(&Err(failed));
                    }
                }
            }
            Err(error) => refuse(first, &GroupFailed(Arc::new(error))),
        }
        let is_open = self.connection.is_some();
        self.state.is_open.store(is_open, Ordering::Relaxed);
        self.state.is_in_use.store(false, Ordering::Relaxed);
    }

    async fn connected(&mut self) -> Result<SqliteConnection, sqlx::Error> {
        self.file.check()?;
        match self.connection.take() {
            Some(connection) => Ok(connection),
            None => self.file.connect(),
        }
    }
}

/// The transactions that are written by one commit.
struct Group {
    /// None while it is with somebody.
    connection: Option<SqliteConnection>,
    /// Those that have had their turns, and wait to be told.
    members: Vec<oneshot::Sender<Told>>,
    limits: GroupLimits,
}

impl Group {
    fn new(connection: SqliteConnection, limits: GroupLimits) -> Self {
        Self {
            connection: Some(connection),
            members: Vec::new(),
            limits,
        }
    }

    /// Gives a turn to the first, and to whoever waits after it, and commits what they have done. After a failure nothing
    /// is known of the connection.
    async fn write(
        &mut self,
        first: Borrower,
        queue: &mut mpsc::Receiver<Asked>,
    ) -> Result<(), GroupFailed> {
        let begun = Instant::now();
        let mut next = Some(first);
        while let Some(borrower) = next {
            self.give_turn(borrower).await?;
            let is_complete = self.members.len() >= self.limits.length_max
                || begun.elapsed() >= self.limits.time_max;
            next = if is_complete { None } else { waiting(queue) };
        }
        if self.members.is_empty() {
            return Ok(());
        }
        self.run(COMMIT).await
    }

    async fn give_turn(&mut self, borrower: Borrower) -> Result<(), GroupFailed> {
        if borrower.is_closed() {
            return Ok(());
        }
        let is_first = self.members.is_empty();
        let begun = self.run(if is_first { BEGIN } else { SAVEPOINT }).await;
        if let Err(failed) = begun {
            refuse(borrower, &failed);
            return Err(failed);
        }
        let (back, returning) = oneshot::channel();
        let (member, told) = oneshot::channel();
        // Whoever has gone away drops it, and so gives it back.
        drop(borrower.send(Ok(Turn {
            connection: self.connection.take(),
            back: Some(back),
            told,
        })));
        self.members.push(member);
        let returned = within(self.limits.turn_max, async {
            returning.await.map_err(|_| sqlx::Error::WorkerCrashed)
        });
        let Returned {
            connection,
            verdict,
        } = returned.await.map_err(failed)?;
        self.connection = Some(connection);
        match verdict {
            Verdict::Keep => Ok(()),
            Verdict::Undo if is_first => {
                self.undo(ROLLBACK).await?;
                self.tell(&Ok(()));
                Ok(())
            }
            Verdict::Undo => self.undo(ROLLBACK_TO_SAVEPOINT).await,
        }
    }

    /// Tells those that have had their turns what became of them.
    fn tell(&mut self, told: &Told) {
        for member in self.members.drain(..) {
            // One that has gone away need not know.
            drop(member.send(told.clone()));
        }
    }

    /// Rolls back, after whatever is still running.
    async fn undo(&mut self, sql: &'static str) -> Result<(), GroupFailed> {
        let undoing = within(self.limits.turn_max, execute(&mut self.connection, sql));
        undoing.await.map_err(failed)
    }

    async fn run(&mut self, sql: &'static str) -> Result<(), GroupFailed> {
        execute(&mut self.connection, sql).await.map_err(failed)
    }
}

/// The next who waits for a turn.
fn waiting(queue: &mut mpsc::Receiver<Asked>) -> Option<Borrower> {
    loop {
        match queue.try_recv().ok()? {
            Asked::Close => queue.close(),
            Asked::Turn(borrower) => return Some(borrower),
        }
    }
}

fn refuse(borrower: Borrower, failed: &GroupFailed) {
    let failure = RepositoryFailure::Unavailable(Box::new(failed.clone()));
    // Who has gone away need not know.
    drop(borrower.send(Err(failure)));
}

async fn execute(
    connection: &mut Option<SqliteConnection>,
    sql: &'static str,
) -> Result<(), sqlx::Error> {
    let connection = connection.as_mut().ok_or(sqlx::Error::WorkerCrashed)?;
    connection.run(sql)
}

fn failed(error: sqlx::Error) -> GroupFailed {
    GroupFailed(Arc::new(error))
}

/// Takes the lock for writing at once, so that nothing changes between looking and inserting.
const BEGIN: &str = "begin immediate";
const COMMIT: &str = "commit";
const ROLLBACK: &str = "rollback";

/// All have one name, of which SQLite takes the last.
const SAVEPOINT: &str = "savepoint turn";
const ROLLBACK_TO_SAVEPOINT: &str = "rollback to turn";
