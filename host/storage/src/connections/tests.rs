//! The pool, on SQLite.

use sqlx::sqlite::SqliteConnectOptions;
use tempfile::TempDir;

use super::*;
use crate::statement::statement;

/// At most one connection, which nobody waits for.
async fn one_connection(folder: &TempDir) -> Connections {
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("test.sqlite"))
        .create_if_missing(true);
    Connections::open(
        Target::Sqlite(Box::new(options)),
        1,
        Duration::from_millis(500),
    )
    .await
    .unwrap()
}

fn may_answer_later<T>(outcome: &Result<T, RepositoryFailure>) -> bool {
    matches!(outcome, Err(RepositoryFailure::Unavailable(_)))
}

#[tokio::test]
async fn no_more_than_the_most_are_lent_and_none_after_closing() {
    let folder = tempfile::tempdir().unwrap();
    let connections = one_connection(&folder).await;
    let lent = connections.lend().await.unwrap();
    assert!(may_answer_later(&connections.lend().await));
    drop(lent);
    connections.lend().await.unwrap();
    connections.close().await;
    assert!(may_answer_later(&connections.lend().await));
}

#[tokio::test]
async fn its_occupancy_tells_who_has_a_connection_and_who_waits() {
    let folder = tempfile::tempdir().unwrap();
    let connections = one_connection(&folder).await;
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
    let connections = one_connection(&folder).await;
    let long =
        "with recursive n (i) as (select 1 union all select i + 1 from n where i < 100000000)
                select max(i) from n";
    let reading = connections.fetch_all(statement(long));
    let begun = tokio::time::timeout(Duration::ZERO, reading).await;
    assert!(begun.is_err());
    let row = connections.fetch_all(statement("select 1")).await;
    assert_eq!(row.unwrap().len(), 1);
}
