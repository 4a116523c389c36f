//! Tests the storage on PostgreSQL, also with several servers on one database.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "these are tests; helper functions outside of #[test] count as production code for the lints"
)]

mod storage;

use std::{collections::HashSet, error::Error as _, fs, path::Path, sync::Arc, time::Duration};

use keywright_core::{
    Secret,
    credential::{CredentialName, Find, FindNames, LookupName},
    ports::{
        Additions, AllAppended, AppendCondition, Appended, CheckRepository, CredentialRepository,
        Deleted, Identifiers, NewVersion, PermissionRepository, ReadVersions, RepositoryError,
        VersionSelection,
    },
};
use keywright_storage::{Database, DatabaseOpenError, DatabaseOptions, PostgresOptions};
use keywright_test_postgres::PostgresServer;
use sqlx::{Connection, Executor, PgConnection};
use uuid::Uuid;

use crate::support::{Fixture, Location, postgres_options, reader, server, version};
use storage::support;

#[tokio::test]
async fn a_migration_reports_the_lock_of_an_idle_session() {
    let fixture = Fixture::new().await;
    let url = url(&fixture);
    server().run_at(
        &url,
        "drop index credential_version_authority; delete from _sqlx_migrations where version = 14",
    );
    let mut idle = PgConnection::connect(&url).await.unwrap();
    // Without a limit, the migration succeeds when the session ends.
    idle.execute("set idle_in_transaction_session_timeout = '30s'; begin")
        .await
        .unwrap();
    idle.execute("lock table credential_version in row exclusive mode")
        .await
        .unwrap();
    let options = || PostgresOptions {
        wait_max: Duration::from_millis(200),
        ..postgres_options(&url)
    };
    let cause = cause_of_refusal(options()).await;
    assert!(cause.contains("another session has locked"), "{cause}");
    idle.execute("rollback").await.unwrap();
    open(postgres_options(&url)).await.unwrap();
}

#[tokio::test]
async fn sessions_outlast_the_time_limits_of_the_database() {
    let Some(server) = keywright_test_postgres::shared() else {
        return;
    };
    let url = server.new_database();
    let mut other = PgConnection::connect(&url).await.unwrap();
    let lock = "begin; select pg_advisory_xact_lock(4920571836402817)";
    other.execute(lock).await.unwrap();
    // Only PostgreSQL 17 and later have a transaction_timeout.
    let limits = "do $$ declare limited text; begin
        for limited in select name from pg_settings where name in
            ('statement_timeout', 'lock_timeout', 'idle_session_timeout', 'transaction_timeout')
        loop
            execute format('alter database %I set %I = 500', current_database(), limited);
        end loop;
    end $$";
    server.run_at(&url, limits);
    let unlocking = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        other.execute("rollback").await
    };
    let (opened, unlocked) = tokio::join!(open(postgres_options(&url)), unlocking);
    unlocked.unwrap();
    let opened = opened.unwrap();
    tokio::time::sleep(Duration::from_millis(700)).await;
    opened.encryption_keys().await.unwrap();
}

#[tokio::test]
async fn commits_are_synchronous_despite_a_default_of_the_database() {
    let fixture = Fixture::new().await;
    let check = "alter table credential add check (current_setting('synchronous_commit') = 'on')";
    fixture.change(check).await;
    change_default(&fixture, "set synchronous_commit = off");
    let database = open(postgres_options(&url(&fixture))).await.unwrap();
    let new = version(&fixture, "/a", "value", 1);
    let appending = database.append(new, AppendCondition::Always, &[]);
    appending.await.unwrap();
}

#[tokio::test]
async fn a_policy_that_hides_rows_fails_reads() {
    let fixture = Fixture::new().await;
    let role =
        "create role restricted login; grant select on all tables in schema public to restricted";
    fixture.change(role).await;
    let url = url(&fixture).replace("user=keywright", "user=restricted");
    let restricted = open(postgres_options(&url)).await.unwrap();
    restricted.encryption_keys().await.unwrap();
    let policy = "alter table encryption_key enable row level security";
    fixture.change(policy).await;
    restricted.encryption_keys().await.unwrap_err();
}

#[tokio::test]
async fn a_session_without_the_required_settings_is_refused() {
    let fixture = Fixture::new().await;
    let change = "revoke select on pg_settings from public; create role other login";
    fixture.change(change).await;
    let url = url(&fixture).replace("user=keywright", "user=other");
    let cause = cause_of_refusal(postgres_options(&url)).await;
    assert!(cause.contains("permission denied"), "{cause}");
}

