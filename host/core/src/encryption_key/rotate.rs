//! Encrypting with the active key what others encrypt.

use std::{future::poll_fn, sync::Arc, task::Poll};

use uuid::Uuid;

use crate::{
    Failure,
    ports::{
        KeyRotationRepository, KeyStanding, ResealedVersion, SealFailure, SealedPlace,
        SealedVersion, Sealer,
    },
};

/// Encrypts with the active key what others encrypt, batch by batch. There is no state but the versions themselves: whoever
/// goes on where another one stopped finds what is left.
///
/// It acts for nobody, so it has no permits, and nothing but what is sealed goes through it: it opens each version and seals it
/// again for the very place where it was, and no content leaves it.
#[derive(Clone)]
pub struct RotateKeys {
    /// Where the versions are.
    pub repository: Arc<dyn KeyRotationRepository>,
    /// What opens them and seals them again.
    pub sealer: Arc<dyn Sealer>,
}

/// What became of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RotatedBatch {
    /// How many versions are under the active key now.
    pub rotated: u64,
    /// How many were deleted meanwhile, or encrypted anew by somebody else.
    pub gone: u64,
    /// Those that don't decrypt: they were changed, or don't belong where they stand. They stay as they are.
    pub failed: Vec<Uuid>,
    /// Where the next batch begins; none when there is none.
    pub last_sequence: Option<i64>,
}

impl RotateKeys {
    /// Whether what is encrypted is to be encrypted with the key that is active here. Of servers that have different ones it is
    /// that of the server that started last, so that no two of them encrypt the same versions anew again and again.
    ///
    /// # Errors
    /// When the database can't answer.
    pub async fn is_towards_active_key(&self) -> Result<bool, Failure> {
        let last = self.repository.last_activated().await?;
        Ok(last.is_some_and(|key_id| self.sealer.standing(key_id) == KeyStanding::Active))
    }

    /// The keys that are configured, not active, and still needed.
    ///
    /// # Errors
    /// When the database can't answer.
    pub async fn keys_to_rotate(&self) -> Result<Vec<Uuid>, Failure> {
        let mut key_ids = self.repository.keys_in_use().await?;
        key_ids.retain(|&key_id| self.sealer.standing(key_id) == KeyStanding::Inactive);
        Ok(key_ids)
    }

    /// Encrypts anew the next versions under a key, at most so many. All of it but the writing is done outside of the
    /// transaction.
    ///
    /// # Errors
    /// When the database can't answer, the key is not configured any more, or nothing can be sealed; then nothing was changed.
    pub async fn rotate_batch(
        &self,
        key_id: Uuid,
        after_sequence: i64,
        count_max: u32,
    ) -> Result<RotatedBatch, Failure> {
        let versions = self
            .repository
            .versions_under(key_id, after_sequence, count_max)
            .await?;
        let mut batch = RotatedBatch {
            last_sequence: versions.last().map(|version| version.sequence),
            ..RotatedBatch::default()
        };
        let mut resealed = Vec::with_capacity(versions.len());
        for (place, version) in versions.into_iter().enumerate() {
            if place % VERSIONS_BEFORE_PAUSE == VERSIONS_BEFORE_PAUSE - 1 {
                let_others_run().await;
            }
            match self.reseal(&version).await {
                Ok(version) => resealed.push(version),
                Err(SealFailure::NotAuthentic) => batch.failed.push(version.id),
                Err(failure) => return Err(failure.into()),
            }
        }
        if !resealed.is_empty() {
            batch.rotated = self.repository.replace_envelopes(&resealed).await?;
        }
        let resealed_count = u64::try_from(resealed.len()).unwrap_or(u64::MAX);
        batch.gone = resealed_count.saturating_sub(batch.rotated);
        Ok(batch)
    }

    /// Opens a version and seals it again for the same place.
    async fn reseal(&self, version: &SealedVersion) -> Result<ResealedVersion, SealFailure> {
        let place = SealedPlace {
            version_id: version.id,
            name: &version.name.lookup(),
        };
        let content = self.sealer.open(place, &version.envelope)?;
        Ok(ResealedVersion {
            sequence: version.sequence,
            key_id_before: version.envelope.key_id,
            nonce_before: version.envelope.nonce.clone(),
            envelope: self.sealer.seal(place, &content).await?,
        })
    }
}

