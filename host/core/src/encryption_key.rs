//! Encryption keys: their usage, and re-encrypting versions with the active key.

use std::sync::Arc;

use uuid::Uuid;

use crate::{
    UseCaseError,
    credential::Pace,
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

    /// Returns the encryption keys with a record or a version, in no particular order, and counts their versions. The ids and the
    /// numbers reveal no credential, so every authenticated caller may read them.
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
