//! Adding versions of several credentials atomically, moving the transitional flag, deleting versions, and the columns of the
//! credential that repeat values of its versions.

use keywright_core::{
    credential::{LookupName, VersionAttributes},
    ports::{
        Additions, AllAppended, AppendCondition, CredentialRepository, NewVersion, ReadSigned,
        ReadVersions, RepositoryError, SignedTypes, TransitionalVersion, VersionChange,
        VersionChanged, VersionSelection,
    },
};
use uuid::Uuid;

use crate::support::{Fixture, facts, signed_by, version};

/// Returns a version that is the first of its credential.
fn first(fixture: &Fixture, name: &str) -> (NewVersion, AppendCondition) {
    let version = version(fixture, name, "certificate", 1);
    (version, AppendCondition::NewestIs(None))
}

fn following(fixture: &Fixture, name: &str, newest: Uuid) -> (NewVersion, AppendCondition) {
    let version = version(fixture, name, "certificate", 2);
    (version, AppendCondition::NewestIs(Some(newest)))
}

/// Returns the record of a read of these versions, the second of which was transitional.
fn current(name: &str, ids: &[Uuid]) -> ReadVersions {
    ReadVersions {
        name: LookupName::new(name),
        selection: VersionSelection::Current,
        versions: ids.iter().copied().zip([false, true]).collect(),
    }
}

async fn append_all(
    fixture: &Fixture,
    versions: Vec<(NewVersion, AppendCondition)>,
    unchanged: &[ReadVersions],
) -> Result<bool, RepositoryError> {
    let unchanged = unchanged.to_vec();
    let additions = Additions {
        versions,
        unchanged,
        signed: Vec::new(),
    };
    let appended = fixture.database.append_all(additions).await?;
    Ok(matches!(appended, AllAppended::Written(_)))
}

#[tokio::test]
async fn versions_are_added_in_order() {
    let fixture = Fixture::new().await;
    let root = fixture.append("/root", "certificate", 1).await;
    let leaf = fixture.append("/leaf", "certificate", 1).await;
    let versions = vec![
        following(&fixture, "/leaf", leaf),
        following(&fixture, "/root", root),
        first(&fixture, "/new"),
    ];
    let ids: Vec<Uuid> = versions.iter().map(|(version, _)| version.id).collect();
    let unchanged = [current("/ROOT", &[root]), current("/nowhere", &[])];
    let is_written = append_all(&fixture, versions, &unchanged).await;
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
async fn nothing_is_added_if_one_credential_has_changed() {
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
        let is_written = append_all(&fixture, versions, &[]).await;
        assert!(!is_written.unwrap(), "{name}");
        assert_eq!(fixture.all("/leaf").await.len(), 1);
        assert_eq!(fixture.all("/new").await.len(), 0);
        assert_eq!(fixture.all("/other").await.len(), 2);
    }
    let versions = vec![following(&fixture, "/other", newest)];
    let is_written = append_all(&fixture, versions, &[]).await;
    assert!(is_written.unwrap());
}

#[tokio::test]
async fn nothing_is_added_if_a_ca_changed_after_it_was_read() {
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
        let is_written = append_all(&fixture, versions, &unchanged).await;
        assert!(!is_written.unwrap(), "{name} {ids:?}");
    }
    let versions = vec![following(&fixture, "/root", transitional)];
    let unchanged = [current("/root", &[in_use, transitional])];
    let is_written = append_all(&fixture, versions, &unchanged).await;
    assert!(is_written.unwrap());
}

