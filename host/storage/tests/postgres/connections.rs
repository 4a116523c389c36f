//! Connections: failover, replacement, verification and read-only access.

use std::{fs, path::Path, sync::Arc, time::Duration};

use keywright_core::{
    Secret,
    credential::LookupName,
    ports::{AppendCondition, CredentialRepository, PermissionRepository, RepositoryFailure},
};
use keywright_storage::{Database, DatabaseUnusable, PostgresOptions};
use keywright_test_postgres::PostgresServer;
use uuid::Uuid;

use crate::{
    RandomIdentifiers, open,
    storage::support::{Fixture, key, postgres_options, server, version},
    url,
};

#[tokio::test]
async fn a_server_that_returns_after_an_outage_is_used_again() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let options = postgres_options(&server.new_database());
    let database = open(options.clone()).await.unwrap();
    let credentials = database.credentials();
    let keys = database.encryption_keys();
    let is_added = keys
        .add(&key(Uuid::nil(), 1), &std::collections::HashSet::new())
        .await;
    assert!(is_added.unwrap());
    credentials.ping().await.unwrap();
    server.stop();
    for _ in 0..5 {
        let outcome = credentials.ping().await;
        let is_unavailable = matches!(outcome, Err(RepositoryFailure::Unavailable(_)));
        assert!(is_unavailable, "{outcome:?}");
        let outcome = credentials.delete(&LookupName::new("/a")).await;
        let is_unavailable = matches!(outcome, Err(RepositoryFailure::Unavailable(_)));
        assert!(is_unavailable, "{outcome:?}");
    }
    let Err(refused) = open(options).await else {
        panic!("opened")
    };
    assert!(matches!(refused, DatabaseUnusable::ServerNotReached { .. }));
    server.start_again();
    credentials.ping().await.unwrap();
    let deleted = credentials.delete(&LookupName::new("/a")).await.unwrap();
    assert_eq!(deleted, None);
    let keys = database.encryption_keys().all().await.unwrap();
    assert_eq!(keys.len(), 1);
}

#[tokio::test]
async fn connections_that_the_server_cut_are_replaced() {
    let fixture = Fixture::new().await;
    let url = url(&fixture);
    fixture.append("/a", "value", 1).await;
    server().run_at(&url, CUT);
    // Each connection that was cut may fail one request.
    let ping = async || fixture.credentials.ping().await;
    let failures = failures_before_success(ping).await;
    assert!(failures <= 2, "{failures}");
    let delete = async || fixture.credentials.delete(&LookupName::new("/a")).await;
    let failures = failures_before_success(delete).await;
    assert!(failures <= 4, "{failures}");
}

#[tokio::test]
async fn a_refused_write_replaces_all_older_connections() {
    let fixture = Fixture::new().await;
    let url = url(&fixture);
    let delete = || async { fixture.credentials.delete(&LookupName::new("/a")).await };
    let name = server().run_at(&url, "select current_database()");
    let elsewhere = server().new_database();
    let set = |rest: &str| server().run_at(&elsewhere, &format!("alter database {name} {rest}"));
    // Like connections to a server that became a standby.
    set("set default_transaction_read_only = on");
    server().run_at(&url, CUT);
    failures_before_success(async || fixture.credentials.ping().await).await;
    let refused = delete().await;
    assert!(matches!(refused, Err(RepositoryFailure::Unavailable(_))));
    let before = server().run_at(&url, PROCESSES);
    set("reset default_transaction_read_only");
    failures_before_success(delete).await;
    fixture.credentials.ping().await.unwrap();
    assert!(!before.is_empty());
    let mut after = String::new();
    // A process of the database ends shortly after its connection.
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
    let options = fixture.place.options();
    let reading = Database::open_to_read(&options, Arc::new(RandomIdentifiers)).await;
    let reading = reading.unwrap();
    let new = version(&fixture, "/a", "value", 1);
    let written = reading.credentials();
    let written = written.append(new, AppendCondition::Always, &[]).await;
    assert!(written.is_err(), "{written:?}");
    let deleted = reading.permissions();
    // Nor by a single statement.
    let deleted = deleted.delete(Uuid::nil()).await;
    assert!(deleted.is_err(), "{deleted:?}");
    assert!(fixture.all("/a").await.is_empty());
}

#[tokio::test]
async fn an_error_at_the_start_never_repeats_the_password() {
    let options = PostgresOptions {
        password: Some(Secret::new("hunter2".to_owned())),
        wait_max: Duration::from_millis(200),
        ..postgres_options("postgres://keywright@127.0.0.1:1/keywright?sslmode=disable")
    };
    let Err(refused) = open(options).await else {
        panic!("opened")
    };
    let shown = format!("{refused:?} {refused}");
    assert!(shown.contains("keywright on 127.0.0.1:1"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
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
            let said = format!("{refused:?}");
            assert!(!said.contains("hunter"), "{said}");
            assert!(matches!(refused, DatabaseUnusable::ServerNotReached { .. }));
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

/// Returns the number of requests that fail before one succeeds.
async fn failures_before_success<T>(
    request: impl AsyncFn() -> Result<T, RepositoryFailure>,
) -> usize {
    for failures in 0..100 {
        if request().await.is_ok() {
            return failures;
        }
    }
    panic!("no request succeeded")
}

/// How long to wait for the end of a process, in hundredths of a second: ten minutes.
const PROCESS_POLLS_MAX: usize = 60_000;

/// The processes of connections to a database.
const PROCESSES: &str = "select pid from pg_stat_activity
    where application_name = 'keywright' and datname = current_database()";

/// Terminates those processes.
const CUT: &str = "select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'keywright' and datname = current_database()";
