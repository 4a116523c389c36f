//! Transactions on SQLite that share a commit.

use std::{fs, thread};

use tempfile::TempDir;
use tokio::task::{JoinHandle, yield_now};

use super::*;
use crate::{
    connections::SqliteSettings,
    statement::{Row, column, statement},
};

#[tokio::test]
async fn queued_transactions_share_a_commit_up_to_a_limit() {
    for (others, commits) in [(0, 1), (1, 1), (3, 1), (4, 2)] {
        let fixture = Fixture::new().await;
        let first = fixture.block(1, Ending::Commit).await;
        let before = fixture.commits();
        let mut writing = Vec::new();
        for number in 0..others {
            writing.push(fixture.write(number + 2, Ending::Commit).await);
        }
        first.end().await.unwrap();
        for written in writing {
            written.await.unwrap().unwrap();
        }
        let all: Vec<i64> = (1..others + 2).collect();
        assert_eq!(fixture.numbers(), all);
        assert_eq!(fixture.commits() - before, commits, "{others} others");
    }
}

#[tokio::test]
async fn a_group_accepts_no_transaction_after_its_time_limit() {
    let limits = GroupLimits {
        time_max: Duration::ZERO,
        ..LIMITS
    };
    let fixture = Fixture::with(limits).await;
    let first = fixture.block(1, Ending::Commit).await;
    let before = fixture.commits();
    let second = fixture.write(2, Ending::Commit).await;
    first.end().await.unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(fixture.commits() - before, 2);
}

