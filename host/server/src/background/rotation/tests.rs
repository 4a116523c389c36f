//! The results of passes over the versions of inactive keys.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use keywright_core::{
    Secret,
    credential::CredentialName,
    ports::{
        EncryptionKeyRepository, Envelope, KeyRotationRepository, KeyStanding, RecognitionFailure,
        RepositoryFailure, ResealedVersion, SealFailure, SealedPlace, SealedVersion, Sealer,
    },
};
use tokio::sync::watch;

use super::*;

const ACTIVE: Uuid = Uuid::from_u128(1);
const INACTIVE: Uuid = Uuid::from_u128(2);

/// A sealer that decrypts nothing.
struct NothingOpens;

#[async_trait]
impl Sealer for NothingOpens {
    async fn seal(&self, _: SealedPlace<'_>, _: &Secret) -> Result<Envelope, SealFailure> {
        unreachable!("nothing was opened")
    }

    fn open(&self, _: SealedPlace<'_>, _: &Envelope) -> Result<Secret, SealFailure> {
        Err(SealFailure::NotAuthentic)
    }

    fn standing(&self, key_id: Uuid) -> KeyStanding {
        if key_id == ACTIVE {
            KeyStanding::Active
        } else {
            KeyStanding::Inactive
        }
    }

    async fn recognise(&self, _: Uuid) -> Result<(), RecognitionFailure> {
        Ok(())
    }
}

/// Versions of the inactive key. Another key becomes active before this batch, counted from 0.
struct Versions {
    count: i64,
    batches: AtomicUsize,
    turned_before: usize,
}

#[async_trait]
impl KeyRotationRepository for Versions {
    async fn activate(&self, _: Uuid) -> Result<(), RepositoryFailure> {
        unreachable!("rotation makes no key active")
    }

    async fn activate_new(&self, _: Uuid) -> Result<(), RepositoryFailure> {
        unreachable!("rotation makes no key active")
    }

    async fn last_activated(&self) -> Result<Option<Uuid>, RepositoryFailure> {
        let batch = self.batches.fetch_add(1, Ordering::Relaxed);
        Ok(Some(if batch < self.turned_before {
            ACTIVE
        } else {
            INACTIVE
        }))
    }

    async fn keys_in_use(&self) -> Result<Vec<Uuid>, RepositoryFailure> {
        Ok(vec![INACTIVE])
    }

    async fn versions_under(
        &self,
        key_id: Uuid,
        after_sequence: i64,
        count_max: u32,
    ) -> Result<Vec<SealedVersion>, RepositoryFailure> {
        let last = self.count.min(after_sequence + i64::from(count_max));
        let version = |sequence: i64| SealedVersion {
            sequence,
            id: Uuid::from_u128(sequence.unsigned_abs().into()),
            name: CredentialName::from_stored("/a".to_owned()),
            envelope: Envelope {
                key_id,
                nonce: Vec::new(),
                ciphertext: Vec::new(),
            },
        };
        Ok((after_sequence + 1..=last).map(version).collect())
    }

    async fn replace_envelopes(&self, _: &[ResealedVersion]) -> Result<u64, RepositoryFailure> {
        unreachable!("nothing was opened")
    }
}

#[async_trait]
impl EncryptionKeyRepository for Versions {
    async fn encryptions_by_key(&self) -> Result<Vec<(Uuid, u64)>, RepositoryFailure> {
        Ok(Vec::new())
    }

    async fn versions_by_key(&self) -> Result<Vec<(Uuid, u64)>, RepositoryFailure> {
        Ok(vec![(INACTIVE, self.count.unsigned_abs())])
    }
}

fn rotation(count: i64, turned_before: usize) -> Rotation<LogReporter> {
    let sealer: Arc<dyn Sealer> = Arc::new(NothingOpens);
    let versions = Arc::new(Versions {
        count,
        batches: AtomicUsize::new(0),
        turned_before,
    });
    let rotate = RotateKeys {
        repository: Arc::<Versions>::clone(&versions),
        sealer: Arc::clone(&sealer),
    };
    let usage = EncryptionKeys {
        repository: versions,
        sealer,
    };
    let config = RotationConfig {
        pause_milliseconds: 0.try_into().unwrap(),
        ..RotationConfig::default()
    };
    Rotation::new(rotate, usage, config, LogReporter::default())
}

#[tokio::test]
async fn failures_count_in_each_pass_even_if_already_reported() {
    let count = KNOWN_FAILURES_MAX as u64 + 1;
    let mut rotation = rotation(count.cast_signed(), usize::MAX);
    for _ in 0..2 {
        let never = watch::Sender::new(false);
        rotation.run(Stop::requested_by(&never)).await.unwrap();
        let completed = rotation.completed().unwrap();
        assert_eq!((completed.rotated, completed.failed), (0, count));
    }
}

#[tokio::test]
async fn a_stopped_or_superseded_pass_is_not_completed() {
    for (is_requested, turned_before) in [(true, usize::MAX), (false, 1)] {
        let mut rotation = rotation(1_000, turned_before);
        let ending = watch::Sender::new(is_requested);
        rotation.run(Stop::requested_by(&ending)).await.unwrap();
        assert_eq!(rotation.completed(), None);
    }
}

#[test]
fn a_failure_is_new_only_once_and_up_to_the_maximum() {
    let mut known = KnownFailures::default();
    let id = |number: usize| Uuid::from_u128(number as u128);
    for number in 0..KNOWN_FAILURES_MAX {
        assert!(known.insert(id(number)));
        assert!(!known.insert(id(number)));
    }
    assert!(!known.insert(id(KNOWN_FAILURES_MAX)));
}
