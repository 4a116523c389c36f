//! Encryption keys: their usage, and re-encrypting versions with the active key.

use std::sync::Arc;

use uuid::Uuid;

use crate::{
    UseCaseError,
    pace::Pace,
    ports::{
        EncryptionKeyRepository, KeyRotationRepository, KeyStatus, ResealedVersion, SealContext,
        SealError, SealedVersion, Sealer,
    },
};

/// The use cases of encryption keys.
#[derive(Clone)]
pub struct EncryptionKeys {
    /// The records of the keys.
    pub repository: Arc<dyn EncryptionKeyRepository>,
    /// The configured keys.
    pub sealer: Arc<dyn Sealer>,
}

/// The numbers of credential versions by encryption key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyUsage {
    /// The versions encrypted with the active key.
    pub active_key: u64,
    /// The versions encrypted with other configured keys.
    pub inactive_keys: u64,
    /// The versions encrypted with keys that are not configured.
    pub unknown_keys: u64,
}

/// An encryption key with the number of credential versions that it encrypts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedKey {
    /// The id of its record.
    pub id: Uuid,
    /// Whether it is configured on this server, and whether it is active.
    pub status: KeyStatus,
    /// The number of versions.
    pub versions: u64,
}

impl KeyUsage {
    /// Adds up the versions of keys with the same status.
    #[must_use]
    pub fn of(keys: &[UsedKey]) -> Self {
        let mut usage = Self::default();
        for key in keys {
            let counted = match key.status {
                KeyStatus::Active => &mut usage.active_key,
                KeyStatus::Inactive => &mut usage.inactive_keys,
                KeyStatus::Unknown => &mut usage.unknown_keys,
            };
            *counted = counted.saturating_add(key.versions);
        }
        usage
    }
}

impl EncryptionKeys {
    /// Counts the versions of all credentials by the status of their encryption key. A rotation is complete when no version is
    /// encrypted with the old key.
    pub async fn usage(&self) -> Result<KeyUsage, UseCaseError> {
        Ok(KeyUsage::of(&self.used().await?))
    }

    /// Returns the encryption keys with a record, in no particular order, and counts their versions. The ids and the numbers reveal
    /// no credential, so every authenticated caller may read them.
    pub async fn used(&self) -> Result<Vec<UsedKey>, UseCaseError> {
        let mut keys = Vec::new();
        for (id, versions) in self.repository.versions_by_key().await? {
            // A key that can't currently be compared with the configured keys counts as not configured.
            let _ = self.sealer.recognize(id).await;
            keys.push(UsedKey {
                id,
                status: self.sealer.status(id),
                versions,
            });
        }
        Ok(keys)
    }

    /// Returns the number of encryptions that all servers have reserved for the active key so far.
    pub async fn active_encryptions(&self) -> Result<u64, UseCaseError> {
        let counted = self.repository.encryptions_by_key().await?.into_iter();
        let mut active =
            counted.filter(|(key_id, _)| self.sealer.status(*key_id) == KeyStatus::Active);
        Ok(active.next().map_or(0, |(_, encryptions)| encryptions))
    }
}

/// Re-encrypts versions of inactive keys with the active key, batch by batch. The versions are the only state, so an
/// interrupted rotation can be resumed at any time by any server.
///
/// It acts for no caller, so it needs no permits. It decrypts each version and encrypts it again for the same record; no
/// plaintext leaves it.
#[derive(Clone)]
pub struct RotateKeys {
    /// The versions.
    pub repository: Arc<dyn KeyRotationRepository>,
    /// Decrypts and encrypts versions.
    pub sealer: Arc<dyn Sealer>,
}

/// The result of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RotatedBatch {
    /// The number of versions encrypted with the active key.
    pub rotated: u64,
    /// The number of versions that were concurrently deleted or re-encrypted.
    pub gone: u64,
    /// The versions that can't be decrypted because they were modified or moved from another record. They stay unchanged.
    pub failed: Vec<Uuid>,
    /// The last sequence of the batch, after which the next batch begins; `None` if the batch was empty.
    pub last_sequence: Option<i64>,
}

impl RotateKeys {
    /// Returns whether this server's active key is the target of rotations. If servers have different active keys, the
    /// target is the key of the server that started last, so that two servers don't repeatedly re-encrypt the same versions.
    pub async fn is_towards_active_key(&self) -> Result<bool, UseCaseError> {
        let last = self.repository.last_activated().await?;
        Ok(last.is_some_and(|key_id| self.sealer.status(key_id) == KeyStatus::Active))
    }

    /// Returns the inactive configured keys that still encrypt versions.
    pub async fn keys_to_rotate(&self) -> Result<Vec<Uuid>, UseCaseError> {
        let mut key_ids = self.repository.keys_in_use().await?;
        key_ids.retain(|&key_id| self.sealer.status(key_id) == KeyStatus::Inactive);
        Ok(key_ids)
    }

