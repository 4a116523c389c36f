//! Appending and reading versions, and reading their sizes.

use crate::support::{Fixture, at, facts, reader, version, zeros};
use keywright_core::{
    credential::{CredentialName, IssuerVersion, LookupName, PluginIdentity, VersionAttributes},
    ports::{
        AppendCondition, Appended, CredentialKey, CredentialRepository, Deleted, NewVersion,
        RepositoryError, VersionSelection, VersionsSize,
    },
};
use uuid::Uuid;

#[tokio::test]
async fn a_version_is_read_as_it_was_appended() {
    let fixture = Fixture::new().await;
    let appended = NewVersion {
        attributes: VersionAttributes {
            is_generated: Some(true),
            certificate: Some(facts(5_000)),
            signed_by: Some(CredentialName::parse("/CA").unwrap()),
            issuer: Some(IssuerVersion {
                version_id: Some(Uuid::from_u128(77)),
                expires_at: at(6_000),
            }),
            provenance: Some(PluginIdentity {
                name: "certificate".into(),
                version: "1.2.3".into(),
                digest: "ab".repeat(32),
                interface_version: "0.1.0".into(),
            }),
            ..VersionAttributes::default()
        },
        ..version(&fixture, "/A/b", "certificate", 1_001)
    };
    let id = appended.id;
    let condition = AppendCondition::NewestIs(None);
    let Ok(Appended::Written(written)) = fixture.append_if(appended, condition).await else {
        panic!("not written")
    };
    let read = fixture.database.version_by_id(id).await.unwrap().unwrap();
    assert_eq!(format!("{read:?}"), format!("{written:?}"));
    assert_eq!(read.created_at, at(1_001));
    assert_eq!(read.attributes.certificate, Some(facts(5_000)));
    assert_eq!(read.envelope.ciphertext, b"sealed /A/b");
    assert_eq!(read.attributes.provenance.unwrap().digest, "ab".repeat(32));
    for (id, name) in [(id, Some("/A/b")), (Uuid::nil(), None)] {
        let found = fixture.database.name_of_version(id).await.unwrap();
        assert_eq!(found.as_ref().map(CredentialName::as_str), name);
        let version = fixture.database.version_by_id(id).await.unwrap();
        assert_eq!(version.is_some(), name.is_some());
    }
}

#[tokio::test]
async fn versions_with_equal_or_earlier_times_are_sorted_by_sequence() {
    let fixture = Fixture::new().await;
    let mut ids = Vec::new();
    for milliseconds in [7, 7, 7, 3] {
        ids.push(fixture.append("/a", "value", milliseconds).await);
    }
    ids.reverse();
    let read: Vec<Uuid> = fixture.all("/a").await.iter().map(|one| one.id).collect();
    assert_eq!(read, ids);
    let newest = fixture.versions("/a", VersionSelection::Newest(2)).await;
    let newest = newest.unwrap();
    let newest_ids: Vec<Uuid> = newest.iter().map(|one| one.id).collect();
    assert_eq!(newest_ids, ids[..2]);
    assert!(newest[0].sequence > newest[1].sequence);
}

#[tokio::test]
async fn a_duplicate_id_is_not_reported_as_transitional_exists() {
    let fixture = Fixture::new().await;
    let taken = fixture.append("/c", "certificate", 1).await;
    let second = NewVersion {
        id: taken,
        attributes: VersionAttributes {
            is_transitional: true,
            ..VersionAttributes::default()
        },
        ..version(&fixture, "/c", "certificate", 2)
    };
    let outcome = fixture.append_if(second, AppendCondition::Always).await;
    let is_of_query = matches!(outcome, Err(RepositoryError::Query(_)));
    assert!(is_of_query, "{outcome:?}");
}

#[tokio::test]
async fn a_version_for_a_recreated_credential_is_not_added() {
    let fixture = Fixture::new().await;
    fixture.append("/c", "certificate", 1).await;
    let credential_id = fixture.all("/c").await[0].credential_id;
    let condition = AppendCondition::CredentialIs(credential_id);
    let append = |milliseconds| {
        let new = version(&fixture, "/c", "certificate", milliseconds);
        fixture.database.append(new, condition, &[])
    };
    assert!(matches!(append(2).await, Ok(Appended::Written(_))));
    let delete = async |name: &str| {
        let name = CredentialName::from_stored(name.to_owned());
        fixture.database.delete(&name).await.unwrap()
    };
    assert_eq!(delete("/C").await, Deleted::Nothing, "another casing");
    let names = ["/C", "/c"].map(LookupName::new);
    for (names, count) in [(&names[..1], 0), (&names, 1)] {
        let found = fixture.database.newest_by_names(&reader(), names).await;
        assert_eq!(found.unwrap().len(), count, "{names:?}");
    }
    assert_eq!(delete("/c").await, Deleted::Credential(credential_id));
    assert!(matches!(append(3).await, Ok(Appended::Changed)));
    assert!(fixture.all("/c").await.is_empty());
    fixture.append("/c", "certificate", 4).await;
    assert!(matches!(append(5).await, Ok(Appended::Changed)));
    assert_eq!(fixture.all("/c").await.len(), 1);
}

