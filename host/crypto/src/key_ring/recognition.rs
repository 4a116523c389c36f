//! Recognizes the configured keys by their records.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use keywright_core::ports::KeyManagementFailure;
use uuid::Uuid;

use super::{
    DerivationFailed, KeyRing,
    configured::{ConfiguredKeys, KeyNotGiven},
    data_key::DataKey,
    record::KeyRecord,
};

/// The result of comparing the configured keys with the records so far. No record is compared twice.
#[derive(Clone, Default)]
pub struct Recognition {
    keys: HashMap<Uuid, Arc<DataKey>>,
    active: Option<Uuid>,
    compared: HashSet<Uuid>,
    recognized_indexes: BTreeSet<usize>,
}

/// Why a record could not be compared with the configured keys.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonFailed {
    /// The derivation of a key failed.
    #[error(transparent)]
    DerivationFailed(#[from] DerivationFailed),
    /// A key management service failed.
    #[error(transparent)]
    KeyManagement(#[from] KeyManagementFailure),
    /// A stored record is malformed.
    #[error("the stored record of the encryption key {0} is malformed")]
    RecordMalformed(Uuid),
}

/// No stored value can be decrypted. Lists the keys that the values need.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "values are stored, and none of the configured encryption keys is the key of any of them; they need the keys {}",
    .0.iter().map(Uuid::to_string).collect::<Vec<_>>().join(", ")
)]
pub struct NoStoredValueOpens(pub Vec<Uuid>);

impl Recognition {
    /// Compares the configured keys with the records that were not compared before. After a failure, it continues with the other
    /// records and keys, and returns the first error. A record without a result can be compared again.
    ///
    /// A key may have several records. All of them decrypt; the oldest one encrypts, so that all servers agree.
    pub async fn compare(
        &mut self,
        configured: &ConfiguredKeys,
        records: &[KeyRecord],
    ) -> Result<(), ComparisonFailed> {
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
    #[must_use]
    pub fn was_compared(&self, key_id: Uuid) -> bool {
        self.compared.contains(&key_id)
    }

    /// Returns the ids of all compared records.
    pub fn compared(&self) -> impl Iterator<Item = Uuid> {
        self.compared.iter().copied()
    }

    /// Returns the indexes of the configured keys without a record.
    #[must_use]
    pub fn unrecognised(&self, configured: &ConfiguredKeys) -> Vec<usize> {
        (0..configured.all().len())
            .filter(|index| !self.recognized_indexes.contains(index))
            .collect()
    }

    /// Checks that at least one of the keys of stored values is known: a server with wrong keys must not start.
    ///
    /// # Errors
    /// If values are stored, and none of their keys is known.
    pub fn check(&self, in_use: &[Uuid]) -> Result<(), NoStoredValueOpens> {
        if in_use.is_empty() || in_use.iter().any(|id| self.keys.contains_key(id)) {
            return Ok(());
        }
        Err(NoStoredValueOpens(in_use.to_vec()))
    }

    /// Returns the recognized keys, or `None` if the active key is not recognized yet.
    #[must_use]
    pub fn key_ring(&self) -> Option<KeyRing> {
        Some(KeyRing {
            active: self.active?,
            keys: self.keys.clone(),
        })
    }

    /// Returns the recognized keys for decryption. The key ring can't encrypt if the active key is not recognized yet.
    #[must_use]
    pub fn key_ring_to_read(&self) -> KeyRing {
        KeyRing {
            active: self.active.unwrap_or(Uuid::nil()),
            keys: self.keys.clone(),
        }
    }

    async fn compare_one(
        &mut self,
        configured: &ConfiguredKeys,
        record: &KeyRecord,
    ) -> Result<(), ComparisonFailed> {
        if !record.is_well_formed() {
            return Err(ComparisonFailed::RecordMalformed(record.id));
        }
        let mut outcome = Ok(());
        for (index, key) in configured.all().iter().enumerate() {
            let data_key = match key.source.data_key(&record.derivation).await {
                Ok(Some(data_key)) if record.is_of(&data_key) => data_key,
                Ok(_) => continue,
                Err(failure) => {
                    outcome = outcome.and(Err(failure.into()));
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

impl From<KeyNotGiven> for ComparisonFailed {
    fn from(not_given: KeyNotGiven) -> Self {
        match not_given {
            KeyNotGiven::Derivation(failure) => failure.into(),
            KeyNotGiven::KeyManagement(failure) => failure.into(),
        }
    }
}