#[tokio::test]
async fn a_schema_that_hides_the_tables_or_is_open_is_refused() {
    let fixture = Fixture::new().await;
    let url = url(&fixture);
    // The default search path begins with the schema that has the name of the user.
    server().run_at(&url, "create schema keywright");
    let cause = cause_of_refusal(postgres_options(&url)).await;
    let expected = "its tables are in the schema public";
    assert!(cause.starts_with(expected), "{cause}");
    let tables = "select from pg_tables where schemaname = 'keywright'";
    assert_eq!(server().run_at(&url, tables), "");
    server().run_at(&url, "drop schema keywright");
    open(postgres_options(&url)).await.unwrap();
    // What another role may have created must not run.
    let planted = "grant create on schema public to public;
        create function has_schema_privilege(text, text, text) returns boolean language sql as 'select false';
        create function run(oid, regclass) returns boolean language plpgsql as $$ begin raise 'planted'; end $$;
        create operator = (leftarg = oid, rightarg = regclass, function = run)";
    server().run_at(&url, planted);
    let cause = cause_of_refusal(postgres_options(&url)).await;
    assert!(cause.starts_with("every role may create"), "{cause}");
    let reading = Database::open_to_read(&fixture.location.options()).await;
    assert!(reading.is_err());
}

#[tokio::test]
async fn a_new_database_without_all_characters_is_refused() {
    let Some(server) = keywright_test_postgres::shared() else {
        return;
    };
    let url = server.new_database();
    let latin =
        "create database latin encoding 'LATIN1' template template0 lc_collate 'C' lc_ctype 'C'";
    server.run_at(&url, latin);
    let (_, parameters) = url.split_once('?').unwrap();
    let options = postgres_options(&format!("postgres:///latin?{parameters}"));
    let cause = cause_of_refusal(options).await;
    assert!(cause.starts_with("its encoding is LATIN1"), "{cause}");
}

