//! Recognising the configured keys by their records.

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

/// What came of comparing the configured keys with the records that there were so far. No record is compared twice.
#[derive(Clone, Default)]
pub struct Recognition {
    keys: HashMap<Uuid, Arc<DataKey>>,
    active: Option<Uuid>,
    compared: HashSet<Uuid>,
    recognised_places: BTreeSet<usize>,
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
    /// A stored record can't be what was stored.
    #[error("the stored record of the encryption key {0} is malformed")]
    RecordMalformed(Uuid),
}

/// Values are stored, and none of them could be decrypted. Names the keys that they need.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "values are stored, and none of the configured encryption keys is the key of any of them; they need the keys {}",
    .0.iter().map(Uuid::to_string).collect::<Vec<_>>().join(", ")
)]
pub struct NoStoredValueOpens(pub Vec<Uuid>);

impl Recognition {
    /// Compares the configured keys with those of the records that were not compared before. One that can't be compared does
    /// not keep others from it, nor does a configured key that can't be had keep the others from a record; it is the first
    /// failure that is told, and the record may be compared again, unless another key is the one.
    ///
    /// Several records may be of one key: all decrypt, and the first that was found encrypts, the oldest before others, so
    /// that all servers agree.
    ///
    /// # Errors
    /// What failed.
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

    /// Whether the record of this key was compared: if the key is not known then, it is not configured.
    #[must_use]
    pub fn was_compared(&self, key_id: Uuid) -> bool {
        self.compared.contains(&key_id)
    }

    /// The ids of all records that were compared.
    pub fn compared(&self) -> impl Iterator<Item = Uuid> {
        self.compared.iter().copied()
    }

    /// The places, among the configured keys, of those without a record.
    #[must_use]
    pub fn unrecognised(&self, configured: &ConfiguredKeys) -> Vec<usize> {
        (0..configured.all().len())
            .filter(|place| !self.recognised_places.contains(place))
            .collect()
    }

    /// Sees that at least one of the keys under which anything is stored is known: a server with the wrong keys must not
    /// start.
    ///
    /// # Errors
    /// When something is stored, and none of the keys is known.
    pub fn check(&self, in_use: &[Uuid]) -> Result<(), NoStoredValueOpens> {
        if in_use.is_empty() || in_use.iter().any(|id| self.keys.contains_key(id)) {
            return Ok(());
        }
        Err(NoStoredValueOpens(in_use.to_vec()))
    }

    /// The keys that were recognised; none while the active one is not among them.
    #[must_use]
    pub fn key_ring(&self) -> Option<KeyRing> {
        Some(KeyRing {
            active: self.active?,
            keys: self.keys.clone(),
        })
    }

    /// The keys that were recognised, to decrypt: while the active one is not among them, nothing can be encrypted.
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
        for (place, key) in configured.all().iter().enumerate() {
            let data_key = match key.source.data_key(&record.derivation).await {
                Ok(Some(data_key)) if record.is_of(&data_key) => data_key,
                Ok(_) => continue,
                Err(failure) => {
                    outcome = outcome.and(Err(failure.into()));
                    continue;
                }
            };
            self.keys.insert(record.id, Arc::new(data_key));
            self.recognised_places.insert(place);
            if place == configured.active() && self.active.is_none() {
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
