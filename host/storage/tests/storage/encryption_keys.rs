//! The records of encryption keys.

use crate::support::{Fixture, KEY_ID, at, key, version};
use keywright_core::ports::{AppendCondition, CredentialRepository, EncryptionKeyRepository};
use keywright_storage::EncryptionKeyRow;
use uuid::Uuid;

#[tokio::test]
async fn records_come_back_as_they_were_oldest_first() {
    let fixture = Fixture::new().await;
    let raw = EncryptionKeyRow {
        provider: "raw".to_owned(),
        derivation: None,
        ..key(Uuid::from_u128(2), 0)
    };
    fixture.encryption_keys.add(&raw).await.unwrap();
    assert_eq!(
        fixture.encryption_keys.all().await.unwrap(),
        [raw, key(KEY_ID, 1)]
    );
}

#[tokio::test]
async fn a_record_is_added_once() {
    let fixture = Fixture::new().await;
    assert!(fixture.encryption_keys.add(&key(KEY_ID, 2)).await.is_err());
    assert_eq!(
        fixture.encryption_keys.all().await.unwrap()[0].created_at,
        at(1)
    );
}

#[tokio::test]
async fn a_key_is_in_use_when_a_version_is_sealed_with_it() {
    let fixture = Fixture::new().await;
    fixture
        .encryption_keys
        .add(&key(Uuid::from_u128(2), 2))
        .await
        .unwrap();
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
async fn versions_are_counted_by_their_keys_and_a_key_without_any_has_none() {
    let fixture = Fixture::new().await;
    let other_key = Uuid::from_u128(2);
    fixture
        .encryption_keys
        .add(&key(other_key, 2))
        .await
        .unwrap();
    for name in ["/a", "/a", "/b"] {
        fixture.append(name, "value", 1).await;
    }
    let mut counted = fixture.encryption_keys.versions_by_key().await.unwrap();
    counted.sort_unstable();
    assert_eq!(counted, [(other_key, 0), (KEY_ID, 3)]);
}
