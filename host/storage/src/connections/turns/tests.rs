//! Transactions on SQLite that share a commit.

#[path = "../../../tests/storage/dropped_after.rs"]
mod dropped_after;

use std::{fs, time::Duration};

use keywright_core::ports::RepositoryFailure;
use tempfile::TempDir;
use tokio::task::{JoinHandle, yield_now};

use super::{
    super::{
        Connections, Ended, PoolOccupancy, SqliteFile, SqliteSettings, Target, Transaction, Writer,
    },
    GroupLimits, QUEUE_LENGTH_MAX,
};
use crate::{row::column, statement::statement};
use dropped_after::dropped_after;

/// A file with a table `t` of numbers, what writes to it, and what reads it as somebody else would.
struct Fixture {
    folder: TempDir,
    writer: Writer,
    reader: Connections,
}

/// A transaction of another task.
type Writing = JoinHandle<Result<(), RepositoryFailure>>;

/// How a transaction ends that has inserted a number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    Commit,
    Abandon,
    /// It is dropped.
    GoAway,
    /// A statement of it fails.
    Fail,
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
        let file = SqliteFile::unwatched(SqliteSettings {
            path,
            is_read_only: false,
            wait_max: WAIT_MAX,
            cache_kibibytes_max: 2_000,
        });
        let target = Target::Sqlite(Box::new(file.clone()));
        let reader = Connections::open(target, 1, WAIT_MAX).await.unwrap();
        let create = "create table t (
            a integer primary key, other integer references t deferrable initially deferred, b blob
        )";
        reader.execute(statement(create)).await.unwrap();
        let writer = Writer::in_groups(file, WAIT_MAX, limits);
        Self {
            folder,
            writer: writer.await.unwrap(),
            reader,
        }
    }

    /// Begins a transaction that nobody else has.
    async fn begin(&self) -> Transaction {
        self.writer.begin().await.unwrap()
    }

    /// Has another task write. It has its turn after those that are there.
    async fn write(&self, number: i64, ending: Ending) -> Writing {
        let writer = self.writer.clone();
        let writing = tokio::spawn(async move {
            let writing = writer.transaction(|transaction| write(transaction, number, ending));
            writing.await
        });
        yield_now().await;
        writing
    }

    /// What is there for others to see.
    async fn numbers(&self) -> Vec<i64> {
        let query = statement("select a from t order by a");
        let rows = self.reader.fetch_all(query).await.unwrap();
        let numbers = rows.iter().map(|row| column!(row, "t", "a"));
        numbers.collect::<Result<_, _>>().unwrap()
    }

    /// How many commits the write-ahead log holds: frames that say how large the database is after them.
    fn commits(&self) -> usize {
        let log = fs::read(self.folder.path().join("test.sqlite-wal")).unwrap();
        let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
        let frame_bytes = 24 + usize::try_from(number(8)).unwrap();
        let frames = (32..log.len()).step_by(frame_bytes);
        frames.filter(|frame| number(frame + 4) != 0).count()
    }
}

