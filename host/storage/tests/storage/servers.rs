//! Tests several servers on one database: leases, and schemas that a newer server migrated.

use std::sync::Arc;

use chrono::TimeDelta;
use keywright_core::ports::{CredentialRepository, Lease, Leases};
use keywright_storage::{Database, DatabaseOpenError};
use uuid::Uuid;

use crate::support::{CountingIdentifiers, Fixture, at};

fn lease(name: &'static str, holder: u128) -> Lease {
    Lease {
        name,
        holder: Uuid::from_u128(holder),
        time_max: TimeDelta::days(2),
    }
}

#[tokio::test]
async fn a_lease_can_be_acquired_by_another_holder_after_it_expires() {
    let fixture = Fixture::new().await;
    let leases = &fixture.database;
    let (one, two) = (lease("a", 1), lease("a", 2));
    assert!(leases.acquire(&one, at(0), at(1_000)).await.unwrap());
    for (now, may_take) in [(0, false), (999, false), (1_000, true)] {
        let taken = leases.acquire(&two, at(now), at(2_000)).await.unwrap();
        assert_eq!(taken, may_take, "{now}");
    }
    assert!(!leases.acquire(&one, at(1_000), at(3_000)).await.unwrap());
    assert!(!leases.renew(&one, at(3_000)).await.unwrap());
    let other_work = lease("b", 1);
    assert!(leases.acquire(&other_work, at(0), at(1_000)).await.unwrap());
}

#[tokio::test]
async fn a_lease_of_a_clock_that_was_ahead_can_be_acquired() {
    let fixture = Fixture::new().await;
    let leases = &fixture.database;
    let two_days = 2 * 24 * 60 * 60 * 1_000;
    let one_minute = 60 * 1_000;
    for (time_max, until, may_take) in [
        (two_days, two_days, false),
        (two_days, two_days + 1, true),
        (one_minute, one_minute, false),
        (one_minute, one_minute + 1, true),
    ] {
        let of = |holder| Lease {
            time_max: TimeDelta::milliseconds(time_max),
            ..lease("a", holder)
        };
        assert!(leases.acquire(&of(1), at(0), at(until)).await.unwrap());
        let taken = leases.acquire(&of(2), at(0), at(1_000)).await.unwrap();
        assert_eq!(taken, may_take, "{time_max} {until}");
        leases.release(&of(1)).await.unwrap();
        leases.release(&of(2)).await.unwrap();
    }
}

#[tokio::test]
async fn the_holder_may_acquire_and_renew_its_lease_again() {
    let fixture = Fixture::new().await;
    let leases = &fixture.database;
    let (one, two) = (lease("a", 1), lease("a", 2));
    assert!(!leases.renew(&one, at(500)).await.unwrap());
    assert!(leases.acquire(&one, at(0), at(1_000)).await.unwrap());
    assert!(leases.acquire(&one, at(1), at(2_000)).await.unwrap());
    assert!(!leases.acquire(&two, at(1_999), at(9_000)).await.unwrap());
    assert!(leases.renew(&one, at(3_000)).await.unwrap());
    assert!(!leases.acquire(&two, at(2_999), at(9_000)).await.unwrap());
    assert!(leases.acquire(&two, at(3_000), at(9_000)).await.unwrap());
}

#[tokio::test]
async fn only_the_holder_can_release_a_lease() {
    let fixture = Fixture::new().await;
    let leases = &fixture.database;
    let (one, two) = (lease("a", 1), lease("a", 2));
    assert!(leases.acquire(&one, at(0), at(1_000)).await.unwrap());
    leases.release(&two).await.unwrap();
    assert!(!leases.acquire(&two, at(1), at(1_000)).await.unwrap());
    leases.release(&one).await.unwrap();
    assert!(leases.acquire(&two, at(1), at(1_000)).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_concurrent_callers_acquires_a_lease() {
    let fixture = Fixture::new().await;
    for round in 0..10 {
        let (now, until) = (at(round * 10), at(round * 10 + 10));
        let acquiring = (1..=8).map(|holder| {
            let leases = fixture.database.clone();
            tokio::spawn(async move { leases.acquire(&lease("a", holder), now, until).await })
        });
        let mut acquired = 0;
        for outcome in acquiring.collect::<Vec<_>>() {
            acquired += u32::from(outcome.await.unwrap().unwrap());
        }
        assert_eq!(acquired, 1, "{round}");
    }
}

/// Opens the database again, like a server at start-up.
async fn reopened(fixture: &Fixture) -> Result<Database, DatabaseOpenError> {
    let identifiers = Arc::new(CountingIdentifiers::default());
    Database::open(&fixture.location.options(), identifiers).await
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
    let credentials = &database;
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
    let refused = reopened(&fixture).await.err().unwrap();
    assert!(matches!(
        refused,
        DatabaseOpenError::SchemaNotMigrated { .. }
    ));
}

#[tokio::test]
async fn a_migration_that_was_changed_later_is_refused() {
    let fixture = Fixture::new().await;
    fixture
        .change("update _sqlx_migrations set checksum = '' where version = 1")
        .await;
    assert!(reopened(&fixture).await.is_err());
}
