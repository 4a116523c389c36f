use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};

use keywright_core::{
    permission::{Actor, Permission},
    ports::RepositoryError,
};
use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;

use super::{transaction::Isolation, *};
use crate::statement::{Columns, Row, built_statement, column, statement};

/// Opens a pool of connections to a new PostgreSQL database, whose URL is also returned. `None` without a server. `wait_max`
/// limits each statement.
async fn connections_to_postgres(
    connections_max: u32,
    wait_max: Duration,
) -> Option<(String, PostgresConnections)> {
    let url = keywright_test_postgres::shared()?.new_database();
    let target = PostgresTarget {
        options: Box::new(url.parse::<PgConnectOptions>().unwrap()),
        wait_max,
        server_health: ServerHealth::default(),
    };
    let connections = PostgresConnections::open(target, connections_max, LONG)
        .await
        .unwrap();
    Some((url, connections))
}

/// Opens a pool of connections to a file in this folder.
async fn readers(folder: &TempDir, connections_max: u32, wait_max: Duration) -> SqliteReaders {
    let settings = SqliteSettings {
        path: folder.path().join("test.sqlite"),
        is_read_only: true,
        follows_links: true,
        wait_max,
        cache_kibibytes_max: 2_000,
    };
    std::fs::File::create(&settings.path).unwrap();
    let opening = SqliteReaders::open(SqliteFile::unwatched(settings), connections_max, wait_max);
    opening.await.unwrap()
}

fn is_unavailable<T>(outcome: &Result<T, RepositoryError>) -> bool {
    matches!(outcome, Err(RepositoryError::Unavailable(_)))
}

#[tokio::test]
async fn check_outs_are_limited_and_refused_after_closing() {
    let folder = tempfile::tempdir().unwrap();
    let readers = readers(&folder, 1, Duration::from_millis(50)).await;
    let first = readers.check_out().await.unwrap();
    let outcome = readers.check_out().await;
    assert!(matches!(outcome, Err(sqlx::Error::PoolTimedOut)));
    drop(first);
    drop(readers.check_out().await.unwrap());
    readers.close().await;
    let outcome = readers.check_out().await;
    assert!(matches!(outcome, Err(sqlx::Error::PoolClosed)));
}

#[tokio::test]
async fn a_connection_is_not_used_again_after_a_read_that_panicked() {
    let folder = tempfile::tempdir().unwrap();
    let readers = readers(&folder, 1, LONG).await;
    let panicked = readers.on_own_thread::<()>(|_| panic!("in a read"));
    assert!(is_unavailable(&panicked.await));
    let counting = statement(COUNT_TO_100_000);
    let counted = readers.in_place(|connection| connection.fetch_all(&counting));
    assert_eq!(counted.await.unwrap().len(), 1);
}

#[tokio::test]
async fn occupancy_counts_connections_in_use_and_reads_that_wait() {
    let folder = tempfile::tempdir().unwrap();
    let readers = readers(&folder, 1, LONG).await;
    let occupancy = |in_use, idle, waiting| PoolOccupancy {
        connections_max: 1,
        in_use,
        idle,
        waiting,
    };
    assert_eq!(readers.occupancy(), occupancy(0, 1, 0));
    let checked_out = readers.check_out().await.unwrap();
    assert_eq!(readers.occupancy(), occupancy(1, 0, 0));
    let (later, ()) = tokio::join!(readers.check_out(), async {
        assert_eq!(readers.occupancy(), occupancy(1, 0, 1));
        drop(checked_out);
    });
    assert!(later.is_ok());
}

