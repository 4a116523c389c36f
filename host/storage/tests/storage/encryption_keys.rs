//! The records of encryption keys, and the reads and writes of their rotation.

use std::collections::HashSet;

use keywright_core::{
    credential::CredentialName,
    ports::{
        CredentialRepository, Envelope, KeyDerivation, KeyRecord, KeyRotationRepository,
        ResealedVersion, SealedVersion,
    },
};
use keywright_storage::BATCH_BYTES_MAX;
use uuid::Uuid;

use crate::support::{Fixture, KEY_ID, at, is_on_postgres, key};

#[tokio::test]
async fn records_are_read_as_written_oldest_first() {
    let fixture = Fixture::new().await;
    let raw = KeyRecord {
        derivation: KeyDerivation::Raw,
        ..key(Uuid::from_u128(2), 0)
    };
    let wrapped = KeyRecord {
        derivation: KeyDerivation::Wrapped(vec![4; 16_384]),
        ..key(Uuid::from_u128(3), 2)
    };
    fixture.add_key(&wrapped).await;
    fixture.add_key(&raw).await;
    assert_eq!(
        fixture.database.encryption_keys().await.unwrap(),
        [raw, key(KEY_ID, 1), wrapped]
    );
}

#[tokio::test]
async fn a_record_is_added_once() {
    let fixture = Fixture::new().await;
    let known = HashSet::from([KEY_ID]);
    let again = fixture
        .database
        .add_encryption_key(&key(KEY_ID, 2), &known)
        .await;
    assert!(again.is_err());
    assert_eq!(
        fixture.database.encryption_keys().await.unwrap()[0].created_at,
        at(1)
    );
}

#[tokio::test]
async fn a_record_is_added_only_if_all_records_are_known() {
    let fixture = Fixture::new().await;
    let other = key(Uuid::from_u128(2), 2);
    for known in [HashSet::new(), HashSet::from([KEY_ID, other.id])] {
        assert!(
            !fixture
                .database
                .add_encryption_key(&other, &known)
                .await
                .unwrap()
        );
    }
    assert_eq!(fixture.database.encryption_keys().await.unwrap().len(), 1);
}

#[tokio::test]
async fn one_of_several_concurrent_servers_adds_a_record() {
    let fixture = Fixture::new().await;
    let known = HashSet::from([KEY_ID]);
    let adding = (0..8).map(|number| {
        let (database, known) = (fixture.database.clone(), known.clone());
        let key = key(Uuid::from_u128(number), 2);
        tokio::spawn(async move { database.add_encryption_key(&key, &known).await })
    });
    let adding: Vec<_> = adding.collect();
    let mut added = 0;
    for one in adding {
        added += usize::from(one.await.unwrap().unwrap());
    }
    assert_eq!(
        (
            added,
            fixture.database.encryption_keys().await.unwrap().len()
        ),
        (1, 2)
    );
}

#[tokio::test]
async fn an_empty_or_too_long_wrapped_key_is_refused() {
    let fixture = Fixture::new().await;
    for bytes in [0, 16_385] {
        let key = KeyRecord {
            derivation: KeyDerivation::Wrapped(vec![4; bytes]),
            ..key(Uuid::from_u128(2), 2)
        };
        let known = HashSet::from([KEY_ID]);
        assert!(
            fixture
                .database
                .add_encryption_key(&key, &known)
                .await
                .is_err()
        );
    }
}

const OTHER_KEY: Uuid = Uuid::from_u128(0xfffe);

async fn with_another_key() -> Fixture {
    let fixture = Fixture::new().await;
    fixture.add_key(&key(OTHER_KEY, 2)).await;
    fixture
}

fn resealed(version: &SealedVersion) -> ResealedVersion {
    ResealedVersion {
        sequence: version.sequence,
        key_id_before: version.envelope.key_id,
        nonce_before: version.envelope.nonce.clone(),
        envelope: Envelope {
            key_id: OTHER_KEY,
            nonce: vec![8; 12],
            ciphertext: format!("new {}", version.name).into_bytes(),
        },
    }
}

#[tokio::test]
async fn the_key_of_the_last_start_is_active() {
    let fixture = Fixture::new().await;
    let repository = &fixture.database;
    let [one, two, three] = [1, 2, 3].map(Uuid::from_u128);
    assert_eq!(repository.last_activated().await.unwrap(), None);
    for (started_with, last) in [(one, one), (two, two), (two, two), (one, one), (two, two)] {
        repository.activate(started_with).await.unwrap();
        assert_eq!(repository.last_activated().await.unwrap(), Some(last));
    }
    for (new, last) in [(one, two), (three, three), (two, three)] {
        repository.activate_new(new).await.unwrap();
        assert_eq!(repository.last_activated().await.unwrap(), Some(last));
    }
    let most = "select max(ordinal) from encryption_key_activation";
    assert_eq!(fixture.count(most).await, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_several_concurrent_starts_is_the_last() {
    let fixture = Fixture::new().await;
    let starts = (1..=8).map(|key| {
        let repository = fixture.database.clone();
        tokio::spawn(async move { repository.activate(Uuid::from_u128(key)).await })
    });
    for start in starts.collect::<Vec<_>>() {
        start.await.unwrap().unwrap();
    }
    let ordinals = "select count(distinct ordinal) from encryption_key_activation";
    assert_eq!(fixture.count(ordinals).await, 8);
}

#[tokio::test]
async fn batches_contain_the_versions_of_a_key_by_sequence() {
    let fixture = with_another_key().await;
    let repository = &fixture.database;
    assert!(repository.keys_in_use().await.unwrap().is_empty());
    for name in ["/A", "/b", "/a", "/c"] {
        fixture.append(name, "value", 1).await;
    }
    assert_eq!(repository.keys_in_use().await.unwrap(), [KEY_ID]);
    let first = repository.versions_under(KEY_ID, 0, 3).await.unwrap();
    let names: Vec<&str> = first.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["/A", "/b", "/A"]);
    assert!(first.is_sorted_by(|one, next| one.sequence < next.sequence));
    let after = first[2].sequence;
    let next = repository.versions_under(KEY_ID, after, 3).await.unwrap();
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].envelope.ciphertext, b"sealed /c");
    let other = repository.versions_under(OTHER_KEY, 0, 3).await.unwrap();
    assert!(other.is_empty());
}

