//! The storage on SQLite.
#![expect(
    clippy::panic,
    reason = "these are tests; helper functions outside of #[test] count as production code for the lints"
)]

mod storage;

use std::os::unix::fs::PermissionsExt;

use keywright_core::{
    credential::LookupName,
    ports::{AppendCondition, Appended, CredentialRepository, RepositoryFailure},
};
use tempfile::TempDir;

use crate::support::{Fixture, Place, other_connection, version};
use storage::support;

#[tokio::test]
async fn the_files_are_their_owners_alone() {
    let fixture = Fixture::new().await;
    fixture.append("/a", "value", 1).await;
    let folder = folder(&fixture);
    for name in ["test.sqlite", "test.sqlite-wal", "test.sqlite-shm"] {
        let mode = std::fs::metadata(folder.path().join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_database_that_another_process_locks_is_unavailable_and_comes_back() {
    let fixture = Fixture::new().await;
    let mut other = other_connection(folder(&fixture)).await;
    sqlx::raw_sql("begin immediate")
        .execute(&mut other)
        .await
        .unwrap();
    let blocked = version(&fixture, "/a", "value", 1);
    let outcome = fixture
        .credentials
        .append(blocked.clone(), AppendCondition::Always, &[])
        .await;
    assert!(
        matches!(outcome, Err(RepositoryFailure::Unavailable(_))),
        "{outcome:?}"
    );
    assert!(fixture.all("/a").await.is_empty());
    fixture.credentials.ping().await.unwrap();
    sqlx::raw_sql("rollback").execute(&mut other).await.unwrap();
    let outcome = fixture
        .credentials
        .append(blocked, AppendCondition::Always, &[])
        .await
        .unwrap();
    assert!(matches!(outcome, Appended::Written(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_was_acknowledged_is_in_the_files_whatever_becomes_of_the_process() {
    let fixture = Fixture::new().await;
    let writing = (0..30).map(|number| {
        let new = version(&fixture, &format!("/a/{number}"), "value", 1);
        let credentials = fixture.credentials.clone();
        tokio::spawn(async move {
            let written = credentials.append(new, AppendCondition::Always, &[]).await;
            assert!(matches!(written, Ok(Appended::Written(_))));
        })
    });
    let mut acknowledged = 0;
    for writing in writing.collect::<Vec<_>>() {
        writing.await.unwrap();
        acknowledged += 1;
        // As after a crash: the database and its log, without what another process shares in memory.
        let copied = tempfile::tempdir().unwrap();
        for name in ["test.sqlite", "test.sqlite-wal"] {
            let copy = copied.path().join(name);
            std::fs::copy(folder(&fixture).path().join(name), copy).unwrap();
        }
        let copied = Fixture::open(Place::File(copied)).await;
        let there = copied.count("select count(*) from credential").await;
        assert!(there >= acknowledged, "{there} of {acknowledged}");
        let ok = copied
            .count("select count(*) from pragma_integrity_check where integrity_check = 'ok'");
        assert_eq!(ok.await, 1);
    }
}

#[tokio::test]
async fn what_is_deleted_leaves_no_trigrams() {
    let fixture = Fixture::new().await;
    for (name, milliseconds) in [("/gone/name", 1), ("/stays/name", 2)] {
        fixture.append(name, "value", milliseconds).await;
    }
    let gone = LookupName::new("/gone/name");
    fixture.credentials.delete(&gone).await.unwrap();
    for (sql, count) in [
        (
            "select count(*) from credential_name where credential_name match 'name'",
            1,
        ),
        (
            "select count(*) from credential_name where credential_name match 'gone'",
            0,
        ),
    ] {
        assert_eq!(fixture.count(sql).await, count, "{sql}");
    }
}

fn folder(fixture: &Fixture) -> &TempDir {
    match &fixture.place {
        Place::File(folder) => folder,
        Place::Server { url } => panic!("{url} is no file"),
    }
}