#[tokio::test]
async fn no_caller_gets_an_outcome_before_the_commit() {
    for ending in [Ending::Commit, Ending::RollBack] {
        let fixture = Fixture::new().await;
        let first = fixture.block(1, Ending::Commit).await;
        let (begun, seen) = oneshot::channel();
        let second = fixture.queue_blocking(2, ending, begun).await;
        let (begun, beginning) = oneshot::channel();
        let third = fixture.queue_blocking(3, Ending::Commit, begun).await;
        first.release.send(()).unwrap();
        assert_eq!(seen.await.unwrap(), [1]);
        second.release.send(()).unwrap();
        beginning.await.unwrap();
        yield_now().await;
        assert!(!first.writing.is_finished());
        assert!(!second.writing.is_finished());
        assert_eq!(fixture.numbers(), Vec::<i64>::new());
        third.end().await.unwrap();
        second.writing.await.unwrap().unwrap();
        first.writing.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn undoing_one_transaction_keeps_the_others() {
    for ending in [
        Ending::RollBack,
        Ending::ReturnError,
        Ending::Fail,
        Ending::Panic,
        Ending::Wait,
    ] {
        for undone in 1..=4 {
            let fixture = Fixture::new().await;
            let ending_of = |number| {
                if number == undone {
                    ending
                } else {
                    Ending::Commit
                }
            };
            let first = fixture.block(1, ending_of(1)).await;
            let mut writing = Vec::new();
            for number in 2..=4 {
                writing.push(fixture.write(number, ending_of(number)).await);
            }
            let mut outcomes = vec![first.end().await];
            for written in writing {
                outcomes.push(written.await.unwrap());
            }
            for (number, outcome) in (1..).zip(outcomes) {
                let has_succeeded = number != undone || ending == Ending::RollBack;
                assert_eq!(outcome.is_ok(), has_succeeded, "{number}: {outcome:?}");
                assert!(!is_unavailable(&outcome) || ending == Ending::Fail);
            }
            let kept: Vec<i64> = (1..=4).filter(|&number| number != undone).collect();
            assert_eq!(fixture.numbers(), kept, "{ending:?}");
        }
    }
}

#[tokio::test]
async fn a_failed_commit_writes_nothing_and_the_next_group_succeeds() {
    let fixture = Fixture::new().await;
    let first = fixture.block(1, Ending::Commit).await;
    let mut writing = Vec::new();
    for (number, ending) in [
        (2, Ending::BeRefused),
        (3, Ending::Commit),
        (4, Ending::RollBack),
    ] {
        writing.push(fixture.write(number, ending).await);
    }
    assert!(is_unavailable(&first.end().await));
    for written in writing {
        let outcome = written.await.unwrap();
        assert!(is_unavailable(&outcome), "{outcome:?}");
    }
    assert_eq!(fixture.numbers(), Vec::<i64>::new());
    let later = fixture.write(5, Ending::Commit).await;
    later.await.unwrap().unwrap();
    assert_eq!(fixture.numbers(), [5]);
}

#[tokio::test]
async fn acknowledged_writes_survive_a_full_disk() {
    let fixture = Fixture::new().await;
    fixture.run("pragma max_page_count = 5").await.unwrap();
    let first = fixture.block(1, Ending::Commit).await;
    let writer = fixture.writer.clone();
    let large = tokio::spawn(async move {
        let writing = writer.transaction(|mut transaction| async move {
            let query = statement("insert into t (a, b) values (2, zeroblob(100000))");
            transaction.execute(query).await?;
            transaction.commit(()).await
        });
        writing.await
    });
    yield_now().await;
    let third = fixture.write(3, Ending::Commit).await;
    let first = first.end().await;
    assert!(is_unavailable(&large.await.unwrap()));
    let outcomes = [(1, first.is_ok()), (3, third.await.unwrap().is_ok())];
    let acknowledged = outcomes
        .iter()
        .filter(|(_, is_acknowledged)| *is_acknowledged);
    let acknowledged: Vec<i64> = acknowledged.map(|(number, _)| *number).collect();
    assert_eq!(fixture.numbers(), acknowledged);
    fixture.run("pragma max_page_count = 1000").await.unwrap();
    let later = fixture.write(5, Ending::Commit).await;
    later.await.unwrap().unwrap();
    assert_eq!(fixture.numbers().last(), Some(&5));
}

#[tokio::test]
async fn a_transaction_dropped_before_it_begins_is_skipped() {
    let fixture = Fixture::new().await;
    let first = fixture.block(1, Ending::Commit).await;
    let second = fixture.write(2, Ending::Commit).await;
    let third = fixture.write(3, Ending::Commit).await;
    assert_eq!(fixture.writer.occupancy().waiting, 2);
    second.abort();
    assert!(second.await.unwrap_err().is_cancelled());
    assert_eq!(fixture.writer.occupancy().waiting, 1);
    first.end().await.unwrap();
    third.await.unwrap().unwrap();
    assert_eq!(fixture.numbers(), [1, 3]);
}

#[tokio::test]
async fn a_transaction_dropped_after_it_began_is_written() {
    let fixture = Fixture::new().await;
    let first = fixture.block(1, Ending::Commit).await;
    first.writing.abort();
    assert!(first.writing.await.unwrap_err().is_cancelled());
    let second = fixture.write(2, Ending::Commit).await;
    first.release.send(()).unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(fixture.numbers(), [1, 2]);
}

#[tokio::test]
async fn a_transaction_that_can_not_begin_in_time_fails() {
    let fixture = Fixture::new().await;
    let first = fixture.block(1, Ending::Commit).await;
    let impatient = GroupCommit {
        wait_max: Duration::ZERO,
        ..fixture.writer.clone()
    };
    let given_up = impatient.transaction(|transaction| write(transaction, 2, Ending::Commit));
    assert!(is_unavailable(&given_up.await));
    assert_eq!(fixture.writer.occupancy().waiting, 0);
    first.end().await.unwrap();
    fixture
        .write(3, Ending::Commit)
        .await
        .await
        .unwrap()
        .unwrap();
    assert_eq!(fixture.numbers(), [1, 3]);
}

#[tokio::test]
async fn a_transaction_that_has_begun_has_no_time_limit() {
    let mut fixture = Fixture::new().await;
    // On a busy machine, a transaction may take longer to begin.
    fixture.writer.wait_max = Duration::from_secs(2);
    let first = fixture.block(1, Ending::Commit).await;
    tokio::time::sleep(fixture.writer.wait_max).await;
    first.end().await.unwrap();
    assert_eq!(fixture.numbers(), [1]);
}

#[tokio::test]
async fn occupancy_counts_running_and_queued_transactions() {
    let fixture = Fixture::new().await;
    let occupancy = |in_use, idle, waiting| PoolOccupancy {
        connections_max: 1,
        in_use,
        idle,
        waiting,
    };
    assert_eq!(fixture.writer.occupancy(), occupancy(0, 1, 0));
    let first = fixture.block(1, Ending::Commit).await;
    assert_eq!(fixture.writer.occupancy(), occupancy(1, 0, 0));
    let second = fixture.write(2, Ending::Commit).await;
    assert_eq!(fixture.writer.occupancy(), occupancy(1, 0, 1));
    first.end().await.unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(fixture.writer.occupancy(), occupancy(0, 1, 0));
}

#[tokio::test]
async fn closing_writes_queued_transactions_and_refuses_later_ones() {
    let fixture = Fixture::new().await;
    let first = fixture.block(1, Ending::Commit).await;
    let second = fixture.write(2, Ending::Commit).await;
    let (first, ()) = tokio::join!(first.end(), fixture.writer.close());
    first.unwrap();
    second.await.unwrap().unwrap();
    let third = fixture.write(3, Ending::Commit).await;
    assert!(is_unavailable(&third.await.unwrap()));
    assert_eq!(fixture.numbers(), [1, 2]);
}

/// Returns the message that a group of one transaction receives if `sent` arrives while it waits. The previous group had
/// `last_length` transactions, and its commit took `last_commit`.
fn received(last_length: usize, last_commit: Duration, sent: Option<Message>) -> Option<Message> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.sqlite");
    fs::File::create(&path).unwrap();
    let file = SqliteFile::unwatched(SqliteSettings {
        path,
        is_read_only: false,
        follows_links: true,
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
        responses: vec![Box::new(|_| {})],
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

/// A file with a table `t` of numbers, its writer thread, and a connection that reads it as another process would.
struct Fixture {
    folder: TempDir,
    writer: GroupCommit,
    reader: SqliteConnection,
}

type Writing = JoinHandle<Result<(), RepositoryError>>;

/// A transaction that blocks the thread until it is released.
struct Blocking {
    release: mpsc::Sender<()>,
    writing: Writing,
}

/// How a transaction ends after it inserted a number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    Commit,
    RollBack,
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
    async fn new() -> Self {
        Self::with(LIMITS).await
    }

    async fn with(limits: GroupLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.sqlite");
        fs::File::create(&path).unwrap();
        let settings = SqliteSettings {
            path,
            is_read_only: false,
            follows_links: true,
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
    async fn write(&self, number: i64, ending: Ending) -> Writing {
        let writer = self.writer.clone();
        let writing = tokio::spawn(async move {
            let writing = writer.transaction(move |transaction| write(transaction, number, ending));
            writing.await
        });
        yield_now().await;
        writing
    }

    /// Begins a transaction with nothing queued after it.
    async fn block(&self, number: i64, ending: Ending) -> Blocking {
        let (begun, beginning) = oneshot::channel();
        let blocking = self.queue_blocking(number, ending, begun).await;
        beginning.await.unwrap();
        blocking
    }

    /// Queues a transaction that reports when it begins and then blocks the thread.
    async fn queue_blocking(
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

    /// Returns the numbers that other processes read.
    fn numbers(&self) -> Vec<i64> {
        numbers(&self.reader.fetch_all(&statement(NUMBERS)).unwrap())
    }

    /// Counts the commits in the write-ahead log: the frames that contain the size of the database after the commit.
    fn commits(&self) -> usize {
        let log = fs::read(self.folder.path().join("test.sqlite-wal")).unwrap();
        let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
        let frame_bytes = 24 + usize::try_from(number(8)).unwrap();
        let frames = (32..log.len()).step_by(frame_bytes);
        frames.filter(|frame| number(frame + 4) != 0).count()
    }

    /// Runs a single statement as a transaction.
    async fn run(&self, sql: &'static str) -> Result<(), RepositoryError> {
        let running = self.writer.transaction(move |mut transaction| async move {
            transaction.fetch_all(statement(sql)).await?;
            transaction.commit(()).await
        });
        running.await
    }
}

impl Blocking {
    async fn end(self) -> Result<(), RepositoryError> {
        self.release.send(()).unwrap();
        self.writing.await.unwrap()
    }
}

async fn write(
    mut transaction: Transaction,
    number: i64,
    ending: Ending,
) -> Result<Ended<()>, RepositoryError> {
    insert(&mut transaction, number).await?;
    match ending {
        Ending::Commit => transaction.commit(()).await,
        Ending::RollBack => transaction.roll_back(()).await,
        Ending::ReturnError => Err(RepositoryError::Inconsistent("gone")),
        Ending::Fail => {
            let again = insert(&mut transaction, number).await;
            assert!(matches!(again, Err(RepositoryError::Query(_))));
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

async fn insert(transaction: &mut Transaction, number: i64) -> Result<(), RepositoryError> {
    let query = statement("insert into t (a) values ($1)").bind(number);
    transaction.execute(query).await.map(drop)
}

fn numbers(rows: &[Row]) -> Vec<i64> {
    let numbers = rows.iter().map(|row| column!(row, "t", "a"));
    numbers.collect::<Result<_, _>>().unwrap()
}

fn is_unavailable<T>(outcome: &Result<T, RepositoryError>) -> bool {
    matches!(outcome, Err(RepositoryError::Unavailable(_)))
}

const NUMBERS: &str = "select a from t order by a";

const WAIT_MAX: Duration = Duration::from_mins(10);

const LIMITS: GroupLimits = GroupLimits {
    length_max: 4,
    time_max: Duration::MAX,
};