#[tokio::test]
async fn each_call_deletes_at_most_100_versions_and_the_oldest_first() {
    let fixture = Fixture::new().await;
    for milliseconds in 0..250 {
        fixture.append("/a", "value", milliseconds).await;
    }
    let name = CredentialName::parse("/a").unwrap();
    for left in [150, 100] {
        let mut newest = fixture.all("/a").await;
        newest.truncate(left);
        let deleted = fixture.database.delete(&name).await.unwrap();
        assert_eq!(deleted, Deleted::OldestVersions);
        assert_eq!(fixture.all("/a").await, newest);
    }
    fixture.assert_columns_match_versions().await;
    let deleted = fixture.database.delete(&name).await.unwrap();
    assert!(matches!(deleted, Deleted::Credential(_)));
    assert!(fixture.all("/a").await.is_empty());
}

#[tokio::test]
async fn appending_checks_casing_type_and_condition_in_order() {
    let fixture = Fixture::new().await;
    let first = fixture.append("/a", "value", 1).await;
    let always = AppendCondition::Always;
    let newest = AppendCondition::NewestIs;
    for (name, credential_type, condition, expected) in [
        ("/a", "json", always, "TypeDiffers"),
        ("/a", "json", newest(Some(first)), "TypeDiffers"),
        ("/a", "value", newest(None), "Changed"),
        ("/a", "value", newest(Some(Uuid::nil())), "Changed"),
        ("/a", "value", newest(Some(first)), "Written"),
        ("/a", "value", newest(Some(first)), "Changed"),
        (
            "/A",
            "value",
            always,
            "CasingDiffers(CredentialName(\"/a\"))",
        ),
        ("/A", "json", newest(None), "CasingDiffers"),
        ("/absent", "value", newest(Some(first)), "Changed"),
    ] {
        let new = version(&fixture, name, credential_type, 2);
        let outcome = fixture.append_if(new, condition).await.unwrap();
        assert!(format!("{outcome:?}").starts_with(expected), "{outcome:?}");
    }
    assert_eq!(fixture.all("/a").await.len(), 2);
    assert!(fixture.all("/absent").await.is_empty());
}

#[tokio::test]
async fn an_invalid_row_is_an_inconsistency_that_names_its_column() {
    let fixture = Fixture::new().await;
    fixture.append("/a", "value", 1).await;
    fixture
        .change("update credential set credential_type = '???'")
        .await;
    let outcome = fixture.versions("/a", VersionSelection::ALL).await;
    assert!(matches!(
        outcome,
        Err(RepositoryError::Inconsistent("credential.credential_type"))
    ));
}

#[tokio::test]
async fn a_version_encrypted_with_an_unrecorded_key_is_refused() {
    let fixture = Fixture::new().await;
    let mut unknown = version(&fixture, "/a", "value", 1);
    unknown.envelope.key_id = Uuid::from_u128(99);
    let outcome = fixture.append_if(unknown, AppendCondition::Always).await;
    assert!(outcome.is_err());
    assert!(fixture.all("/a").await.is_empty());
}

#[tokio::test]
async fn the_size_counts_only_the_selected_versions() {
    let fixture = Fixture::new().await;
    for seconds in 0..4 {
        fixture.append("/It", "password", seconds).await;
        fixture.append("/other", "password", seconds).await;
    }
    let name = LookupName::new("/iT");
    let id = fixture.all("/It").await[0].credential_id;
    for count_max in [0, 1, 3, 4, 5, u32::MAX] {
        let selection = VersionSelection::Newest(count_max);
        let read = fixture.versions("/iT", selection).await.unwrap();
        let bytes = read.iter().map(|version| version.envelope.ciphertext.len());
        let expected = VersionsSize {
            count: u32::try_from(read.len()).unwrap(),
            ciphertext_bytes: bytes.sum(),
        };
        for key in [CredentialKey::Name(&name), CredentialKey::Id(id)] {
            let size = fixture.size(key, count_max).await;
            assert_eq!(size, expected, "{key:?} {count_max}");
        }
    }
    let size = fixture.size(CredentialKey::Id(Uuid::nil()), 1).await;
    assert_eq!(size, VersionsSize::default());
}

impl Fixture {
    async fn size(&self, key: CredentialKey<'_>, count_max: u32) -> VersionsSize {
        let caller = reader();
        let size = self.database.size_of_versions(&caller, key, count_max);
        size.await.unwrap()
    }
}

#[tokio::test]
async fn bytes_beyond_their_limit_are_read_as_empty() {
    let fixture = Fixture::new().await;
    fixture.append("/a", "value", 1).await;
    for (column, bytes_max) in [("ciphertext", 33_554_432), ("nonce", 64)] {
        for (bytes, read) in [(bytes_max, bytes_max), (bytes_max + 1, 0)] {
            let zeros = zeros(bytes);
            let change = format!("update credential_version set {column} = {zeros}");
            fixture.change(&change).await;
            let envelope = fixture.all("/a").await.remove(0).envelope;
            let columns = [
                ("ciphertext", envelope.ciphertext),
                ("nonce", envelope.nonce),
            ];
            assert!(columns.contains(&(column, vec![0; read])));
        }
    }
}