    /// Re-encrypts the next versions of a key, at most `count_max`. The transaction only covers the writes.
    ///
    /// # Errors
    /// If the database fails, the key is not configured any more, or encryption fails. Nothing is changed then.
    pub async fn rotate_batch(
        &self,
        key_id: Uuid,
        after_sequence: i64,
        count_max: u32,
    ) -> Result<RotatedBatch, UseCaseError> {
        let versions = self
            .repository
            .versions_under(key_id, after_sequence, count_max)
            .await?;
        let mut batch = RotatedBatch {
            last_sequence: versions.last().map(|version| version.sequence),
            ..RotatedBatch::default()
        };
        let mut resealed = Vec::with_capacity(versions.len());
        let mut pace = Pace::default();
        for version in versions {
            pace.step().await;
            match self.reseal(&version).await {
                Ok(version) => resealed.push(version),
                Err(SealError::NotAuthentic) => batch.failed.push(version.id),
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

    /// Decrypts a version and encrypts it again for the same record.
    async fn reseal(&self, version: &SealedVersion) -> Result<ResealedVersion, SealError> {
        let record = SealContext {
            version_id: version.id,
            name: &version.name.lookup(),
        };
        let content = self.sealer.open(record, &version.envelope)?;
        Ok(ResealedVersion {
            sequence: version.sequence,
            key_id_before: version.envelope.key_id,
            nonce_before: version.envelope.nonce.clone(),
            envelope: self.sealer.seal(record, &content).await?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, pin::pin, sync::Mutex};

    use async_trait::async_trait;

    use crate::{
        Secret,
        credential::CredentialName,
        pace::STEPS_BEFORE_YIELD,
        ports::{Envelope, RecognitionError, RepositoryError},
    };

    use super::*;

    const ACTIVE: Uuid = Uuid::from_u128(1);
    const INACTIVE: Uuid = Uuid::from_u128(2);
    const UNKNOWN: Uuid = Uuid::from_u128(3);

    /// A sealer whose ciphertext names the record and contains the plaintext.
    struct Sealing;

    fn sealed(key_id: Uuid, record: SealContext<'_>, nonce: u8, content: &str) -> Envelope {
        let text = format!("{} {} {content}", record.version_id, record.name.folded());
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
            record: SealContext<'_>,
            plaintext: &Secret,
        ) -> Result<Envelope, SealError> {
            Ok(sealed(ACTIVE, record, 9, plaintext.expose()))
        }

        fn open(&self, record: SealContext<'_>, envelope: &Envelope) -> Result<Secret, SealError> {
            if self.status(envelope.key_id) == KeyStatus::Unknown {
                return Err(SealError::KeyUnknown(envelope.key_id));
            }
            let text = String::from_utf8(envelope.ciphertext.clone()).unwrap();
            let record = format!("{} {} ", record.version_id, record.name.folded());
            let content = text.strip_prefix(&record);
            content
                .map(|content| Secret::new(content.to_owned()))
                .ok_or(SealError::NotAuthentic)
        }

        fn status(&self, key_id: Uuid) -> KeyStatus {
            match key_id {
                ACTIVE => KeyStatus::Active,
                INACTIVE => KeyStatus::Inactive,
                _ => KeyStatus::Unknown,
            }
        }

        async fn recognize(&self, _key_id: Uuid) -> Result<(), RecognitionError> {
            Ok(())
        }
    }

    #[derive(Default)]
    struct Rows {
        versions: Mutex<Vec<SealedVersion>>,
        /// The sequence of a version that is concurrently changed after it was read.
        changed_meanwhile: Option<i64>,
        last_activated: Option<Uuid>,
    }

    #[async_trait]
    impl KeyRotationRepository for Rows {
        async fn activate(&self, _: Uuid) -> Result<(), RepositoryError> {
            unreachable!("rotation activates no key")
        }

        async fn activate_new(&self, _: Uuid) -> Result<(), RepositoryError> {
            unreachable!("rotation activates no key")
        }

        async fn last_activated(&self) -> Result<Option<Uuid>, RepositoryError> {
            Ok(self.last_activated)
        }

        async fn keys_in_use(&self) -> Result<Vec<Uuid>, RepositoryError> {
            let versions = self.versions.lock().unwrap();
            Ok(versions.iter().map(|one| one.envelope.key_id).collect())
        }

        async fn versions_under(
            &self,
            key_id: Uuid,
            after_sequence: i64,
            count_max: u32,
        ) -> Result<Vec<SealedVersion>, RepositoryError> {
            let versions = self.versions.lock().unwrap();
            let following = versions
                .iter()
                .filter(|one| one.envelope.key_id == key_id && one.sequence > after_sequence);
            Ok(following.take(count_max as usize).cloned().collect())
        }

        async fn replace_envelopes(
            &self,
            resealed: &[ResealedVersion],
        ) -> Result<u64, RepositoryError> {
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
        let record = SealContext {
            version_id: id,
            name: &name.lookup(),
        };
        SealedVersion {
            sequence: sequence.into(),
            id,
            envelope: sealed(key_id, record, sequence, "secret"),
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
    async fn a_version_is_re_encrypted_for_the_same_record() {
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
    async fn undecryptable_and_concurrently_changed_versions_are_skipped() {
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
    async fn a_batch_yields_between_its_versions() {
        let versions = (1..=100).map(|sequence| version(sequence, INACTIVE));
        let (_, rotate) = rotation(Rows {
            versions: Mutex::new(versions.collect()),
            ..Rows::default()
        });
        let mut rotating = pin!(rotate.rotate_batch(INACTIVE, 0, 100));
        let mut yields = 0;
        let batch = poll_fn(|context| {
            let polled = rotating.as_mut().poll(context);
            yields += usize::from(polled.is_pending());
            polled
        });
        assert_eq!(batch.await.unwrap().rotated, 100);
        assert_eq!(yields, 100 / STEPS_BEFORE_YIELD);
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
            Err(UseCaseError::Seal(SealError::KeyUnknown(UNKNOWN)))
        ));
    }

    #[tokio::test]
    async fn only_the_active_key_of_the_last_started_server_is_the_target() {
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