#[tokio::test]
async fn a_database_whose_sessions_disable_triggers_is_refused() {
    let fixture = Fixture::new().await;
    let url = url(&fixture);
    change_default(&fixture, "set session_replication_role = replica");
    let cause = cause_of_refusal(postgres_options(&url)).await;
    assert!(cause.starts_with("session_replication_role"), "{cause}");
    // Connections opened after the change must not write either.
    server().run_at(&url, TERMINATE);
    let append = async || {
        let new = version(&fixture, "/a", "value", 1);
        let appended = fixture.database.append(new, AppendCondition::Always, &[]);
        appended.await.is_ok()
    };
    assert!(!append().await && !append().await && !append().await);
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
    let newest = fixture.database.newest_by_names(&reader(), &[newest]).await;
    assert_eq!(newest.unwrap()[0].id, read[0]);
    let last = "select v.id from credential_version v order by v.xmin::text::bigint desc limit 1";
    let url = url(&fixture);
    assert_eq!(server().run_at(&url, last), read[0].to_string());
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
                    versions: Vec::new(),
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
    let found = fixture
        .database
        .newest_by_names(&reader(), &names)
        .await
        .unwrap();
    assert_eq!(found.iter().map(|one| one.id).collect::<Vec<_>>(), [id]);
    let name = CredentialName::from_stored("/a\0".to_owned());
    let deleted = CredentialRepository::delete(&fixture.database, &name).await;
    assert_eq!(deleted.unwrap(), Deleted::Nothing);
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

// ---- Conflicts with other transactions -------------------------------------------------------------------------------

#[tokio::test]
async fn a_locked_credential_delays_no_other() {
    let fixture = Fixture::new().await;
    let locked = ["value", "certificate"];
    for locked in locked {
        fixture.append(&format!("/{locked}"), locked, 1).await;
    }
    let mut other = PgConnection::connect(&url(&fixture)).await.unwrap();
    let lock = "begin; select from credential for update";
    other.execute(lock).await.unwrap();
    let append = |name: &str, credential_type: &str| {
        let (credentials, new) = (
            fixture.database.clone(),
            version(&fixture, name, credential_type, 1),
        );
        tokio::spawn(async move {
            let appended = credentials.append(new, AppendCondition::Always, &[]);
            matches!(appended.await.unwrap(), Appended::Written(_))
        })
    };
    // More appends than there are connections that write.
    let delayed: Vec<_> = (0..12)
        .map(|number| locked[number % 2])
        .map(|locked| append(&format!("/{locked}"), locked))
        .collect();
    let others: Vec<_> = (0..30)
        .map(|number| append(&format!("/{number}"), "value"))
        .collect();
    for other in others {
        assert!(other.await.unwrap());
    }
    assert!(delayed.iter().all(|locked| !locked.is_finished()));
    other.execute("rollback").await.unwrap();
    for locked in delayed {
        assert!(locked.await.unwrap());
    }
}

#[tokio::test]
async fn a_damaged_credential_does_not_fail_the_rest_of_its_batch() {
    let fixture = Fixture::new().await;
    fixture.append("/damaged", "value", 1).await;
    fixture
        .change("update credential set credential_type = 'no type'")
        .await;
    let new = version(&fixture, "/damaged", "value", 1);
    let appended = fixture.database.append(new, AppendCondition::Always, &[]);
    // If the whole batch failed, the error would be `Unavailable`.
    let failure = appended.await.unwrap_err();
    assert!(
        matches!(failure, RepositoryError::Inconsistent(_)),
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_read_that_conflicts_with_writes_is_retried() {
    let fixture = Fixture::new().await;
    fixture
        .change(
            "create sequence read_count;
             create function read_succeeds() returns boolean language plpgsql as $$ begin
                 if nextval('read_count') < 3 then
                     raise exception 'another transaction writes' using errcode = '40001';
                 end if;
                 return true;
             end $$;
             alter table encryption_key rename to stored_encryption_key;
             create view encryption_key as select * from stored_encryption_key where read_succeeds()",
        )
        .await;
    assert_eq!(fixture.database.encryption_keys().await.unwrap().len(), 1);
    assert_eq!(fixture.count("select last_value from read_count").await, 3);
    assert_eq!(fixture.database.transactions_retried(), 2);
}

#[tokio::test]
async fn a_version_with_a_lower_sequence_than_earlier_ones_is_retried() {
    let fixture = Fixture::new().await;
    fixture.change(&sequences_after(100)).await;
    let before = fixture.append("/a", "value", 1).await;
    // Simulates connections that cache sequences: the next sequences are 92, 97 and 102.
    fixture
        .change("alter table credential_version alter column sequence set increment by 5")
        .await;
    fixture.change(&sequences_after(87)).await;
    let after = fixture.append("/a", "value", 1).await;
    let versions = fixture.all("/a").await;
    let found: Vec<_> = versions.iter().map(|one| (one.id, one.sequence)).collect();
    assert_eq!(found, [(after, 102), (before, 101)]);
    assert_eq!(fixture.database.transactions_retried(), 2);
    // Without an earlier version, any sequence is accepted.
    fixture.change(&sequences_after(7)).await;
    fixture.append("/b", "value", 1).await;
    assert_eq!(fixture.all("/b").await[0].sequence, 12);
}

#[tokio::test]
async fn a_check_reports_late_sequences_but_not_quoted_identifiers() {
    let fixture = Fixture::new().await;
    fixture.append("/a", "value", 1).await;
    change_default(&fixture, "set quote_all_identifiers = on");
    let database = open(postgres_options(&url(&fixture))).await.unwrap();
    let none = Vec::<String>::new();
    assert_eq!(database.schema_differences().await.unwrap(), none);
    assert_eq!(database.damage().await.unwrap(), none);
    fixture
        .change("alter table credential_version alter column sequence restart")
        .await;
    let damage = database.damage().await.unwrap();
    assert!(damage[0].contains("table credential_version is behind its rows"));
    assert_eq!(damage.len(), 1, "{damage:?}");
    let unreadable = "alter function pg_sequence_last_value(regclass) rename to no_value";
    server().run_at(&url(&fixture), unreadable);
    fixture.database.damage().await.unwrap_err();
}

// ---- Connections: failover, replacement, verification and read-only access ------------------------------------------

#[tokio::test]
async fn a_refused_write_replaces_all_older_connections() {
    let fixture = Fixture::new().await;
    let url = url(&fixture);
    let credential = CredentialName::from_stored("/a".to_owned());
    let delete = || async { CredentialRepository::delete(&fixture.database, &credential).await };
    // Simulates connections to a server that became a standby.
    change_default(&fixture, "set default_transaction_read_only = on");
    server().run_at(&url, TERMINATE);
    // Each terminated connection may fail one request.
    let failures = failures_before_success(async || fixture.database.ping().await).await;
    assert!(failures <= 2, "{failures}");
    let refused = delete().await;
    assert!(matches!(refused, Err(RepositoryError::Unavailable(_))));
    let before = server().run_at(&url, PROCESSES);
    change_default(&fixture, "reset default_transaction_read_only");
    let failures = failures_before_success(delete).await;
    assert!(failures <= 4, "{failures}");
    fixture.database.ping().await.unwrap();
    assert!(!before.is_empty());
    let mut after = String::new();
    // A server process exits shortly after its connection is closed.
    for _ in 0..PROCESS_POLLS_MAX {
        after = server().run_at(&url, PROCESSES);
        if before
            .lines()
            .all(|process| after.lines().all(|other| other != process))
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{before} stayed: {after}");
}

#[tokio::test]
async fn a_database_opened_read_only_refuses_writes() {
    let fixture = Fixture::new().await;
    let options = fixture.location.options();
    let reading = Database::open_to_read(&options).await;
    let reading = reading.unwrap();
    let new = version(&fixture, "/a", "value", 1);
    let written = reading.append(new, AppendCondition::Always, &[]).await;
    assert!(written.is_err(), "{written:?}");
    // A write by a single statement is also refused.
    let deleted = PermissionRepository::delete(&reading, Uuid::nil()).await;
    assert!(deleted.is_err(), "{deleted:?}");
    assert!(fixture.all("/a").await.is_empty());
}

#[tokio::test]
async fn opening_to_read_makes_no_session_read_only() {
    let fixture = Fixture::new().await;
    fixture.append("/a", "value", 1).await;
    server().run_at(
        &url(&fixture),
        "alter table credential rename to stored;
         create view credential as select * from stored
             where current_setting('default_transaction_read_only') = 'off'",
    );
    let options = fixture.location.options();
    let reading = Database::open_to_read(&options).await;
    let stored = reading.unwrap().stored_name(&LookupName::new("/a")).await;
    assert!(stored.unwrap().is_some());
}

#[tokio::test]
async fn passwords_are_only_sent_to_a_verified_server() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let file = |name: &str| {
        let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/keys");
        keys.join(name)
    };
    let [certificate, key] =
        ["server.pem", "server-key.pem"].map(|name| fs::read_to_string(file(name)).unwrap());
    let url = server.start_with_tls(&certificate, &key, "hunter2");
    let is_open = async |parameters: &str, password: Option<&str>, has_authority: bool| {
        let options = PostgresOptions {
            password: password.map(|password| Secret::new(password.to_owned())),
            root_certificate: has_authority.then(|| file("ca.pem")),
            ..postgres_options(&format!("{url}{parameters}"))
        };
        let opened = open(options).await;
        if let Err(refused) = &opened {
            let message = format!("{refused:?}");
            assert!(!message.contains("hunter"), "{message}");
            assert!(matches!(
                refused,
                DatabaseOpenError::ConnectionRefused { .. }
                    | DatabaseOpenError::ServerNotReached { .. }
            ));
        }
        opened.is_ok()
    };
    assert!(is_open("", Some("hunter2"), true).await);
    assert!(is_open("?sslmode=require", Some("hunter2"), false).await);
    assert!(!is_open("", Some("hunter2"), false).await);
    assert!(!is_open("", Some("hunter3"), true).await);
    assert!(!is_open("", None, true).await);
    assert!(!is_open("?sslmode=disable", Some("hunter2"), false).await);
    assert!(is_open("?sslmode=require", Some("hunter2"), true).await);
}

struct RandomIdentifiers;

impl Identifiers for RandomIdentifiers {
    fn fresh(&self) -> Uuid {
        Uuid::new_v4()
    }
}

async fn open(options: PostgresOptions) -> Result<Database, DatabaseOpenError> {
    let options = DatabaseOptions::Postgres(options);
    Database::open(&options, Arc::new(RandomIdentifiers)).await
}

/// Opens the fixture's database three times, as three servers do.
async fn servers(fixture: &Fixture) -> Vec<Database> {
    let url = url(fixture);
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(open(postgres_options(&url)).await.unwrap());
    }
    servers
}

/// Appends `count` versions concurrently on the servers, and returns the ids of the written versions.
async fn append_at_once(
    servers: &[Database],
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

async fn cause_of_refusal(options: PostgresOptions) -> String {
    let refused = open(options).await.err().unwrap();
    refused.source().unwrap().to_string()
}

fn url(fixture: &Fixture) -> String {
    match &fixture.location {
        Location::File(folder) => panic!("{} is not a server", folder.path().display()),
        Location::Server { url } => url.clone(),
    }
}

/// Changes a default of new sessions.
fn change_default(fixture: &Fixture, change: &str) {
    let name = server().run_at(&url(fixture), "select current_database()");
    let change = format!("alter database {name} {change}");
    server().run_at("postgres:///postgres", &change);
}

fn sequences_after(last: i64) -> String {
    format!("select setval(pg_get_serial_sequence('credential_version', 'sequence'), {last})")
}

/// Returns the number of requests that fail before one succeeds.
async fn failures_before_success<T>(
    request: impl AsyncFn() -> Result<T, RepositoryError>,
) -> usize {
    for failures in 0..100 {
        if request().await.is_ok() {
            return failures;
        }
    }
    panic!("no request succeeded")
}

/// The maximum number of polls for the exit of a process. At one poll per 10 ms, they take ten minutes.
const PROCESS_POLLS_MAX: usize = 60_000;

/// Selects the server processes of this program's connections to the current database.
const PROCESSES: &str = "select pid from pg_stat_activity
    where application_name = 'keywright' and datname = current_database()";

/// Terminates the processes that [`PROCESSES`] selects.
const TERMINATE: &str = "select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'keywright' and datname = current_database()";