#[tokio::test]
async fn only_unchanged_envelopes_are_replaced() {
    let fixture = with_another_key().await;
    let repository = &fixture.database;
    for name in ["/a", "/b", "/gone", "/d", "/e"] {
        fixture.append(name, "value", 1).await;
    }
    let read = repository.versions_under(KEY_ID, 0, 9).await.unwrap();
    let versions: Vec<ResealedVersion> = read.iter().map(resealed).collect();
    let gone = CredentialName::from_stored("/gone".to_owned());
    fixture.database.delete(&gone).await.unwrap();
    let by_another = &versions[1..2];
    assert_eq!(repository.replace_envelopes(by_another).await.unwrap(), 1);
    let mut with_another_nonce = versions[3].clone();
    with_another_nonce.nonce_before = vec![0; 12];
    let batch = [&versions[..3], &[with_another_nonce], &versions[4..]].concat();
    assert_eq!(repository.replace_envelopes(&batch).await.unwrap(), 2);
    for (name, key_id, nonce, ciphertext) in [
        ("/a", OTHER_KEY, 8, "new /a"),
        ("/b", OTHER_KEY, 8, "new /b"),
        ("/d", KEY_ID, 7, "sealed /d"),
        ("/e", OTHER_KEY, 8, "new /e"),
    ] {
        let expected = Envelope {
            key_id,
            nonce: vec![nonce; 12],
            ciphertext: ciphertext.as_bytes().to_vec(),
        };
        assert_eq!(fixture.all(name).await[0].envelope, expected, "{name}");
    }
    assert!(fixture.all("/gone").await.is_empty());
    assert_eq!(repository.replace_envelopes(&[]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_thousand_versions_are_replaced_at_once() {
    let fixture = with_another_key().await;
    let repository = &fixture.database;
    for _ in 0..1_000 {
        fixture.append("/a", "value", 1).await;
    }
    let read = repository.versions_under(KEY_ID, 0, 1_001).await.unwrap();
    let versions: Vec<ResealedVersion> = read.iter().map(resealed).collect();
    assert_eq!(
        repository.replace_envelopes(&versions).await.unwrap(),
        1_000
    );
    assert_eq!(repository.keys_in_use().await.unwrap(), [OTHER_KEY]);
}

#[tokio::test]
async fn a_batch_has_a_size_limit_and_at_least_one_version() {
    let fixture = with_another_key().await;
    let repository = &fixture.database;
    let most = usize::try_from(BATCH_BYTES_MAX).unwrap();
    // Two versions have exactly the maximum length together, two exceed it by one byte, and one exceeds it alone.
    let lengths = [most - 1, 1, most - 1, 2, most + 1, 1];
    for _ in lengths {
        fixture.append("/a", "value", 1).await;
    }
    let read = repository.versions_under(KEY_ID, 0, 9).await.unwrap();
    for (version, length) in read.iter().zip(lengths) {
        let mut long = resealed(version);
        long.envelope.ciphertext = vec![9; length];
        repository.replace_envelopes(&[long]).await.unwrap();
    }
    let mut after = 0;
    for expected in [&lengths[..2], &lengths[2..3], &[2], &lengths[4..5], &[1]] {
        let batch = repository.versions_under(OTHER_KEY, after, 9).await;
        let batch = batch.unwrap();
        let found: Vec<usize> = batch
            .iter()
            .map(|version| version.envelope.ciphertext.len())
            .collect();
        assert_eq!(found, expected);
        after = batch.last().unwrap().sequence;
    }
    let rest = repository.versions_under(OTHER_KEY, after, 9).await;
    assert!(rest.unwrap().is_empty());
}

#[tokio::test]
async fn version_without_a_credential_is_in_a_batch_without_a_name() {
    let fixture = Fixture::new().await;
    fixture.append("/a", "value", 1).await;
    let disable_constraints = if is_on_postgres() {
        "set session_replication_role = replica"
    } else {
        "pragma foreign_keys = off"
    };
    let change = "update credential_version set credential_sequence = 99";
    fixture
        .change(&format!("{disable_constraints}; {change}"))
        .await;
    let batch = fixture.database.versions_under(KEY_ID, 0, 1).await.unwrap();
    assert_eq!(batch[0].name.as_str(), "");
}