#[tokio::test]
async fn dropping_a_long_read_interrupts_it() {
    let folder = tempfile::tempdir().unwrap();
    let connections = Connections::Sqlite(readers(&folder, 1, LONG).await);
    for pause in [Duration::ZERO, Duration::from_millis(50)] {
        let reading = connections.fetch_all(statement(ENDLESS));
        assert!(tokio::time::timeout(pause, reading).await.is_err());
        let rows = connections.fetch_all(statement("select 1").short()).await;
        assert_eq!(rows.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn only_long_reads_of_an_actor_have_a_time_limit() {
    let folder = tempfile::tempdir().unwrap();
    let connections = Connections::Sqlite(readers(&folder, 1, Duration::ZERO).await);
    let counting = statement(COUNT_TO_100_000);
    assert!(connections.fetch_all(counting.clone()).await.is_ok());
    let of_actor = connections.of_actor(&Actor::client("a").unwrap());
    assert!(is_unavailable(&of_actor.fetch_all(counting).await));
}

#[tokio::test]
async fn postgresql_stops_a_long_read_that_was_dropped() {
    let Some((_, server)) = connections_to_postgres(1, LONG).await else {
        return;
    };
    let server = Connections::Postgres(server);
    let reading = server.fetch_all(statement("select pg_sleep(600)"));
    let dropped = tokio::time::timeout(Duration::from_millis(50), reading).await;
    assert!(dropped.is_err());
    for _ in 0..100 {
        let running = statement(
            "select pid from pg_stat_activity where datname = current_database() and query like 'select pg_sleep%'",
        );
        if server.fetch_all(running.short()).await.unwrap().is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the read is still running");
}

#[tokio::test]
async fn long_reads_leave_a_connection_to_point_reads() {
    let folder = tempfile::tempdir().unwrap();
    let file = Connections::Sqlite(readers(&folder, 2, LONG).await);
    Box::pin(point_reads_pass(&file, ENDLESS)).await;
    if let Some((_, server)) = connections_to_postgres(2, LONG).await {
        let server = Connections::Postgres(server.reading());
        Box::pin(point_reads_pass(&server, "select pg_sleep(600)")).await;
    }
}

/// Asserts that a point read gets the second of two connections while a long read uses the first and two more are waiting.
async fn point_reads_pass(connections: &Connections, long: &'static str) {
    let each = || connections.fetch_all(statement(long));
    let scanning = async {
        let mut keep = |_| ControlFlow::Continue(());
        connections.fetch_each(statement(long), &mut keep).await
    };
    let reading = async {
        let mut occupancy = connections.occupancy();
        while occupancy.in_use + occupancy.waiting < 3 {
            tokio::task::yield_now().await;
            occupancy = connections.occupancy();
        }
        assert_eq!((occupancy.in_use, occupancy.waiting), (1, 2));
        let point = connections.fetch_all(statement("select 1").short());
        assert_eq!(point.await.unwrap().len(), 1);
    };
    tokio::select! {
        _ = async { tokio::join!(each(), each(), scanning) } => panic!("the long reads ended"),
        () = reading => {}
    }
}

#[tokio::test]
async fn rows_arrive_in_order_until_the_receiver_stops() {
    let folder = tempfile::tempdir().unwrap();
    let connections = Connections::Sqlite(readers(&folder, 1, LONG).await);
    let counting = |end| {
        format!(
            "with recursive n (i) as (select 1 union all select i + 1 from n {end}) select i from n"
        )
    };
    for (end, wanted, received) in [("limit 1000", usize::MAX, 1_000), ("", 300, 300)] {
        let query = built_statement(counting(end));
        let mut numbers: Vec<i64> = Vec::new();
        let mut receive = |row: Row| {
            numbers.push(column!(row, "n", "i").unwrap());
            if numbers.len() < wanted {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        connections.fetch_each(query, &mut receive).await.unwrap();
        assert!(numbers.into_iter().eq(1..=received));
    }
}

#[tokio::test]
async fn a_snapshot_lasts_until_its_reads_end() {
    let folder = tempfile::tempdir().unwrap();
    let readers = readers(&folder, 1, LONG).await;
    let writer = SqliteConnection::open(&SqliteSettings {
        path: folder.path().join("test.sqlite"),
        is_read_only: false,
        follows_links: true,
        wait_max: LONG,
        cache_kibibytes_max: 2_000,
    });
    let writer = writer.unwrap();
    writer.run("create table number (n integer)").unwrap();
    let numbers = |connection: &SqliteConnection| {
        let rows = connection.fetch_all(&statement("select n from number"))?;
        Ok(rows.len())
    };
    let none = statement("select n from number where n < 0 union all select null");
    let reading = readers.in_place(|connection| {
        connection.decode_and_read(&none, |_: Vec<Permission>| {
            writer.run("insert into number values (1)")?;
            assert_eq!(numbers(connection)?, 0);
            writer.run("insert into number values (2)")?;
            assert_eq!(numbers(connection)?, 0);
            connection.run("select * from absent")
        })
    });
    assert!(reading.await.is_err());
    assert_eq!(readers.in_place(numbers).await.unwrap(), 2);
    // Fails if a reader still uses the write-ahead log.
    let checkpoint = writer.fetch_optional(&statement("pragma wal_checkpoint(truncate)"));
    let is_busy: i64 = checkpoint.unwrap().unwrap().at(0).unwrap();
    assert_eq!(is_busy, 0);
}

#[tokio::test]
async fn the_server_cancels_a_statement_after_the_client_gives_up() {
    let wait_max = Duration::from_secs(2);
    let Some((url, connections)) = connections_to_postgres(1, wait_max).await else {
        return;
    };
    let given_up = connections.fetch_all(statement("select pg_sleep(600)"));
    assert!(is_unavailable(&given_up.await));
    let running = "select count(*) from pg_stat_activity
        where datname = current_database() and query like 'select pg_sleep%' and state = 'active'";
    let server = keywright_test_postgres::shared().unwrap();
    let begun = Instant::now();
    while begun.elapsed() < LONG {
        if server.run_at(&url, running) == "0" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the statement is still running");
}

#[tokio::test]
async fn idle_transactions_have_a_timeout_on_the_server() {
    let Some((_, connections)) = connections_to_postgres(1, LONG).await else {
        return;
    };
    let mut transaction = Transaction::begin(
        connections.check_out().await.unwrap(),
        Isolation::SERIALIZABLE,
    )
    .await
    .unwrap();
    let setting = "select current_setting('idle_in_transaction_session_timeout') as setting";
    let row = transaction.fetch_one(statement(setting)).await.unwrap();
    let setting: String = column!(row, "pg_settings", "setting").unwrap();
    assert_eq!(setting, "10s");
}

/// SQLite: a statement that does not end.
const ENDLESS: &str =
    "with recursive n (i) as (select 1 union all select i + 1 from n) select max(i) from n";

/// SQLite: a statement of many steps.
const COUNT_TO_100_000: &str = "with recursive n (i) as (select 1 union all select i + 1 from n where i < 100000) select max(i) from n";

/// A time limit that no successful operation reaches.
const LONG: Duration = Duration::from_mins(10);
