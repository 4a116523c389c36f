//! The records of encryption keys.

use std::collections::HashSet;

use crate::support::{Fixture, KEY_ID, at, key, version};
use keywright_core::ports::{AppendCondition, CredentialRepository, EncryptionKeyRepository};
use keywright_storage::EncryptionKeyRow;
use uuid::Uuid;

#[tokio::test]
async fn records_are_read_as_written_oldest_first() {
    let fixture = Fixture::new().await;
    let raw = EncryptionKeyRow {
        provider: "raw".to_owned(),
        derivation: None,
        ..key(Uuid::from_u128(2), 0)
    };
    let wrapped = EncryptionKeyRow {
        provider: "kms".to_owned(),
        derivation: None,
        wrapped_key: Some(vec![4; 16_384]),
        ..key(Uuid::from_u128(3), 2)
    };
    fixture.add_key(&wrapped).await;
    fixture.add_key(&raw).await;
    assert_eq!(
        fixture.encryption_keys.all().await.unwrap(),
        [raw, key(KEY_ID, 1), wrapped]
    );
}

#[tokio::test]
async fn a_record_is_added_once() {
    let fixture = Fixture::new().await;
    let known = HashSet::from([KEY_ID]);
    let again = fixture.encryption_keys.add(&key(KEY_ID, 2), &known).await;
    assert!(again.is_err());
    assert_eq!(
        fixture.encryption_keys.all().await.unwrap()[0].created_at,
        at(1)
    );
}

#[tokio::test]
async fn a_record_is_added_only_if_all_records_are_known() {
    let fixture = Fixture::new().await;
    let other = key(Uuid::from_u128(2), 2);
    for known in [HashSet::new(), HashSet::from([KEY_ID, other.id])] {
        assert!(!fixture.encryption_keys.add(&other, &known).await.unwrap());
    }
    assert_eq!(fixture.encryption_keys.all().await.unwrap().len(), 1);
}

#[tokio::test]
async fn one_of_several_concurrent_servers_adds_a_record() {
    let fixture = Fixture::new().await;
    let known = HashSet::from([KEY_ID]);
    let adding = (0..8).map(|number| {
        let (keys, known) = (fixture.encryption_keys.clone(), known.clone());
        tokio::spawn(async move { keys.add(&key(Uuid::from_u128(number), 2), &known).await })
    });
    let adding: Vec<_> = adding.collect();
    let mut added = 0;
    for one in adding {
        added += usize::from(one.await.unwrap().unwrap());
    }
    assert_eq!(
        (added, fixture.encryption_keys.all().await.unwrap().len()),
        (1, 2)
    );
}

#[tokio::test]
async fn an_empty_or_too_long_wrapped_key_is_refused() {
    let fixture = Fixture::new().await;
    for bytes in [0, 16_385] {
        let key = EncryptionKeyRow {
            wrapped_key: Some(vec![4; bytes]),
            ..key(Uuid::from_u128(2), 2)
        };
        let known = HashSet::from([KEY_ID]);
        assert!(fixture.encryption_keys.add(&key, &known).await.is_err());
    }
}

#[tokio::test]
async fn a_key_is_in_use_if_a_version_is_sealed_with_it() {
    let fixture = Fixture::new().await;
    fixture.add_key(&key(Uuid::from_u128(2), 2)).await;
    assert!(fixture.encryption_keys.in_use().await.unwrap().is_empty());
    let sealed = version(&fixture, "/a", "value", 1);
    fixture
        .credentials
        .append(sealed, AppendCondition::Always, &[])
        .await
        .unwrap();
    assert_eq!(fixture.encryption_keys.in_use().await.unwrap(), [KEY_ID]);
    assert_eq!(fixture.all("/a").await.len(), 1);
}

#[tokio::test]
async fn versions_are_counted_by_key() {
    let fixture = Fixture::new().await;
    let other_key = Uuid::from_u128(2);
    fixture.add_key(&key(other_key, 2)).await;
    for name in ["/a", "/a", "/b"] {
        fixture.append(name, "value", 1).await;
    }
    let mut counted = fixture.encryption_keys.versions_by_key().await.unwrap();
    counted.sort_unstable();
    assert_eq!(counted, [(other_key, 0), (KEY_ID, 3)]);
}
