//! The storage on PostgreSQL, with several servers on one database.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "these are tests; helper functions outside of #[test] count as production code for the lints"
)]

mod conflicts;
mod connections;
#[path = "../storage/mod.rs"]
mod storage;

use std::{collections::HashSet, fs, path::Path, sync::Arc};

use keywright_core::{
    credential::{Find, FindNames, LookupName},
    ports::{
        Additions, AllAppended, AppendCondition, Appended, CredentialRepository, Identifiers,
        NewVersion, ReadVersions, VersionSelection,
    },
};
use keywright_storage::{
    Database, DatabaseOptions, DatabaseUnusable, PostgresOptions, SqlCredentialRepository,
};
use uuid::Uuid;

use crate::support::{Fixture, Place, postgres_options, server, version};
use storage::support;

#[tokio::test]
async fn servers_that_start_concurrently_migrate_the_schema_once() {
    let Some(server) = keywright_test_postgres::shared() else {
        return;
    };
    let url = server.new_database();
    let start = || open(postgres_options(&url));
    let (one, two, three, four) = tokio::join!(start(), start(), start(), start());
    for opened in [one, two, three, four] {
        opened.unwrap();
    }
    let applied = server.run_at(&url, "select count(*) from _sqlx_migrations");
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations/postgres");
    let migrations = fs::read_dir(migrations).unwrap().count();
    assert_eq!(applied, migrations.to_string());
}

#[tokio::test]
async fn a_database_without_advisory_locks_is_migrated() {
    let Some(server) = keywright_test_postgres::shared() else {
        return;
    };
    let url = server.new_database();
    server.run_at(
        &url,
        "alter function pg_catalog.pg_advisory_xact_lock(bigint) rename to no_lock",
    );
    let database = open(postgres_options(&url)).await.unwrap();
    database.credentials().ping().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_writers_on_several_servers_adds_a_new_name() {
    let fixture = Fixture::new().await;
    let servers = servers(&fixture).await;
    for round in 0..5 {
        let name = format!("/new/{round}");
        let written = append_at_once(&servers, 12, || {
            let new = version(&fixture, &name, "password", 1);
            (new, AppendCondition::NewestIs(None))
        })
        .await;
        assert_eq!((written.len(), fixture.all(&name).await.len()), (1, 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_newest_version_is_the_last_one_committed() {
    let fixture = Fixture::new().await;
    let servers = servers(&fixture).await;
    let written = append_at_once(&servers, 30, || {
        let new = version(&fixture, "/a", "password", 1);
        (new, AppendCondition::Always)
    })
    .await;
    let read: Vec<Uuid> = fixture.all("/a").await.iter().map(|one| one.id).collect();
    assert_eq!(read.len(), 30);
    assert_eq!(HashSet::from_iter(read.clone()), written);
    let newest = LookupName::new("/a");
    let newest = fixture.credentials.newest_by_names(&[newest]).await;
    assert_eq!(newest.unwrap()[0].id, read[0]);
    let last = "select v.id from credential_version v order by v.xmin::text::bigint desc limit 1";
    let url = url(&fixture);
    assert_eq!(server().run_at(&url, last), read[0].to_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_servers_add_only_one_transitional_version() {
    let fixture = Fixture::new().await;
    let servers = servers(&fixture).await;
    fixture.append("/c", "certificate", 1).await;
    let written = append_at_once(&servers, 12, || {
        let new = version(&fixture, "/c", "certificate", 2);
        let is_transitional = true;
        (
            NewVersion {
                is_transitional,
                ..new
            },
            AppendCondition::Always,
        )
    })
    .await;
    assert_eq!((written.len(), fixture.all("/c").await.len()), (1, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_two_mutually_exclusive_changes_is_written() {
    let fixture = Fixture::new().await;
    let servers = servers(&fixture).await;
    for round in 0..20 {
        let names = [format!("/left/{round}"), format!("/right/{round}")];
        let change = |own: usize| {
            let additions = Additions {
                versions: vec![(
                    version(&fixture, &names[own], "certificate", 1),
                    AppendCondition::NewestIs(None),
                )],
                unchanged: vec![ReadVersions {
                    name: LookupName::new(&names[1 - own]),
                    selection: VersionSelection::Current,
                    ids: Vec::new(),
                }],
                signed: Vec::new(),
            };
            let credentials = servers[own].clone();
            tokio::spawn(async move { credentials.append_all(additions).await.unwrap() })
        };
        let (left, right) = (change(0), change(1));
        let is_made = [left.await.unwrap(), right.await.unwrap()]
            .map(|outcome| matches!(outcome, AllAppended::Written(_)));
        assert!(is_made[0] != is_made[1], "round {round}: {is_made:?}");
    }
}

#[tokio::test]
async fn a_name_with_a_null_character_finds_nothing() {
    let fixture = Fixture::new().await;
    let id = fixture.append("/a", "value", 1).await;
    assert!(fixture.all("/a\0").await.is_empty());
    let names = ["/a\0", "/a"].map(LookupName::new);
    let found = fixture.credentials.newest_by_names(&names).await.unwrap();
    assert_eq!(found.iter().map(|one| one.id).collect::<Vec<_>>(), [id]);
    let deleted = fixture.credentials.delete(&LookupName::new("/a\0")).await;
    assert_eq!(deleted.unwrap(), None);
}

#[tokio::test]
async fn a_search_finds_names_whose_parts_are_all_punctuation() {
    let fixture = Fixture::new().await;
    for name in ["/a-_./b", "/a-./b", "/x(y", "/xzy"] {
        fixture.append(name, "value", 1).await;
    }
    for (text, expected) in [
        ("-_.", vec!["/a-_./b"]),
        ("(", vec!["/x(y"]),
        ("_", vec!["/a-_./b"]),
        ("%", vec![]),
        ("./", vec!["/a-./b", "/a-_./b"]),
    ] {
        let find = Find {
            names: FindNames::containing(text),
            expires_until: None,
        };
        let found = fixture.find(&find).await.unwrap();
        let names: Vec<_> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, expected, "{text}");
    }
}

struct RandomIdentifiers;

impl Identifiers for RandomIdentifiers {
    fn fresh(&self) -> Uuid {
        Uuid::new_v4()
    }
}

async fn open(options: PostgresOptions) -> Result<Database, DatabaseUnusable> {
    let options = DatabaseOptions::Postgres(options);
    Database::open(&options, Arc::new(RandomIdentifiers)).await
}

/// Opens three servers on the fixture's database.
async fn servers(fixture: &Fixture) -> Vec<SqlCredentialRepository> {
    let url = url(fixture);
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(open(postgres_options(&url)).await.unwrap().credentials());
    }
    servers
}

/// Appends this many versions concurrently on the servers, and returns the ids of the written ones.
async fn append_at_once(
    servers: &[SqlCredentialRepository],
    count: usize,
    make: impl Fn() -> (NewVersion, AppendCondition),
) -> HashSet<Uuid> {
    let writers: Vec<_> = servers
        .iter()
        .cycle()
        .take(count)
        .map(|server| {
            let (new, condition) = make();
            let server = server.clone();
            tokio::spawn(async move { server.append(new, condition, &[]).await.unwrap() })
        })
        .collect();
    let mut written = HashSet::new();
    for writer in writers {
        if let Appended::Written(version) = writer.await.unwrap() {
            written.insert(version.id);
        }
    }
    written
}

fn url(fixture: &Fixture) -> String {
    match &fixture.place {
        Place::File(folder) => panic!("{} is not a server", folder.path().display()),
        Place::Server { url } => url.clone(),
    }
}
