//! Databases whose schema was changed by a newer server.

use keywright_core::ports::CredentialRepository;
use keywright_storage::{Database, DatabaseUnusable};
use std::{error::Error, sync::Arc};

use super::support::{CountingIdentifiers, Fixture};

/// Opens the database again, like a server at start-up.
async fn reopened(fixture: &Fixture) -> Result<Database, DatabaseUnusable> {
    let identifiers = Arc::new(CountingIdentifiers::default());
    Database::open(&fixture.place.options(), identifiers).await
}

#[tokio::test]
async fn additions_by_a_newer_server_are_accepted() {
    let fixture = Fixture::new().await;
    let id = fixture.append("/a", "value", 1).await;
    fixture
        .change(
            "create table later (a integer);
             insert into _sqlx_migrations (version, description, success, checksum, execution_time)
             values (8001, 'later', true, '', 0), (8002, 'drop earlier needs 0003', true, '', 0)",
        )
        .await;
    let database = reopened(&fixture).await.unwrap();
    let credentials = database.credentials();
    credentials.ping().await.unwrap();
    let found = credentials.version_by_id(id).await.unwrap();
    assert_eq!(found.unwrap().id, id);
}

#[tokio::test]
async fn removals_by_a_newer_server_are_refused_if_still_needed() {
    let fixture = Fixture::new().await;
    fixture
        .change(
            "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
             values (8001, 'later', true, '', 0), (8002, 'drop salt needs 8001', true, '', 0)",
        )
        .await;
    let Err(refused) = reopened(&fixture).await else {
        panic!("opened")
    };
    assert!(matches!(
        refused,
        DatabaseUnusable::SchemaNotMigrated { .. }
    ));
    let mut said = refused.to_string();
    let mut cause = refused.source();
    while let Some(error) = cause {
        said = format!("{said}: {error}");
        cause = error.source();
    }
    for words in [
        "migration 8002 of the database (drop salt needs 8001)",
        "requires a server with migration 8001",
        "a newer version of the server is needed",
    ] {
        assert!(said.contains(words), "{said}");
    }
}

#[tokio::test]
async fn a_migration_that_was_changed_later_is_refused() {
    let fixture = Fixture::new().await;
    fixture
        .change("update _sqlx_migrations set checksum = '' where version = 1")
        .await;
    assert!(reopened(&fixture).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_opens_of_a_new_database_migrate_it_once() {
    let place = super::support::Place::new();
    let open = || async {
        let identifiers = Arc::new(CountingIdentifiers::default());
        Database::open(&place.options(), identifiers).await
    };
    let (one, two, three, four) = tokio::join!(open(), open(), open(), open());
    for opened in [one, two, three, four] {
        opened.unwrap();
    }
    let fixture = Fixture::open(place).await;
    let applied = fixture.count("select count(*) from _sqlx_migrations").await;
    let last = fixture
        .count("select max(version) from _sqlx_migrations")
        .await;
    assert_eq!(applied, last);
}
