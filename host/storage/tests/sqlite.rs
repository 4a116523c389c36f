//! The storage on SQLite.
#![expect(
    clippy::panic,
    reason = "these are tests; helper functions outside of #[test] count as production code for the lints"
)]

mod storage;

use std::{
    os::unix::fs::{PermissionsExt, symlink},
    process::Command,
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use futures_util::future::join_all;
use keywright_core::{
    permission::{Actor, Grant, Operation, Operations, PermissionPath},
    ports::{
        AppendCondition, Appended, CheckRepository, CredentialRepository, PermissionRepository,
        RepositoryError, SequenceRange,
    },
};
use keywright_storage::{Database, DatabaseOptions};
use tempfile::TempDir;
use tokio::{runtime::Runtime, time::timeout};

use crate::support::{CountingIdentifiers, Fixture, Location, other_connection, version};
use storage::support;

#[tokio::test]
async fn only_the_owner_may_access_the_files() {
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
async fn the_marker_is_not_created_through_a_link() {
    let location = Location::new();
    if let Location::File(folder) = &location {
        symlink("target", folder.path().join("test.sqlite.created")).unwrap();
    }
    let fixture = Fixture::open(location).await;
    assert!(!folder(&fixture).path().join("target").exists());
}

#[tokio::test]
async fn closing_a_database_is_not_mistaken_for_moving_its_files() {
    let fixture = Fixture::new().await;
    fixture.append("/a", "value", 1).await;
    fixture.database.close().await;
    let folder = folder(&fixture);
    assert!(!folder.path().join("test.sqlite-wal").exists());
    // Longer than the interval of the checks.
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(fixture.database.is_in_place());
}

#[tokio::test]
async fn a_named_pipe_is_not_opened_as_a_database() {
    let location = Location::new();
    let DatabaseOptions::Sqlite(options) = location.options() else {
        unreachable!("these tests are on SQLite")
    };
    let made = Command::new("mkfifo").arg(&options.path).status().unwrap();
    assert!(made.success());
    let identifiers = Arc::new(CountingIdentifiers::default());
    let opened = Database::open(&location.options(), identifiers).await;
    let error = opened.err().unwrap();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "it is not a regular file", "{error}");
}

#[test]
fn concurrent_opens_of_a_new_file_wait_for_each_other() {
    for _ in 0..64 {
        let location = Location::new();
        let options = location.options();
        let at_once = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let runtime = Runtime::new().unwrap();
                    let identifiers = Arc::new(CountingIdentifiers::default());
                    at_once.wait();
                    let opened = runtime.block_on(Database::open(&options, identifiers));
                    runtime.block_on(opened.unwrap().close());
                });
            }
        });
    }
}

#[tokio::test]
async fn a_database_is_unavailable_while_another_process_locks_it() {
    let fixture = Fixture::new().await;
    let impatient = impatient(&fixture).await;
    let mut other = other_connection(folder(&fixture)).await;
    sqlx::raw_sql("begin immediate")
        .execute(&mut other)
        .await
        .unwrap();
    let blocked = version(&fixture, "/a", "value", 1);
    let append = async || {
        let credentials = &impatient;
        let appending = credentials.append(blocked.clone(), AppendCondition::Always, &[]);
        appending.await
    };
    let outcome = append().await;
    assert!(
        matches!(outcome, Err(RepositoryError::Unavailable(_))),
        "{outcome:?}"
    );
    assert!(fixture.all("/a").await.is_empty());
    fixture.database.ping().await.unwrap();
    sqlx::raw_sql("rollback").execute(&mut other).await.unwrap();
    // On a busy machine, even waiting for an unlocked database may time out.
    for _ in 0..ATTEMPTS_MAX {
        if let Ok(outcome) = append().await {
            assert!(matches!(outcome, Appended::Written(_)));
            return;
        }
    }
    panic!("the database stays unavailable");
}

