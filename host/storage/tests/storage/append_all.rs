//! Adding versions of several credentials, all of them or none.

use crate::support::{Fixture, version};
use keywright_core::{
    credential::LookupName,
    ports::{AppendCondition, CredentialRepository, CurrentVersions, NewVersion},
};
use uuid::Uuid;

/// A version that is the first of its credential.
fn first(fixture: &Fixture, name: &str) -> (NewVersion, AppendCondition) {
    let version = version(fixture, name, "certificate", 1);
    (version, AppendCondition::NewestIs(None))
}

/// A version that follows this one.
fn following(fixture: &Fixture, name: &str, newest: Uuid) -> (NewVersion, AppendCondition) {
    let version = version(fixture, name, "certificate", 2);
    (version, AppendCondition::NewestIs(Some(newest)))
}

fn current(name: &str, ids: &[Uuid]) -> CurrentVersions {
    CurrentVersions {
        name: LookupName::new(name),
        ids: ids.to_vec(),
    }
}

#[tokio::test]
async fn all_are_added_in_their_order() {
    let fixture = Fixture::new().await;
    let root = fixture.append("/root", "certificate", 1).await;
    let leaf = fixture.append("/leaf", "certificate", 1).await;
    let versions = vec![
        following(&fixture, "/Leaf", leaf),
        following(&fixture, "/root", root),
        first(&fixture, "/new"),
    ];
    let ids: Vec<Uuid> = versions.iter().map(|(version, _)| version.id).collect();
    let unchanged = [current("/ROOT", &[root]), current("/nowhere", &[])];
    let is_written = fixture.credentials.append_all(versions, &unchanged).await;
    assert!(is_written.unwrap());
    let mut sequences = Vec::new();
    for (name, id) in ["/leaf", "/root", "/new"].into_iter().zip(ids) {
        let newest = fixture.all(name).await.remove(0);
        assert_eq!(newest.id, id, "{name}");
        sequences.push(newest.sequence);
    }
    assert!(sequences.is_sorted());
}

#[tokio::test]
async fn none_is_added_when_one_credential_has_changed() {
    let fixture = Fixture::new().await;
    let leaf = fixture.append("/leaf", "certificate", 1).await;
    let other = fixture.append("/other", "certificate", 1).await;
    let newest = fixture.append("/other", "certificate", 2).await;
    fixture.append("/password", "password", 1).await;
    for broken in [
        following(&fixture, "/other", other),
        following(&fixture, "/deleted", other),
        first(&fixture, "/other"),
        first(&fixture, "/password"),
    ] {
        let name = broken.0.name.clone();
        let versions = vec![
            following(&fixture, "/leaf", leaf),
            first(&fixture, "/new"),
            broken,
        ];
        let is_written = fixture.credentials.append_all(versions, &[]).await;
        assert!(!is_written.unwrap(), "{name}");
        assert_eq!(fixture.all("/leaf").await.len(), 1);
        assert_eq!(fixture.all("/new").await.len(), 0);
        assert_eq!(fixture.all("/other").await.len(), 2);
    }
    let versions = vec![following(&fixture, "/other", newest)];
    let is_written = fixture.credentials.append_all(versions, &[]).await;
    assert!(is_written.unwrap());
}

#[tokio::test]
async fn none_is_added_when_an_authority_is_not_as_it_was_read() {
    let fixture = Fixture::new().await;
    let old = fixture.append("/root", "certificate", 1).await;
    let in_use = fixture.append("/root", "certificate", 2).await;
    let transitional = fixture.append_transitional("/root", 3).await;
    for (name, ids) in [
        ("/root", vec![]),
        ("/root", vec![in_use]),
        ("/root", vec![transitional]),
        ("/root", vec![old, transitional]),
        ("/root", vec![transitional, in_use]),
        ("/nowhere", vec![in_use]),
    ] {
        let versions = vec![first(&fixture, "/new")];
        let unchanged = [current(name, &ids)];
        let is_written = fixture.credentials.append_all(versions, &unchanged).await;
        assert!(!is_written.unwrap(), "{name} {ids:?}");
    }
    let versions = vec![following(&fixture, "/root", transitional)];
    let unchanged = [current("/root", &[in_use, transitional])];
    let is_written = fixture.credentials.append_all(versions, &unchanged).await;
    assert!(is_written.unwrap());
}

#[tokio::test]
async fn a_failure_in_the_middle_leaves_nothing() {
    let fixture = Fixture::new().await;
    let (mut unsealed, condition) = first(&fixture, "/b");
    unsealed.envelope.key_id = Uuid::from_u128(1);
    let versions = vec![first(&fixture, "/a"), (unsealed, condition)];
    let refused = fixture.credentials.append_all(versions, &[]).await;
    assert!(refused.is_err());
    assert_eq!(fixture.all("/a").await.len(), 0);
    fixture.append("/a", "certificate", 1).await;
}
