//! The pool, mostly on SQLite.

use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;

use super::{transaction::Isolation, *};
use crate::{row::column, statement::statement};

/// At most one connection to a database of PostgreSQL of its own, with the URL; none where there is no server.
/// A statement may take so long.
async fn one_connection_to_postgres(wait_max: Duration) -> Option<(String, Connections)> {
    let url = keywright_test_postgres::shared()?.new_database();
    let target = Target::Postgres {
        options: Box::new(url.parse::<PgConnectOptions>().unwrap()),
        wait_max,
        is_read_only: false,
        doubt: Doubt::default(),
    };
    let connections = Connections::open(target, 1, LONG).await.unwrap();
    Some((url, connections))
}

/// At most one connection to a file in this folder.
async fn one_connection(folder: &TempDir, wait_max: Duration) -> Connections {
    let path = folder.path().join("test.sqlite");
    std::fs::File::create(&path).unwrap();
    let settings = SqliteSettings {
        path,
        is_read_only: false,
        wait_max,
        cache_kibibytes_max: 2_000,
    };
    // On a busy machine it may need several attempts in a short time.
    for _ in 0..ATTEMPTS_MAX {
        let target = Target::Sqlite(Box::new(SqliteFile::unwatched(settings.clone())));
        if let Ok(connections) = Connections::open(target, 1, wait_max).await {
            return connections;
        }
    }
    panic!("no connection was opened");
}

/// The connection that is free, likewise.
async fn lent(connections: &Connections) -> LentConnection {
    for _ in 0..ATTEMPTS_MAX {
        if let Ok(lent) = connections.lend().await {
            return lent;
        }
    }
    panic!("no connection was lent");
}

fn may_answer_later<T>(outcome: &Result<T, RepositoryFailure>) -> bool {
    matches!(outcome, Err(RepositoryFailure::Unavailable(_)))
}

#[tokio::test]
async fn no_more_than_the_most_are_lent_and_none_after_closing() {
    let folder = tempfile::tempdir().unwrap();
    let connections = one_connection(&folder, Duration::from_millis(500)).await;
    let first = lent(&connections).await;
    assert!(may_answer_later(&connections.lend().await));
    drop(first);
    drop(lent(&connections).await);
    connections.close().await;
    assert!(may_answer_later(&connections.lend().await));
}

#[tokio::test]
async fn its_occupancy_tells_who_has_a_connection_and_who_waits() {
    let folder = tempfile::tempdir().unwrap();
    let connections = one_connection(&folder, LONG).await;
    let occupancy = |in_use, idle, waiting| PoolOccupancy {
        connections_max: 1,
        in_use,
        idle,
        waiting,
    };
    assert_eq!(connections.occupancy(), occupancy(0, 1, 0));
    let lent = connections.lend().await.unwrap();
    assert_eq!(connections.occupancy(), occupancy(1, 0, 0));
    let (lent_later, ()) = tokio::join!(connections.lend(), async {
        assert_eq!(connections.occupancy(), occupancy(1, 0, 1));
        drop(lent);
    });
    assert!(lent_later.is_ok());
}

#[tokio::test]
async fn a_connection_that_is_still_busy_for_a_user_that_went_away_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let connections = one_connection(&folder, LONG).await;
    let long =
        "with recursive n (i) as (select 1 union all select i + 1 from n where i < 100000000)
                select max(i) from n";
    let reading = connections.fetch_all(statement(long));
    let begun = tokio::time::timeout(Duration::ZERO, reading).await;
    assert!(begun.is_err());
    let row = connections.fetch_all(statement("select 1")).await;
    assert_eq!(row.unwrap().len(), 1);
}

#[tokio::test]
async fn a_statement_that_is_given_up_ends_in_the_server_too() {
    let wait_max = Duration::from_secs(2);
    let Some((url, connections)) = one_connection_to_postgres(wait_max).await else {
        return;
    };
    let given_up = connections.fetch_all(statement("select pg_sleep(600)"));
    assert!(may_answer_later(&given_up.await));
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
    panic!("it goes on");
}

#[tokio::test]
async fn how_long_the_server_hears_nothing_of_a_transaction_has_a_limit() {
    let Some((_, connections)) = one_connection_to_postgres(LONG).await else {
        return;
    };
    let mut transaction =
        Transaction::begin(connections.lend().await.unwrap(), Isolation::Serializable)
            .await
            .unwrap();
    let setting = "select current_setting('idle_in_transaction_session_timeout') as setting";
    let row = transaction.fetch_one(statement(setting)).await.unwrap();
    let setting: String = column!(row, "pg_settings", "setting").unwrap();
    assert_eq!(setting, "10s");
}

/// What all has that must succeed.
const LONG: Duration = Duration::from_mins(10);

const ATTEMPTS_MAX: usize = 100;
