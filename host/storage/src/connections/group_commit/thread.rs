//! The thread that owns the writing connection.

use std::{
    error::Error,
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError, atomic::Ordering, mpsc::Receiver},
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use keywright_core::ports::RepositoryFailure;
use tokio::sync::oneshot;

use super::{
    super::{
        Ended, SqliteConnection, SqliteFile, Transaction, queued::Queued, transaction::Verdict,
    },
    GroupLimits, State,
};

/// Runs transactions on one connection. Only this thread begins, commits and rolls back.
pub(super) struct WriterThread {
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

pub(super) enum Message {
    Run(Queued<Member>),
    /// The last message. Its sender is dropped when the connection is closed.
    Close(oneshot::Sender<()>),
}

/// Runs a transaction, unless beginning it failed.
type Member = Box<dyn FnOnce(Result<SharedConnection, GroupFailed>) -> (Verdict, Answer) + Send>;

/// Passes the outcome of a transaction to its caller, given the outcome of the commit.
type Answer = Box<dyn FnOnce(Result<(), GroupFailed>)>;

/// The connection, shared by the thread and the running transaction. It is never contended.
type SharedConnection = Arc<Mutex<SqliteConnection>>;

/// Transactions that are committed together.
struct Group {
    answers: Vec<Answer>,
    begun: Instant,
    /// When the thread stops waiting for more transactions. `None` if it has not waited.
    gathering_ends: Option<Instant>,
}

/// Why no transaction of a group was written. All its transactions share the cause.
#[derive(Clone, Debug)]
pub(super) struct GroupFailed(Arc<sqlx::Error>);

impl fmt::Display for GroupFailed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("rolled back all transactions of the group")
    }
}

impl Error for GroupFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.0.as_ref())
    }
}

impl From<sqlx::Error> for GroupFailed {
    fn from(cause: sqlx::Error) -> Self {
        Self(Arc::new(cause))
    }
}

impl From<GroupFailed> for RepositoryFailure {
    fn from(failed: GroupFailed) -> Self {
        Self::Unavailable(Box::new(failed))
    }
}

/// A transaction did not complete.
#[derive(Debug, thiserror::Error)]
#[error("the transaction panicked or waited for something other than the database")]
struct Unfinished;

/// Returns a closure that runs a transaction and sends its outcome.
pub(super) fn member<T, F>(
    work: impl FnOnce(Transaction) -> F + Send + 'static,
    answer: oneshot::Sender<Result<T, RepositoryFailure>>,
) -> Member
where
    T: Send + 'static,
    F: Future<Output = Result<Ended<T>, RepositoryFailure>>,
{
    Box::new(|begun| {
        let ended = match begun {
            Ok(connection) => finish(work, connection),
            Err(failed) => Err(failed.into()),
        };
        let (outcome, verdict) = match ended.map(Ended::into_parts) {
            Ok((outcome, verdict)) => (Ok(outcome), verdict),
            // The failure does not depend on any write, so the outcome of the commit does not matter.
            Err(failure) => (Err(failure), Verdict::Undo),
        };
        let answer = |committed: Result<(), GroupFailed>| {
            let outcome =
                outcome.and_then(|outcome| committed.map(|()| outcome).map_err(Into::into));
            // Fails only if the caller is gone.
            drop(answer.send(outcome));
        };
        (verdict, Box::new(answer))
    })
}

/// Runs a transaction to its end.
fn finish<T, F>(
    work: impl FnOnce(Transaction) -> F,
    connection: SharedConnection,
) -> Result<Ended<T>, RepositoryFailure>
where
    F: Future<Output = Result<Ended<T>, RepositoryFailure>>,
{
    let transaction = Transaction::on_sqlite(connection);
    // Each statement runs in place, so the future never waits. The changes of a panicking transaction are rolled back.
    let ran = catch_unwind(AssertUnwindSafe(|| work(transaction).now_or_never()));
    let ended = ran.ok().flatten();
    ended.unwrap_or_else(|| Err(RepositoryFailure::Query(Box::new(Unfinished))))
}