#[tokio::test]
async fn each_actor_adds_one_long_list_of_permissions_at_a_time() {
    let fixture = Fixture::new().await;
    let mut other = other_connection(folder(&fixture)).await;
    let run = sqlx::raw_sql("begin immediate");
    run.execute(&mut other).await.unwrap();
    let grant = |number: usize| Grant {
        path: PermissionPath::parse("/a").unwrap(),
        actor: Actor::client(&number.to_string()).unwrap(),
        operations: Operations::of([Operation::Read]).unwrap(),
    };
    let grants: Vec<_> = (0..9).map(grant).collect();
    let actors = ["a", "a", "a", "b"].map(|id| Actor::client(id).unwrap());
    let add = |actor| fixture.database.grant_uncovered(actor, &grants);
    let mut adding = join_all(actors.iter().map(add));
    let added = timeout(Duration::from_millis(50), &mut adding).await;
    assert!(added.is_err(), "{added:?}");
    assert!(fixture.database.occupancy().writer.waiting <= 2);
    sqlx::raw_sql("rollback").execute(&mut other).await.unwrap();
    let added = adding.await;
    assert_eq!(added.iter().flatten().flatten().count(), 1);
}

#[tokio::test]
async fn a_damaged_page_is_reported_and_others_are_read() {
    for filler in [0xff, 0] {
        let fixture = Fixture::new().await;
        for number in 0..60 {
            fixture.append(&format!("/{number}"), "value", 1).await;
        }
        fixture.database.close().await;
        let path = folder(&fixture).path().join("test.sqlite");
        let mut bytes = std::fs::read(&path).unwrap();
        let text = b"sealed /59";
        let position = bytes.windows(text.len()).position(|part| part == text);
        let page = position.unwrap() / PAGE_BYTES * PAGE_BYTES;
        bytes[page..page + PAGE_BYTES].fill(filler);
        std::fs::write(&path, bytes).unwrap();

        let opened = Database::open_to_read(&fixture.location.options()).await;
        let check = opened.unwrap();
        let damage = check.damage().await.unwrap();
        assert!(!damage.is_empty());
        let ends = check.ends().await.unwrap_or_default();
        assert!(ends.credentials == 60 || ends.credentials == 0);
        let range = |after, until| SequenceRange {
            after,
            until,
            count_max: 100,
        };
        let all = check.versions(range(0, 60)).await;
        assert!(matches!(all, Err(RepositoryError::Query(_))), "{all:?}");
        let first = check.versions(range(0, 1)).await.unwrap();
        assert_eq!(first.len(), 1);
        assert_eq!(check.credentials(range(0, 1)).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn words_of_a_name_that_is_too_long_are_not_compared() {
    let fixture = Fixture::new().await;
    for name in ["/long", "/short"] {
        fixture.append(name, "value", 1).await;
    }
    fixture
        .change(
            "update credential set name_folded = '/other' where name = '/short';
             update credential set name_folded = '/' || hex(zeroblob(128)) where name = '/long'",
        )
        .await;
    let wrong = fixture.database.wrongly_indexed().await.unwrap();
    assert_eq!(wrong, [2]);
}

#[tokio::test]
async fn at_most_a_hundred_wrongly_indexed_names_are_reported() {
    let fixture = Fixture::new().await;
    for number in 0..101 {
        fixture.append(&format!("/x{number}"), "value", 1).await;
    }
    fixture
        .change("update credential set name_folded = replace(name_folded, 'x', 'y')")
        .await;
    let wrong = fixture.database.wrongly_indexed().await.unwrap();
    assert_eq!(wrong.len(), 100);
}

/// Opens the database of a fixture again, with a short wait.
async fn impatient(fixture: &Fixture) -> Database {
    let options = fixture.location.options_with(Duration::from_millis(500));
    for _ in 0..ATTEMPTS_MAX {
        let identifiers = Arc::new(CountingIdentifiers::default());
        if let Ok(opened) = Database::open(&options, identifiers).await {
            return opened;
        }
    }
    panic!("could not open the database");
}

/// The maximum number of attempts at an operation that may time out on a busy machine.
const ATTEMPTS_MAX: usize = 100;

/// The size of a SQLite page.
const PAGE_BYTES: usize = 4_096;

fn folder(fixture: &Fixture) -> &TempDir {
    match &fixture.location {
        Location::File(folder) => folder,
        Location::Server { url } => panic!("{url} is not a file"),
    }
}