async fn write(
    mut transaction: Transaction,
    number: i64,
    ending: Ending,
) -> Result<Ended<()>, RepositoryFailure> {
    insert(&mut transaction, number).await?;
    match ending {
        Ending::Commit => transaction.commit(()).await,
        Ending::Abandon => transaction.abandon(()).await,
        Ending::GoAway => Err(RepositoryFailure::Inconsistent("gone")),
        Ending::Fail => {
            let again = insert(&mut transaction, number).await;
            assert!(matches!(again, Err(RepositoryFailure::Query(_))));
            assert!(insert(&mut transaction, number + 1).await.is_err());
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

fn may_answer_later<T>(outcome: &Result<T, RepositoryFailure>) -> bool {
    matches!(outcome, Err(RepositoryFailure::Unavailable(_)))
}

#[tokio::test]
async fn those_that_wait_are_written_by_one_commit_up_to_a_number() {
    for (others, commits) in [(0, 1), (1, 1), (3, 1), (4, 2)] {
        let fixture = Fixture::new().await;
        let first = fixture.begin().await;
        let before = fixture.commits();
        let mut writing = Vec::new();
        for number in 0..others {
            writing.push(fixture.write(number + 2, Ending::Commit).await);
        }
        write(first, 1, Ending::Commit).await.unwrap();
        for written in writing {
            written.await.unwrap().unwrap();
        }
        let all: Vec<i64> = (1..others + 2).collect();
        assert_eq!(fixture.numbers().await, all);
        assert_eq!(fixture.commits() - before, commits, "{others} others");
    }
}

#[tokio::test]
async fn a_group_that_has_taken_its_time_takes_in_nobody() {
    let limits = GroupLimits {
        time_max: Duration::ZERO,
        ..LIMITS
    };
    let fixture = Fixture::with(limits).await;
    let first = fixture.begin().await;
    let before = fixture.commits();
    let second = fixture.write(2, Ending::Commit).await;
    write(first, 1, Ending::Commit).await.unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(fixture.commits() - before, 2);
}

#[tokio::test]
async fn nobody_is_told_before_the_commit_not_even_who_wrote_nothing() {
    let fixture = Fixture::new().await;
    let first = fixture.begin().await;
    let writer = fixture.writer.clone();
    let second = tokio::spawn(async move { writer.begin().await.unwrap() });
    yield_now().await;
    let first = tokio::spawn(write(first, 1, Ending::Commit));
    let mut second = second.await.unwrap();
    let query = statement("select a from t where a = 1");
    assert!(second.fetch_optional(query).await.unwrap().is_some());
    assert!(!first.is_finished());
    assert_eq!(fixture.numbers().await, Vec::<i64>::new());
    second.abandon(()).await.unwrap();
    assert_eq!(fixture.numbers().await, [1]);
    first.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_one_undoes_or_leaves_behind_touches_no_other() {
    for ending in [Ending::Abandon, Ending::GoAway, Ending::Fail] {
        for undone in 1..=4 {
            let fixture = Fixture::new().await;
            let ending_of = |number| {
                if number == undone {
                    ending
                } else {
                    Ending::Commit
                }
            };
            let first = fixture.begin().await;
            let mut writing = Vec::new();
            for number in 2..=4 {
                writing.push(fixture.write(number, ending_of(number)).await);
            }
            let outcome = write(first, 1, ending_of(1)).await.map(drop);
            let mut outcomes = vec![outcome];
            for written in writing {
                outcomes.push(written.await.unwrap());
            }
            for (number, outcome) in (1..).zip(outcomes) {
                let is_told_of = number != undone || ending == Ending::Abandon;
                assert_eq!(outcome.is_ok(), is_told_of, "{number}: {outcome:?}");
            }
            let kept: Vec<i64> = (1..=4).filter(|&number| number != undone).collect();
            assert_eq!(fixture.numbers().await, kept, "{ending:?}");
        }
    }
}

#[tokio::test]
async fn when_the_commit_fails_all_are_told_and_nothing_is_written() {
    let fixture = Fixture::new().await;
    let first = fixture.begin().await;
    let mut writing = Vec::new();
    for (number, ending) in [
        (2, Ending::BeRefused),
        (3, Ending::Commit),
        (4, Ending::Abandon),
    ] {
        writing.push(fixture.write(number, ending).await);
    }
    let outcome = write(first, 1, Ending::Commit).await;
    assert!(may_answer_later(&outcome));
    for written in writing {
        let outcome = written.await.unwrap();
        assert!(may_answer_later(&outcome), "{outcome:?}");
    }
    assert_eq!(fixture.numbers().await, Vec::<i64>::new());
    let later = fixture.write(5, Ending::Commit).await;
    later.await.unwrap().unwrap();
    assert_eq!(fixture.numbers().await, [5]);
}

#[tokio::test]
async fn who_is_told_that_it_is_written_finds_it_written_when_the_disk_is_full() {
    let fixture = Fixture::new().await;
    let limit = statement("pragma max_page_count = 5");
    fixture.writer.fetch_all(limit).await.unwrap();
    let first = fixture.begin().await;
    let writer = fixture.writer.clone();
    let large = tokio::spawn(async move {
        let query = statement("insert into t (a, b) values (2, zeroblob(100000))");
        writer.execute(query).await
    });
    yield_now().await;
    let third = fixture.write(3, Ending::Commit).await;
    let first = write(first, 1, Ending::Commit).await;
    assert!(may_answer_later(&large.await.unwrap()));
    let told = [(1, first.is_ok()), (3, third.await.unwrap().is_ok())];
    let written = told.iter().filter(|(_, is_told)| *is_told);
    let written: Vec<i64> = written.map(|(number, _)| *number).collect();
    assert_eq!(fixture.numbers().await, written);
    let limit = statement("pragma max_page_count = 1000");
    fixture.writer.fetch_all(limit).await.unwrap();
    let later = fixture.write(5, Ending::Commit).await;
    later.await.unwrap().unwrap();
    assert_eq!(fixture.numbers().await.last(), Some(&5));
}

#[tokio::test]
async fn a_writer_that_is_dropped_at_any_point_leaves_all_or_nothing_and_the_others_alone() {
    let fixture = Fixture::new().await;
    let mut written = Vec::<i64>::new();
    for polls in 1.. {
        let number = i64::try_from(10 * polls).unwrap();
        let first = fixture.begin().await;
        let second = fixture.write(number + 2, Ending::Commit).await;
        let writer = fixture.writer.clone();
        let dropped = tokio::spawn(dropped_after(polls, async move {
            let writing = writer.transaction(|mut transaction| async move {
                insert(&mut transaction, number + 3).await?;
                write(transaction, number + 4, Ending::Commit).await
            });
            writing.await
        }));
        yield_now().await;
        let fourth = fixture.write(number + 5, Ending::Commit).await;
        write(first, number + 1, Ending::Commit).await.unwrap();
        second.await.unwrap().unwrap();
        fourth.await.unwrap().unwrap();
        let outcome = dropped.await.unwrap();
        let after = fixture.write(number + 6, Ending::Commit).await;
        after.await.unwrap().unwrap();

        let mut numbers = fixture.numbers().await;
        let of_round = numbers.split_off(written.len());
        let of_dropped = [number + 3, number + 4];
        let without = |of_round: &[i64]| -> Vec<i64> {
            let others = of_round
                .iter()
                .filter(|number| !of_dropped.contains(number));
            others.map(|others| others - number).collect()
        };
        assert_eq!(numbers, written);
        assert_eq!(without(&of_round), [1, 2, 5, 6], "{polls} polls");
        assert!([4, 6].contains(&of_round.len()), "{of_round:?}");
        written.extend(of_round.iter());
        if let Some(outcome) = outcome {
            outcome.unwrap();
            assert_eq!(of_round.len(), 6);
            // It waits for its turn, for the end, and mostly for each of two statements.
            assert!(polls > 2, "{polls} polls");
            break;
        }
    }
}

#[tokio::test]
async fn a_turn_without_end_ends_its_group_and_not_those_that_follow() {
    let limits = GroupLimits {
        turn_max: Duration::from_millis(500),
        ..LIMITS
    };
    let fixture = Fixture::with(limits).await;
    let first = fixture.begin().await;
    let writer = fixture.writer.clone();
    let endless = tokio::spawn(async move { writer.begin().await.unwrap() });
    yield_now().await;
    let outcome = write(first, 1, Ending::Commit).await;
    assert!(may_answer_later(&outcome));
    let outcome = write(endless.await.unwrap(), 2, Ending::Commit).await;
    assert!(may_answer_later(&outcome));
    // On a busy machine a turn with an end may take longer than that, too.
    for _ in 0..100 {
        let later = fixture.write(3, Ending::Commit).await;
        if later.await.unwrap().is_ok() {
            break;
        }
    }
    assert_eq!(fixture.numbers().await, [3]);
}

#[tokio::test]
async fn its_occupancy_tells_whether_somebody_writes_and_who_waits() {
    let fixture = Fixture::new().await;
    let occupancy = |in_use, idle, waiting| PoolOccupancy {
        connections_max: 1,
        in_use,
        idle,
        waiting,
    };
    assert_eq!(fixture.writer.occupancy(), occupancy(0, 1, 0));
    let first = fixture.begin().await;
    assert_eq!(fixture.writer.occupancy(), occupancy(1, 0, 0));
    let second = fixture.write(2, Ending::Commit).await;
    assert_eq!(fixture.writer.occupancy(), occupancy(1, 0, 1));
    drop(first);
    second.await.unwrap().unwrap();
    assert_eq!(fixture.writer.occupancy(), occupancy(0, 1, 0));
}

#[tokio::test]
async fn those_that_find_no_place_in_line_wait_for_one() {
    let fixture = Fixture::new().await;
    let first = fixture.begin().await;
    let mut writing = Vec::new();
    let last = i64::try_from(QUEUE_LENGTH_MAX).unwrap() + 2;
    for number in 2..=last {
        writing.push(fixture.write(number, Ending::Commit).await);
    }
    assert_eq!(fixture.writer.occupancy().waiting, QUEUE_LENGTH_MAX + 1);
    write(first, 1, Ending::Commit).await.unwrap();
    for written in writing {
        written.await.unwrap().unwrap();
    }
    assert_eq!(fixture.numbers().await, (1..=last).collect::<Vec<_>>());
}

#[tokio::test]
async fn those_that_wait_when_it_closes_still_write_and_nobody_after_them() {
    let fixture = Fixture::new().await;
    let first = fixture.begin().await;
    let second = fixture.write(2, Ending::Commit).await;
    let (first, ()) = tokio::join!(write(first, 1, Ending::Commit), fixture.writer.close());
    first.unwrap();
    second.await.unwrap().unwrap();
    let third = fixture.write(3, Ending::Commit).await;
    assert!(may_answer_later(&third.await.unwrap()));
    assert_eq!(fixture.numbers().await, [1, 2]);
}

const WAIT_MAX: Duration = Duration::from_mins(10);

const LIMITS: GroupLimits = GroupLimits {
    length_max: 4,
    time_max: Duration::MAX,
    turn_max: WAIT_MAX,
};
