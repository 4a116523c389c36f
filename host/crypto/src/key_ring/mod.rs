//! The keys that encrypt stored values, and recognizing the configured keys by their records.

mod configured;
mod data_key;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt,
    sync::Arc,
};

use keywright_core::{
    Secret,
    ports::{Envelope, KeyRecord, KeyStatus, SealContext, SealError},
};
use uuid::Uuid;
use zeroize::Zeroizing;

pub use configured::{
    ComparisonError, ConfiguredKey, ConfiguredKeys, KeyRingError, KeySource,
    PASSWORD_ITERATIONS_MIN, RawKey, RawKeyError, RecordError, WrappingKey,
};
use data_key::{DataKey, is_record_of, is_well_formed};
pub use data_key::{DerivationError, PASSWORD_ITERATIONS_MAX, WRAPPED_KEY_BYTES_MAX};

/// The recognized encryption keys. All of them decrypt, and the active one encrypts. [`Recognition`] creates the key ring from
/// [`ConfiguredKeys`] and stored [`KeyRecord`]s.
///
/// Keys encrypt with AES-256-GCM and random nonces of 96 bits, which is secure for 2³² values. The caller of [`KeyRing::seal`]
/// must ensure that no key encrypts more than [`ENCRYPTIONS_PER_KEY_MAX`] values.
pub struct KeyRing {
    active: Uuid,
    keys: HashMap<Uuid, Arc<DataKey>>,
}

impl KeyRing {
    /// Returns the id of the active key.
    pub fn active_key_id(&self) -> Uuid {
        self.active
    }

    /// Returns the ids of all keys, in no particular order.
    pub fn key_ids(&self) -> impl Iterator<Item = Uuid> {
        self.keys.keys().copied()
    }

    /// Derives a key for another purpose from the active key. Different labels result in independent keys, which reveal nothing
    /// about the active key.
    pub fn derive(&self, label: &str) -> Result<Zeroizing<[u8; 32]>, DerivationError> {
        self.derive_from(&self.active, label)
    }

    /// Derives a key from each of the other keys, in no particular order: the results of [`Self::derive`] while they were active.
    pub fn derive_from_others(
        &self,
        label: &str,
    ) -> Result<Vec<Zeroizing<[u8; 32]>>, DerivationError> {
        let others = self.keys.keys().filter(|id| **id != self.active);
        others.map(|id| self.derive_from(id, label)).collect()
    }

    fn derive_from(
        &self,
        key_id: &Uuid,
        label: &str,
    ) -> Result<Zeroizing<[u8; 32]>, DerivationError> {
        let key = self.keys.get(key_id).ok_or(DerivationError)?;
        key.derive(label)
    }

    /// Encrypts with the active key. The result can only be decrypted with the same `context`.
    pub fn seal(
        &self,
        context: SealContext<'_>,
        plaintext: &Secret,
    ) -> Result<Envelope, SealError> {
        let key = self
            .keys
            .get(&self.active)
            .ok_or(SealError::SealingFailed)?;
        let (nonce, ciphertext) = key
            .encrypt(&associated_data(context), plaintext.expose().as_bytes())
            .ok_or(SealError::SealingFailed)?;
        Ok(Envelope {
            key_id: self.active,
            nonce,
            ciphertext,
        })
    }

    /// Decrypts an envelope.
    pub fn open(&self, context: SealContext<'_>, envelope: &Envelope) -> Result<Secret, SealError> {
        let key = self
            .keys
            .get(&envelope.key_id)
            .ok_or(SealError::KeyUnknown(envelope.key_id))?;
        let plaintext = key
            .decrypt(
                &associated_data(context),
                &envelope.nonce,
                &envelope.ciphertext,
            )
            .ok_or(SealError::NotAuthentic)?;
        String::from_utf8(plaintext)
            .map(Secret::new)
            .map_err(|error| {
                drop(Zeroizing::new(error.into_bytes()));
                SealError::NotAuthentic
            })
    }

    /// Returns whether the key with this id is active, inactive or unknown.
    pub fn status(&self, key_id: Uuid) -> KeyStatus {
        if key_id == self.active {
            KeyStatus::Active
        } else if self.keys.contains_key(&key_id) {
            KeyStatus::Inactive
        } else {
            KeyStatus::Unknown
        }
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("KeyRing")
            .field("active", &self.active)
            .field("keys", &self.keys.keys())
            .finish()
    }
}

/// The maximum number of values per key. NIST SP 800-38D (8.3) allows 2³² with random nonces of 96 bits. The difference leaves room
/// for canaries.
pub const ENCRYPTIONS_PER_KEY_MAX: u64 = (1 << 32) - (1 << 16);