#[tokio::test]
async fn nothing_is_added_if_a_ca_signed_something_else_meanwhile() {
    let fixture = Fixture::new().await;
    let signed = async |name: &str, signer: &str| {
        let attributes = VersionAttributes {
            certificate: Some(facts(5)),
            ..signed_by(signer)
        };
        fixture
            .append_with(name, "certificate", 1, attributes)
            .await
    };
    let a = signed("/a", "/root").await;
    let b = signed("/b", "/Other").await;
    let add = async |signers: &[&str], ids: &[Uuid]| {
        let additions = Additions {
            versions: vec![first(&fixture, "/new")],
            unchanged: Vec::new(),
            signed: vec![ReadSigned {
                types: SignedTypes::All,
                signers: signers.iter().copied().map(LookupName::new).collect(),
                versions: ids.iter().map(|id| (*id, false)).collect(),
            }],
        };
        let appended = fixture.database.append_all(additions).await.unwrap();
        matches!(appended, AllAppended::Written(_))
    };
    for (signers, ids) in [
        (&["/root"][..], &[][..]),
        (&["/root"], &[b]),
        (&["/root"], &[a, b]),
        (&["/root", "/other"], &[a]),
        (&["/root", "/other"], &[b, a]),
        (&["/nowhere"], &[a]),
    ] {
        assert!(!add(signers, ids).await, "{signers:?} {ids:?}");
        assert_eq!(fixture.all("/new").await.len(), 0);
    }
    let phantom = signed("/c", "/root").await;
    assert!(!add(&["/root"], &[a]).await);
    let newer = signed("/a", "/elsewhere").await;
    assert!(!add(&["/root"], &[a, phantom]).await);
    let credential = fixture.all("/c").await[0].credential_id;
    for to in [TransitionalVersion::Id(phantom), TransitionalVersion::None] {
        let read = [newer, b, phantom];
        let is_moved = to != TransitionalVersion::None;
        fixture.move_transitional(credential, to).await;
        assert_ne!(add(&["/ROOT", "/other"], &read).await, is_moved);
    }
}

#[tokio::test]
async fn a_single_version_is_not_added_if_its_ca_changed() {
    let fixture = Fixture::new().await;
    let old = fixture.append("/root", "certificate", 1).await;
    let in_use = fixture.append("/root", "certificate", 2).await;
    for (ids, expected) in [
        (vec![], "Outdated"),
        (vec![old], "Outdated"),
        (vec![in_use], "Written"),
    ] {
        let new = version(&fixture, "/new", "certificate", 1);
        let unchanged = [current("/root", &ids)];
        let appended = fixture
            .database
            .append(new, AppendCondition::NewestIs(None), &unchanged);
        let appended = format!("{:?}", appended.await.unwrap());
        assert!(appended.starts_with(expected), "{ids:?}: {appended}");
    }
    assert_eq!(fixture.all("/new").await.len(), 1);
}

#[tokio::test]
async fn nothing_is_added_if_the_only_version_of_a_ca_became_transitional() {
    let fixture = Fixture::new().await;
    let only = fixture.append("/root", "certificate", 1).await;
    let root = fixture.all("/root").await[0].credential_id;
    let read = [current("/root", &[only])];
    let to = TransitionalVersion::Id(only);
    fixture.move_transitional(root, to).await;
    let is_written = append_all(&fixture, vec![first(&fixture, "/new")], &read).await;
    assert!(!is_written.unwrap());
    let read = ReadVersions {
        versions: vec![(only, true)],
        ..read[0].clone()
    };
    let is_written = append_all(&fixture, vec![first(&fixture, "/new")], &[read]).await;
    assert!(is_written.unwrap());
}

#[tokio::test]
async fn appending_returns_stored_versions_or_the_unwritten_input() {
    let fixture = Fixture::new().await;
    let versions = vec![first(&fixture, "/b"), first(&fixture, "/a")];
    let ids: Vec<Uuid> = versions.iter().map(|(version, _)| version.id).collect();
    let add = async |unchanged: Vec<ReadVersions>| {
        let additions = Additions {
            versions: versions.clone(),
            unchanged,
            signed: Vec::new(),
        };
        fixture.database.append_all(additions).await.unwrap()
    };
    let changed = current("/nowhere", &[Uuid::nil()]);
    let AllAppended::Changed(back) = add(vec![changed]).await else {
        panic!("written")
    };
    assert!(back.iter().map(|version| version.id).eq(ids));
    let AllAppended::Written(written) = add(Vec::new()).await else {
        panic!("not written")
    };
    let stored = [fixture.all("/b").await, fixture.all("/a").await].concat();
    assert_eq!(written, stored);
    let AllAppended::Changed(back) = add(Vec::new()).await else {
        panic!("written twice")
    };
    assert_eq!(back.len(), 2);
}