impl WriterThread {
    pub(super) fn new(
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
    pub(super) fn run(mut self) {
        while let Some(first) = self.next(None) {
            self.state.is_in_use.store(true, Ordering::Relaxed);
            let mut group = Group {
                answers: Vec::new(),
                begun: Instant::now(),
                gathering_ends: None,
            };
            let committed = self.write(&mut group, first);
            if committed.is_err() {
                self.connection = None;
            }
            let is_open = self.connection.is_some();
            self.state.is_open.store(is_open, Ordering::Relaxed);
            self.state.is_in_use.store(false, Ordering::Relaxed);
            for answer in group.answers {
                answer(committed.clone());
            }
        }
        self.state.is_open.store(false, Ordering::Relaxed);
    }

    /// Runs the first transaction and those queued behind it, and commits them. After an error, the state of the connection is
    /// unknown.
    fn write(&mut self, group: &mut Group, first: Member) -> Result<(), GroupFailed> {
        let mut next = Some(first);
        while let Some(member) = next {
            let begun = self.begin(group);
            let (verdict, answer) = member(begun.clone());
            group.answers.push(answer);
            let connection = begun?;
            if verdict == Verdict::Undo {
                run(&connection, ROLLBACK_TO_SAVEPOINT)?;
            }
            next = self.next(Some(group));
        }
        let committing = Instant::now();
        run(&self.connected()?, COMMIT)?;
        self.last_length = group.answers.len();
        self.last_commit = committing.elapsed();
        // Writes to a file without a name are lost when this process ends.
        Ok(self.file.check()?)
    }

    fn begin(&mut self, group: &Group) -> Result<SharedConnection, GroupFailed> {
        let is_first = group.answers.is_empty();
        if is_first {
            self.file.check()?;
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
    fn next(&mut self, mut group: Option<&mut Group>) -> Option<Member> {
        while self.closing.is_none() {
            let message = match &mut group {
                Some(group) => self.join(group),
                None => self.messages.recv().ok(),
            };
            match message? {
                Message::Run(queued) => {
                    if let Some(member) = queued.begin() {
                        return Some(member);
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
        let length = group.answers.len();
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
    let connection = connection.lock();
    connection.unwrap_or_else(PoisonError::into_inner).run(sql)
}

/// Takes the write lock at once, so that nothing changes between reading and writing.
const BEGIN: &str = "begin immediate";
const COMMIT: &str = "commit";

/// All savepoints share one name; SQLite uses the latest.
const SAVEPOINT: &str = "savepoint member";
const ROLLBACK_TO_SAVEPOINT: &str = "rollback to member";

/// A group waits for more transactions for at most the last commit's duration divided by this.
const GATHERING_PART: u32 = 4;

#[cfg(test)]
mod tests {
    use std::{fs, sync::mpsc, thread};

    use super::{super::super::SqliteSettings, *};

    /// Returns what a group of one transaction receives if `sent` arrives while it waits, after a group of `last_length`.
    fn received(
        last_length: usize,
        last_commit: Duration,
        sent: Option<Message>,
    ) -> Option<Message> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.sqlite");
        fs::File::create(&path).unwrap();
        let file = SqliteFile::unwatched(SqliteSettings {
            path,
            is_read_only: false,
            wait_max: Duration::ZERO,
            cache_kibibytes_max: 2_000,
        });
        let limits = GroupLimits {
            length_max: usize::MAX,
            time_max: Duration::MAX,
        };
        let (queue, messages) = mpsc::channel();
        let connection = file.connect().unwrap();
        let mut writer = WriterThread::new(connection, file, limits, messages, Arc::default());
        writer.last_length = last_length;
        writer.last_commit = last_commit;
        let mut group = Group {
            answers: vec![Box::new(|_| {})],
            begun: Instant::now(),
            gathering_ends: None,
        };
        let sending = queue.clone();
        thread::scope(|scope| {
            if let Some(message) = sent {
                scope.spawn(move || {
                    thread::sleep(Duration::from_millis(20));
                    sending.send(message).unwrap();
                });
            }
            writer.join(&mut group)
        })
    }

    #[test]
    fn a_group_smaller_than_the_last_waits_briefly_for_more() {
        let close = || Some(Message::Close(oneshot::channel().0));
        let hour = Duration::from_hours(1);
        assert!(received(2, 4 * hour, close()).is_some());
        assert!(received(2, Duration::from_millis(1), None).is_none());
        assert!(received(1, 4 * hour, None).is_none());
    }
}
