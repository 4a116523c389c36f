//! Moving the transitional flag and deleting versions, and the columns of the credential that repeat its versions.

use keywright_core::{
    credential::{Find, FindNames, LookupName},
    ports::{
        Additions, CredentialRepository, TransitionalMoved, TransitionalVersion, VersionDeleted,
        VersionSelection,
    },
};
use uuid::Uuid;

use crate::support::{Fixture, at};

#[tokio::test]
async fn moving_and_clearing_the_flag_updates_the_credential() {
    let fixture = Fixture::new().await;
    let one = fixture.append_certificate("/c", false, 1, 100).await;
    let two = fixture.append_certificate("/c", false, 2, 200).await;
    let three = fixture.append("/c", "certificate", 3).await;
    let id = fixture.credential_id("/c").await;
    for (to, flagged, current) in [
        (TransitionalVersion::Id(one), Some(one), Some(3)),
        (TransitionalVersion::Id(three), Some(three), Some(2)),
        (TransitionalVersion::Id(three), Some(three), Some(2)),
        (TransitionalVersion::Latest, Some(two), Some(3)),
        (TransitionalVersion::None, None, Some(3)),
        (TransitionalVersion::None, None, Some(3)),
    ] {
        let moved = fixture
            .credentials
            .move_transitional(id, to, Additions::default())
            .await;
        let chosen = fixture
            .credentials
            .versions_by_credential(id, VersionSelection::Current)
            .await;
        assert_eq!(moved.unwrap(), TransitionalMoved::Moved(chosen.unwrap()));
        assert_eq!(fixture.flagged("/c").await, flagged, "{to:?}");
        assert_eq!(fixture.found_at("/c").await, current, "{to:?}");
    }
    fixture.assert_rows_are_true().await;
}

#[tokio::test]
async fn a_flagged_only_version_is_hidden_from_searches() {
    let fixture = Fixture::new().await;
    let only = fixture.append_certificate("/c", false, 1, 100).await;
    let id = fixture.credential_id("/c").await;
    for (to, found) in [
        (TransitionalVersion::Id(only), None),
        (TransitionalVersion::None, Some(1)),
    ] {
        fixture
            .credentials
            .move_transitional(id, to, Additions::default())
            .await
            .unwrap();
        assert_eq!(fixture.found_at("/c").await, found);
        fixture.assert_rows_are_true().await;
    }
}

#[tokio::test]
async fn a_refused_move_keeps_the_flag() {
    let fixture = Fixture::new().await;
    fixture.append("/c", "certificate", 1).await;
    let flagged = fixture.append_transitional("/c", 2).await;
    let other = fixture.append_certificate("/other", false, 3, 100).await;
    let id = fixture.credential_id("/c").await;
    for (id, to, outcome) in [
        (
            id,
            TransitionalVersion::Id(other),
            TransitionalMoved::VersionAbsent,
        ),
        (
            id,
            TransitionalVersion::Id(Uuid::nil()),
            TransitionalMoved::VersionAbsent,
        ),
        (
            id,
            TransitionalVersion::Latest,
            TransitionalMoved::VersionAbsent,
        ),
        (
            Uuid::nil(),
            TransitionalVersion::None,
            TransitionalMoved::CredentialAbsent,
        ),
        (
            Uuid::nil(),
            TransitionalVersion::Id(flagged),
            TransitionalMoved::CredentialAbsent,
        ),
    ] {
        let moved = fixture
            .credentials
            .move_transitional(id, to, Additions::default())
            .await;
        assert_eq!(moved.unwrap(), outcome, "{to:?}");
        assert_eq!(fixture.flagged("/c").await, Some(flagged));
    }
    assert_eq!(fixture.flagged("/other").await, None);
    fixture.assert_rows_are_true().await;
}

#[tokio::test]
async fn deleting_updates_the_credential_and_keeps_the_last_version() {
    let fixture = Fixture::new().await;
    let one = fixture.append_certificate("/c", false, 1, 100).await;
    let two = fixture.append_certificate("/c", true, 2, 200).await;
    let three = fixture.append_certificate("/c", false, 3, 300).await;
    let other = fixture.append("/other", "certificate", 4).await;
    let id = fixture.credential_id("/c").await;
    for (credential, version, outcome, found) in [
        (id, other, VersionDeleted::Absent, Some(3)),
        (id, Uuid::nil(), VersionDeleted::Absent, Some(3)),
        (Uuid::nil(), three, VersionDeleted::Absent, Some(3)),
        (id, three, VersionDeleted::Deleted, Some(1)),
        (id, three, VersionDeleted::Absent, Some(1)),
        (id, one, VersionDeleted::Deleted, None),
        (id, two, VersionDeleted::IsOnly, None),
    ] {
        let deleted = fixture
            .credentials
            .delete_version(credential, version, Additions::default())
            .await;
        assert_eq!(deleted.unwrap(), outcome);
        assert_eq!(fixture.found_at("/c").await, found);
        fixture.assert_rows_are_true().await;
    }
    assert_eq!(fixture.all("/c").await.len(), 1);
    assert_eq!(fixture.all("/other").await.len(), 1);
}

impl Fixture {
    async fn credential_id(&self, name: &str) -> Uuid {
        self.all(name).await.first().unwrap().credential_id
    }

    async fn flagged(&self, name: &str) -> Option<Uuid> {
        let versions = self.all(name).await;
        let mut flagged = versions.iter().filter(|version| version.is_transitional);
        let found = flagged.next().map(|version| version.id);
        assert!(flagged.next().is_none());
        found
    }

    /// Returns the time of a credential in a search, in milliseconds. `None` if the search does not find it.
    async fn found_at(&self, name: &str) -> Option<i64> {
        let find = Find {
            names: FindNames::below(""),
            expires_until: None,
        };
        let found = self.find(&find).await.unwrap();
        let found = found
            .iter()
            .find(|found| found.name.lookup() == LookupName::new(name))?;
        assert!(found.version_created_at >= at(0));
        Some(found.version_created_at.timestamp_millis())
    }

    /// Asserts that the repeated columns of all credentials match their versions.
    pub(crate) async fn assert_rows_are_true(&self) {
        let untrue = "
            select count(*) from credential c
            left join credential_version n on n.sequence = (
                select max(v.sequence) from credential_version v where v.credential_sequence = c.sequence
            )
            left join credential_version u on u.sequence = (
                select max(v.sequence) from credential_version v
                where v.credential_sequence = c.sequence and not v.is_transitional
            )
            where c.newest_sequence is distinct from n.sequence or c.newest_created_at is distinct from n.created_at
                or c.newest_expires_at is distinct from n.expires_at or c.current_sequence is distinct from u.sequence
                or c.current_created_at is distinct from u.created_at";
        assert_eq!(self.count(untrue).await, 0);
    }
}