#[tokio::test]
async fn a_failure_in_the_middle_writes_nothing() {
    let fixture = Fixture::new().await;
    let (mut unsealed, condition) = first(&fixture, "/b");
    unsealed.envelope.key_id = Uuid::from_u128(1);
    let versions = vec![first(&fixture, "/a"), (unsealed, condition)];
    let refused = append_all(&fixture, versions, &[]).await;
    assert!(refused.is_err());
    assert_eq!(fixture.all("/a").await.len(), 0);
    fixture.append("/a", "certificate", 1).await;
}

#[tokio::test]
async fn read_versions_are_compared_in_any_selection() {
    let fixture = Fixture::new().await;
    let old = fixture.append("/root", "certificate", 1).await;
    let new = fixture.append("/root", "certificate", 2).await;
    for (selection, ids, is_same) in [
        (VersionSelection::ALL, vec![new, old], true),
        (VersionSelection::ALL, vec![new], false),
        (VersionSelection::Newest(1), vec![new], true),
        (VersionSelection::Newest(1), vec![old], false),
        (VersionSelection::Current, vec![new], true),
    ] {
        let name = LookupName::new("/root");
        let read = ReadVersions {
            name,
            selection,
            versions: ids.into_iter().map(|id| (id, false)).collect(),
        };
        let is_written = append_all(&fixture, Vec::new(), &[read]).await;
        assert_eq!(is_written.unwrap(), is_same, "{selection:?}");
    }
}

#[tokio::test]
async fn moves_and_deletions_are_atomic_with_additions() {
    let fixture = Fixture::new().await;
    let old = fixture.append("/root", "certificate", 1).await;
    let new = fixture.append("/root", "certificate", 2).await;
    let root = fixture.all("/root").await[0].credential_id;
    let leaf = fixture.append("/leaf", "certificate", 1).await;
    let additions = |newest: Uuid, read: &[Uuid]| Additions {
        versions: vec![following(&fixture, "/leaf", newest)],
        unchanged: vec![current("/root", read)],
        signed: Vec::new(),
    };
    let moving = VersionChange::Move(TransitionalVersion::Id(old));
    let deletion = VersionChange::Delete(old);
    for broken in [additions(leaf, &[old]), additions(new, &[new])] {
        let credentials = &fixture.database;
        for change in [moving, deletion] {
            let changed = credentials.change_version(root, change, broken.clone());
            assert_eq!(changed.await.unwrap(), VersionChanged::Outdated);
        }
        let versions = fixture.all("/root").await;
        assert_eq!(versions.len(), 2);
        assert!(
            versions
                .iter()
                .all(|version| !version.attributes.is_transitional)
        );
        assert_eq!(fixture.all("/leaf").await.len(), 1);
    }
    let credentials = &fixture.database;
    let moved = credentials.change_version(root, moving, additions(leaf, &[new]));
    assert!(matches!(moved.await.unwrap(), VersionChanged::Written(_)));
    let leaf = fixture.all("/leaf").await[0].id;
    let deleted = credentials.change_version(root, deletion, additions(leaf, &[new, old]));
    assert!(matches!(deleted.await.unwrap(), VersionChanged::Written(_)));
    assert_eq!(fixture.all("/leaf").await.len(), 3);
    assert_eq!(fixture.all("/root").await.len(), 1);
}

impl Fixture {
    /// Asserts that the repeated columns of all credentials match their versions.
    pub(crate) async fn assert_columns_match_versions(&self) {
        let mismatches = "
            select count(*) from credential c
            left join credential_version n on n.sequence = (
                select max(v.sequence) from credential_version v where v.credential_sequence = c.sequence
            )
            left join credential_version u on u.sequence = (
                select max(v.sequence) from credential_version v
                where v.credential_sequence = c.sequence and not v.is_transitional
            )
            where c.newest_sequence is distinct from n.sequence or c.newest_created_at is distinct from n.created_at
                or c.newest_expires_at is distinct from coalesce(n.rotate_at, n.value_expires_at, n.expires_at)
                or c.current_sequence is distinct from u.sequence
                or c.current_created_at is distinct from u.created_at";
        assert_eq!(self.count(mismatches).await, 0);
    }
}
