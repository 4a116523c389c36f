//! A SQLite file with its writer thread, and transactions with every kind of ending.

use std::{fs, sync::mpsc, time::Duration};

use keywright_core::ports::RepositoryFailure;
use tempfile::TempDir;
use tokio::{
    sync::oneshot,
    task::{JoinHandle, yield_now},
};

use super::super::{
    super::{SqliteConnection, SqliteFile, SqliteSettings},
    Ended, GroupCommit, GroupLimits, Transaction,
};
use crate::{row::column, statement::statement};

/// A file with a table `t` of numbers, its writer thread, and a connection that reads it as another process would.
pub(super) struct Fixture {
    folder: TempDir,
    pub(super) writer: GroupCommit,
    reader: SqliteConnection,
}

pub(super) type Writing = JoinHandle<Result<(), RepositoryFailure>>;

/// A transaction that blocks the thread until it is released.
pub(super) struct Blocking {
    pub(super) release: mpsc::Sender<()>,
    pub(super) writing: Writing,
}

/// How a transaction ends after it inserted a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ending {
    Commit,
    Abandon,
    /// It returns an error.
    ReturnError,
    /// A statement fails.
    Fail,
    Panic,
    /// It waits for something other than the database.
    Wait,
    /// The database refuses to commit it.
    BeRefused,
}

impl Fixture {
    pub(super) async fn new() -> Self {
        Self::with(LIMITS).await
    }

    pub(super) async fn with(limits: GroupLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.sqlite");
        fs::File::create(&path).unwrap();
        let settings = SqliteSettings {
            path,
            is_read_only: false,
            wait_max: WAIT_MAX,
            cache_kibibytes_max: 2_000,
        };
        let reader = SqliteConnection::open(&settings).unwrap();
        let file = SqliteFile::unwatched(settings);
        let create = "create table t (
            a integer primary key, other integer references t deferrable initially deferred, b blob
        )";
        reader.execute(&statement(create)).unwrap();
        let writer = GroupCommit::open(file, WAIT_MAX, limits).await.unwrap();
        Self {
            folder,
            writer,
            reader,
        }
    }

    /// Queues a transaction at the end of the queue.
    pub(super) async fn write(&self, number: i64, ending: Ending) -> Writing {
        let writer = self.writer.clone();
        let writing = tokio::spawn(async move {
            let writing = writer.transaction(move |transaction| write(transaction, number, ending));
            writing.await
        });
        yield_now().await;
        writing
    }

    /// Begins a transaction with nothing queued after it.
    pub(super) async fn block(&self, number: i64, ending: Ending) -> Blocking {
        let (begun, beginning) = oneshot::channel();
        let blocking = self.queue_blocking(number, ending, begun).await;
        beginning.await.unwrap();
        blocking
    }

    /// Queues a transaction that reports when it begins and then blocks the thread.
    pub(super) async fn queue_blocking(
        &self,
        number: i64,
        ending: Ending,
        begun: oneshot::Sender<Vec<i64>>,
    ) -> Blocking {
        let (release, released) = mpsc::channel();
        let writer = self.writer.clone();
        let writing = tokio::spawn(async move {
            let writing = writer.transaction(move |mut transaction| async move {
                let query = statement(NUMBERS);
                let rows = transaction.fetch_all(query).await?;
                begun.send(numbers(&rows)).unwrap();
                released.recv().unwrap();
                write(transaction, number, ending).await
            });
            writing.await
        });
        yield_now().await;
        Blocking { release, writing }
    }

    /// The numbers that other processes read.
    pub(super) fn numbers(&self) -> Vec<i64> {
        numbers(&self.reader.fetch_all(&statement(NUMBERS)).unwrap())
    }

    /// Counts the commits in the write-ahead log: the frames that contain the size of the database after the commit.
    pub(super) fn commits(&self) -> usize {
        let log = fs::read(self.folder.path().join("test.sqlite-wal")).unwrap();
        let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
        let frame_bytes = 24 + usize::try_from(number(8)).unwrap();
        let frames = (32..log.len()).step_by(frame_bytes);
        frames.filter(|frame| number(frame + 4) != 0).count()
    }

    /// Runs a single statement as a transaction.
    pub(super) async fn run(&self, sql: &'static str) -> Result<(), RepositoryFailure> {
        let running = self.writer.transaction(move |mut transaction| async move {
            transaction.fetch_all(statement(sql)).await?;
            transaction.commit(()).await
        });
        running.await
    }
}

impl Blocking {
    pub(super) async fn end(self) -> Result<(), RepositoryFailure> {
        self.release.send(()).unwrap();
        self.writing.await.unwrap()
    }
}

pub(super) async fn write(
    mut transaction: Transaction,
    number: i64,
    ending: Ending,
) -> Result<Ended<()>, RepositoryFailure> {
    insert(&mut transaction, number).await?;
    match ending {
        Ending::Commit => transaction.commit(()).await,
        Ending::Abandon => transaction.abandon(()).await,
        Ending::ReturnError => Err(RepositoryFailure::Inconsistent("gone")),
        Ending::Fail => {
            let again = insert(&mut transaction, number).await;
            assert!(matches!(again, Err(RepositoryFailure::Query(_))));
            assert!(insert(&mut transaction, number + 1).await.is_err());
            transaction.commit(()).await
        }
        Ending::Panic => panic!("intended by the test"),
        Ending::Wait => {
            yield_now().await;
            transaction.commit(()).await
        }
        Ending::BeRefused => {
            let query = statement("update t set other = -1 where a = $1").bind(number);
            transaction.execute(query).await?;
            transaction.commit(()).await
        }
    }
}

async fn insert(transaction: &mut Transaction, number: i64) -> Result<(), RepositoryFailure> {
    let query = statement("insert into t (a) values ($1)").bind(number);
    transaction.execute(query).await.map(drop)
}

fn numbers(rows: &[crate::row::Row]) -> Vec<i64> {
    let numbers = rows.iter().map(|row| column!(row, "t", "a"));
    numbers.collect::<Result<_, _>>().unwrap()
}

pub(super) fn may_answer_later<T>(outcome: &Result<T, RepositoryFailure>) -> bool {
    matches!(outcome, Err(RepositoryFailure::Unavailable(_)))
}

const NUMBERS: &str = "select a from t order by a";

const WAIT_MAX: Duration = Duration::from_mins(10);

pub(super) const LIMITS: GroupLimits = GroupLimits {
    length_max: 4,
    time_max: Duration::MAX,
};
