//! The keys that encrypt what is stored.

mod configured;
mod data_key;
mod recognition;
mod record;

use std::{collections::HashMap, fmt, sync::Arc};

use keywright_core::{
    Secret,
    ports::{Envelope, KeyStanding, SealFailure, SealedPlace},
};
use uuid::Uuid;
use zeroize::Zeroizing;

pub use configured::{
    ConfiguredKey, ConfiguredKeys, KeySource, KeysRefused, PASSWORD_ITERATIONS_MAX,
    PASSWORD_ITERATIONS_MIN, RawKey, RawKeyMalformed, RecordNotMade, WRAPPED_KEY_BYTES_MAX,
    WrappingKey,
};
use data_key::DataKey;
pub use recognition::{ComparisonFailed, NoStoredValueOpens, Recognition};
pub use record::{KeyDerivation, KeyRecord, PasswordDerivation};

/// The configured encryption keys that were recognised: several that decrypt, one of them active, which encrypts.
/// [`Recognition`] makes it of [`ConfiguredKeys`] and the [`KeyRecord`]s that are stored.
///
/// A key encrypts with AES-256-GCM under random nonces of 96 bits, which is sound for 2³² values. The caller of
/// [`KeyRing::seal`] sees to it that no key encrypts more than [`ENCRYPTIONS_PER_KEY_MAX`].
pub struct KeyRing {
    active: Uuid,
    keys: HashMap<Uuid, Arc<DataKey>>,
}

/// A key could not be derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key could not be derived")]
pub struct DerivationFailed;

impl KeyRing {
    /// The id of the key that encrypts.
    #[must_use]
    pub fn active_key_id(&self) -> Uuid {
        self.active
    }

    /// The ids of all keys that decrypt, in no order.
    pub fn key_ids(&self) -> impl Iterator<Item = Uuid> {
        self.keys.keys().copied()
    }

    /// Derives a key for a purpose of its own from the active key: another label gives another key, and no derived key
    /// tells anything of the active one.
    ///
    /// # Errors
    /// When the derivation fails.
    pub fn derive(&self, label: &str) -> Result<Zeroizing<[u8; 32]>, DerivationFailed> {
        self.derive_from(&self.active, label)
    }

    /// Derives such a key from each of the other keys, in no order: what [`Self::derive`] gave while one of these was active.
    ///
    /// # Errors
    /// When a derivation fails.
    pub fn derive_from_others(
        &self,
        label: &str,
    ) -> Result<Vec<Zeroizing<[u8; 32]>>, DerivationFailed> {
        let others = self.keys.keys().filter(|id| **id != self.active);
        others.map(|id| self.derive_from(id, label)).collect()
    }

    fn derive_from(
        &self,
        key_id: &Uuid,
        label: &str,
    ) -> Result<Zeroizing<[u8; 32]>, DerivationFailed> {
        let key = self.keys.get(key_id).ok_or(DerivationFailed)?;
        key.derive(label)
    }

    /// Encrypts with the active key. The result opens only at the same place.
    ///
    /// # Errors
    /// When the cipher fails.
    pub fn seal(
        &self,
        place: SealedPlace<'_>,
        plaintext: &Secret,
    ) -> Result<Envelope, SealFailure> {
        let key = self
            .keys
            .get(&self.active)
            .ok_or(SealFailure::SealingFailed)?;
        let (nonce, ciphertext) = key
            .encrypt(&associated_data(place), plaintext.expose().as_bytes())
            .ok_or(SealFailure::SealingFailed)?;
        Ok(Envelope {
            key_id: self.active,
            nonce,
            ciphertext,
        })
    }

    /// Decrypts.
    ///
    /// # Errors
    /// When the key is not one of these, or the envelope was not sealed for this place, or was changed.
    pub fn open(&self, place: SealedPlace<'_>, envelope: &Envelope) -> Result<Secret, SealFailure> {
        let key = self
            .keys
            .get(&envelope.key_id)
            .ok_or(SealFailure::KeyUnknown(envelope.key_id))?;
        let plaintext = key
            .decrypt(
                &associated_data(place),
                &envelope.nonce,
                &envelope.ciphertext,
            )
            .ok_or(SealFailure::NotAuthentic)?;
        String::from_utf8(plaintext)
            .map(Secret::new)
            .map_err(|error| {
                drop(Zeroizing::new(error.into_bytes()));
                SealFailure::NotAuthentic
            })
    }

    /// What the key with this id is to the server.
    #[must_use]
    pub fn standing(&self, key_id: Uuid) -> KeyStanding {
        if key_id == self.active {
            KeyStanding::Active
        } else if self.keys.contains_key(&key_id) {
            KeyStanding::Inactive
        } else {
            KeyStanding::Unknown
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

/// How many values one key may encrypt. NIST SP 800-38D (8.3) allows 2³² for random nonces of 96 bits. The
/// difference leaves room for canaries.
pub const ENCRYPTIONS_PER_KEY_MAX: u64 = (1 << 32) - (1 << 16);

/// How many values a key has encrypted when it is time for another key: half of what it may.
pub const ENCRYPTIONS_PER_KEY_WARNED: u64 = 1 << 31;

/// Names the place without ambiguity: a byte for the format, the sixteen of the version's id, and the name to the end.
fn associated_data(place: SealedPlace<'_>) -> Vec<u8> {
    let name = place.name.folded().as_bytes();
    [
        &[PLACE_FORMAT],
        place.version_id.as_bytes().as_slice(),
        name,
    ]
    .concat()
}

/// The format of the associated data. Another format is another number, and no two of them are ever the same bytes.
const PLACE_FORMAT: u8 = 1;