/// Gives the thread to whoever waits for it, requests among them, and goes on afterwards.
async fn let_others_run() {
    let mut has_waited = false;
    poll_fn(|context| {
        if has_waited {
            return Poll::Ready(());
        }
        has_waited = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// How many versions are encrypted anew without a pause: of the longest ones, not a millisecond of work.
const VERSIONS_BEFORE_PAUSE: usize = 8;

#[cfg(test)]
mod tests {
    use std::{pin::pin, sync::Mutex};

    use async_trait::async_trait;

    use super::*;
    use crate::{
        Secret,
        credential::CredentialName,
        ports::{Envelope, RecognitionFailure, RepositoryFailure},
    };

    const ACTIVE: Uuid = Uuid::from_u128(1);
    const INACTIVE: Uuid = Uuid::from_u128(2);
    const UNKNOWN: Uuid = Uuid::from_u128(3);

    /// What is sealed says for which place; the nonce is counted up.
    struct Sealing;

    fn sealed(key_id: Uuid, place: SealedPlace<'_>, nonce: u8, content: &str) -> Envelope {
        let text = format!("{} {} {content}", place.version_id, place.name.folded());
        Envelope {
            key_id,
            nonce: vec![nonce],
            ciphertext: text.into_bytes(),
        }
    }

    #[async_trait]
    impl Sealer for Sealing {
        async fn seal(
            &self,
            place: SealedPlace<'_>,
            plaintext: &Secret,
        ) -> Result<Envelope, SealFailure> {
            Ok(sealed(ACTIVE, place, 9, plaintext.expose()))
        }

        fn open(&self, place: SealedPlace<'_>, envelope: &Envelope) -> Result<Secret, SealFailure> {
            if self.standing(envelope.key_id) == KeyStanding::Unknown {
                return Err(SealFailure::KeyUnknown(envelope.key_id));
            }
            let text = String::from_utf8(envelope.ciphertext.clone()).unwrap();
            let place = format!("{} {} ", place.version_id, place.name.folded());
            let content = text.strip_prefix(&place);
            content
                .map(|content| Secret::new(content.to_owned()))
                .ok_or(SealFailure::NotAuthentic)
        }

        fn standing(&self, key_id: Uuid) -> KeyStanding {
            match key_id {
                ACTIVE => KeyStanding::Active,
                INACTIVE => KeyStanding::Inactive,
                _ => KeyStanding::Unknown,
            }
        }

        async fn recognise(&self, _key_id: Uuid) -> Result<(), RecognitionFailure> {
            Ok(())
        }
    }

    #[derive(Default)]
    struct Rows {
        versions: Mutex<Vec<SealedVersion>>,
        /// Changed by somebody else after it was read.
        changed_meanwhile: Option<i64>,
        last_activated: Option<Uuid>,
    }

    #[async_trait]
    impl KeyRotationRepository for Rows {
        async fn activate(&self, _: Uuid) -> Result<(), RepositoryFailure> {
            unreachable!("rotation makes no key active")
        }

        async fn activate_new(&self, _: Uuid) -> Result<(), RepositoryFailure> {
            unreachable!("rotation makes no key active")
        }

        async fn last_activated(&self) -> Result<Option<Uuid>, RepositoryFailure> {
            Ok(self.last_activated)
        }

        async fn keys_in_use(&self) -> Result<Vec<Uuid>, RepositoryFailure> {
            let versions = self.versions.lock().unwrap();
            Ok(versions.iter().map(|one| one.envelope.key_id).collect())
        }

        async fn versions_under(
            &self,
            key_id: Uuid,
            after_sequence: i64,
            count_max: u32,
        ) -> Result<Vec<SealedVersion>, RepositoryFailure> {
            let versions = self.versions.lock().unwrap();
            let behind = versions
                .iter()
                .filter(|one| one.envelope.key_id == key_id && one.sequence > after_sequence);
            Ok(behind.take(count_max as usize).cloned().collect())
        }

        async fn replace_envelopes(
            &self,
            resealed: &[ResealedVersion],
        ) -> Result<u64, RepositoryFailure> {
            let mut versions = self.versions.lock().unwrap();
            let mut replaced = 0;
            for new in resealed {
                let is_changed = self.changed_meanwhile == Some(new.sequence);
                let mut rows = versions.iter_mut();
                let row = rows.find(|row| row.sequence == new.sequence).unwrap();
                assert_eq!(row.envelope.key_id, new.key_id_before);
                assert_eq!(row.envelope.nonce, new.nonce_before);
                if !is_changed {
                    row.envelope = new.envelope.clone();
                    replaced += 1;
                }
            }
            Ok(replaced)
        }
    }

    fn version(sequence: u8, key_id: Uuid) -> SealedVersion {
        let id = Uuid::from_u128(u128::from(sequence) << 64);
        let name = CredentialName::from_stored(format!("/Name/{sequence}"));
        let place = SealedPlace {
            version_id: id,
            name: &name.lookup(),
        };
        SealedVersion {
            sequence: sequence.into(),
            id,
            envelope: sealed(key_id, place, sequence, "secret"),
            name,
        }
    }

    fn rotation(rows: Rows) -> (Arc<Rows>, RotateKeys) {
        let rows = Arc::new(rows);
        let rotate = RotateKeys {
            repository: Arc::<Rows>::clone(&rows),
            sealer: Arc::new(Sealing),
        };
        (rows, rotate)
    }

    #[tokio::test]
    async fn a_version_is_sealed_again_for_the_place_where_it_was() {
        let versions = Mutex::new(vec![version(1, INACTIVE), version(2, ACTIVE)]);
        let (rows, rotate) = rotation(Rows {
            versions,
            ..Rows::default()
        });
        let batch = rotate.rotate_batch(INACTIVE, 0, 10).await.unwrap();
        assert_eq!((batch.rotated, batch.last_sequence), (1, Some(1)));
        let before = version(1, INACTIVE);
        let after = rows.versions.lock().unwrap()[0].clone();
        assert_eq!(
            (after.envelope.key_id, after.envelope.nonce),
            (ACTIVE, vec![9])
        );
        assert_eq!(after.envelope.ciphertext, before.envelope.ciphertext);
        let next = rotate.rotate_batch(INACTIVE, 1, 10).await.unwrap();
        assert_eq!(next, RotatedBatch::default());
    }

    #[tokio::test]
    async fn what_does_not_decrypt_or_was_changed_meanwhile_stays_and_holds_nothing_up() {
        let mut damaged = version(2, INACTIVE);
        damaged.envelope.ciphertext = version(1, INACTIVE).envelope.ciphertext;
        let (rows, rotate) = rotation(Rows {
            versions: Mutex::new(vec![
                version(1, INACTIVE),
                damaged.clone(),
                version(3, INACTIVE),
            ]),
            changed_meanwhile: Some(1),
            ..Rows::default()
        });
        let batch = rotate.rotate_batch(INACTIVE, 0, 10).await.unwrap();
        let expected = RotatedBatch {
            rotated: 1,
            gone: 1,
            failed: vec![damaged.id],
            last_sequence: Some(3),
        };
        assert_eq!(batch, expected);
        let key_ids = rotate.keys_to_rotate().await.unwrap();
        assert_eq!(key_ids, [INACTIVE, INACTIVE]);
        let versions = rows.versions.lock().unwrap();
        assert_eq!(versions[1].envelope, damaged.envelope);
        assert_eq!(versions[2].envelope.key_id, ACTIVE);
    }

    #[tokio::test]
    async fn others_run_between_the_versions_of_a_batch() {
        let versions = (1..=100).map(|sequence| version(sequence, INACTIVE));
        let (_, rotate) = rotation(Rows {
            versions: Mutex::new(versions.collect()),
            ..Rows::default()
        });
        let mut rotating = pin!(rotate.rotate_batch(INACTIVE, 0, 100));
        let mut pauses = 0;
        let batch = poll_fn(|context| {
            let polled = rotating.as_mut().poll(context);
            pauses += usize::from(polled.is_pending());
            polled
        });
        assert_eq!(batch.await.unwrap().rotated, 100);
        assert_eq!(pauses, 100 / VERSIONS_BEFORE_PAUSE);
    }

    #[tokio::test]
    async fn only_keys_that_are_configured_and_not_active_are_rotated() {
        let versions = Mutex::new(vec![version(1, ACTIVE), version(2, UNKNOWN)]);
        let (_, rotate) = rotation(Rows {
            versions,
            ..Rows::default()
        });
        assert!(rotate.keys_to_rotate().await.unwrap().is_empty());
        assert!(matches!(
            rotate.rotate_batch(UNKNOWN, 0, 10).await,
            Err(Failure::Seal(SealFailure::KeyUnknown(UNKNOWN)))
        ));
    }

    #[tokio::test]
    async fn it_goes_towards_the_key_of_the_last_start_alone() {
        for (last_activated, is_towards) in
            [(None, false), (Some(INACTIVE), false), (Some(ACTIVE), true)]
        {
            let (_, rotate) = rotation(Rows {
                last_activated,
                ..Rows::default()
            });
            assert_eq!(rotate.is_towards_active_key().await.unwrap(), is_towards);
        }
    }
}