/// The number of encrypted values at which the server warns that a new key is needed.
pub const ENCRYPTIONS_PER_KEY_WARNED: u64 = 1 << 31;

/// Encodes the record unambiguously: one byte for the format, sixteen bytes for the version's id, and the name.
fn associated_data(context: SealContext<'_>) -> Vec<u8> {
    let name = context.name.folded().as_bytes();
    [
        &[RECORD_FORMAT],
        context.version_id.as_bytes().as_slice(),
        name,
    ]
    .concat()
}

/// The format of the associated data. Every format has its own number, so encodings of different formats always differ.
const RECORD_FORMAT: u8 = 1;

/// The result of comparing the configured keys with the records so far. No record is compared twice.
#[derive(Clone, Default)]
pub struct Recognition {
    keys: HashMap<Uuid, Arc<DataKey>>,
    active: Option<Uuid>,
    compared: HashSet<Uuid>,
    recognized_indexes: BTreeSet<usize>,
}

/// No stored value can be decrypted. Contains the ids of the keys that the values need.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no configured encryption key can decrypt any of the stored values, which need the keys {}; add them to \
     encryption.keys, or restore the right database",
    .0.iter().map(Uuid::to_string).collect::<Vec<_>>().join(", ")
)]
pub struct NoMatchingKeyError(pub Vec<Uuid>);

impl Recognition {
    /// Compares the configured keys with the records that were not compared before. After a failure, it continues with the other
    /// records and keys, and returns the first error. A record without a result can be compared again.
    ///
    /// A key may have several records. All of them decrypt; the oldest one encrypts, so that all servers agree.
    pub async fn compare(
        &mut self,
        configured: &ConfiguredKeys,
        records: &[KeyRecord],
    ) -> Result<(), ComparisonError> {
        let mut records: Vec<&KeyRecord> = records
            .iter()
            .filter(|record| !self.was_compared(record.id))
            .collect();
        records.sort_by_key(|record| (record.created_at, record.id));
        let mut outcome = Ok(());
        for record in records {
            let compared = self.compare_one(configured, record).await;
            outcome = outcome.and(compared);
        }
        outcome
    }

    /// Returns whether the record of this key was compared. If it was and the key is unknown, the key is not configured.
    pub fn was_compared(&self, key_id: Uuid) -> bool {
        self.compared.contains(&key_id)
    }

    /// Returns the ids of all compared records.
    pub fn compared(&self) -> impl Iterator<Item = Uuid> {
        self.compared.iter().copied()
    }

    /// Returns the indexes of the configured keys without a record.
    pub fn unrecognized(&self, configured: &ConfiguredKeys) -> Vec<usize> {
        (0..configured.all().len())
            .filter(|index| !self.recognized_indexes.contains(index))
            .collect()
    }

    /// Checks that at least one of the keys of stored values is known: a server with wrong keys must not start.
    ///
    /// # Errors
    /// If values are stored, and all of their keys are unknown.
    pub fn check(&self, in_use: &[Uuid]) -> Result<(), NoMatchingKeyError> {
        if in_use.is_empty() || in_use.iter().any(|id| self.keys.contains_key(id)) {
            return Ok(());
        }
        Err(NoMatchingKeyError(in_use.to_vec()))
    }

    /// Returns the recognized keys, or `None` if the active key is not recognized yet.
    pub fn key_ring(&self) -> Option<KeyRing> {
        Some(KeyRing {
            active: self.active?,
            keys: self.keys.clone(),
        })
    }

    /// Returns the recognized keys for decryption. The key ring can't encrypt if the active key is not recognized yet.
    pub fn key_ring_to_read(&self) -> KeyRing {
        KeyRing {
            active: self.active.unwrap_or_default(),
            keys: self.keys.clone(),
        }
    }

    async fn compare_one(
        &mut self,
        configured: &ConfiguredKeys,
        record: &KeyRecord,
    ) -> Result<(), ComparisonError> {
        if !is_well_formed(record) {
            return Err(ComparisonError::RecordMalformed(record.id));
        }
        let mut outcome = Ok(());
        for (index, key) in configured.all().iter().enumerate() {
            let data_key = match key.source.data_key(&record.derivation).await {
                Ok(Some(data_key)) if is_record_of(record, &data_key) => data_key,
                Ok(_) => continue,
                Err(failure) => {
                    outcome = outcome.and(Err(failure));
                    continue;
                }
            };
            self.keys.insert(record.id, Arc::new(data_key));
            self.recognized_indexes.insert(index);
            if index == configured.active() && self.active.is_none() {
                self.active = Some(record.id);
            }
            outcome = Ok(());
            break;
        }
        if outcome.is_ok() {
            self.compared.insert(record.id);
        }
        outcome
    }
}
