//! The keys that encrypt stored values.

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

/// The recognized encryption keys. All of them decrypt, and the active one encrypts. [`Recognition`] creates the key ring from
/// [`ConfiguredKeys`] and stored [`KeyRecord`]s.
///
/// Keys encrypt with AES-256-GCM and random nonces of 96 bits, which is secure for 2³² values. The caller of [`KeyRing::seal`]
/// must ensure that no key encrypts more than [`ENCRYPTIONS_PER_KEY_MAX`] values.
pub struct KeyRing {
    active: Uuid,
    keys: HashMap<Uuid, Arc<DataKey>>,
}

/// Deriving a key failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("could not derive a key")]
pub struct DerivationFailed;

impl KeyRing {
    /// Returns the id of the active key.
    #[must_use]
    pub fn active_key_id(&self) -> Uuid {
        self.active
    }

    /// Returns the ids of all keys, in no particular order.
    pub fn key_ids(&self) -> impl Iterator<Item = Uuid> {
        self.keys.keys().copied()
    }

    /// Derives a key for another purpose from the active key. Different labels result in independent keys, which reveal nothing
    /// about the active key.
    pub fn derive(&self, label: &str) -> Result<Zeroizing<[u8; 32]>, DerivationFailed> {
        self.derive_from(&self.active, label)
    }

    /// Derives a key from each of the other keys, in no particular order: the results of [`Self::derive`] while they were active.
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

    /// Encrypts with the active key. The result can only be decrypted with the same `place`.
    ///
    /// # Errors
    /// If the cipher fails.
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

    /// Decrypts an envelope.
    ///
    /// # Errors
    /// If the key is unknown, or the envelope was modified or sealed for another place.
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

    /// Returns whether the key with this id is active, inactive or unknown.
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

/// The maximum number of values per key. NIST SP 800-38D (8.3) allows 2³² with random nonces of 96 bits. The difference leaves room
/// for canaries.
pub const ENCRYPTIONS_PER_KEY_MAX: u64 = (1 << 32) - (1 << 16);

/// The number of encrypted values at which the server warns that a new key is needed.
pub const ENCRYPTIONS_PER_KEY_WARNED: u64 = 1 << 31;

/// Encodes the place unambiguously: one byte for the format, sixteen bytes for the version's id, and the name.
fn associated_data(place: SealedPlace<'_>) -> Vec<u8> {
    let name = place.name.folded().as_bytes();
    [
        &[PLACE_FORMAT],
        place.version_id.as_bytes().as_slice(),
        name,
    ]
    .concat()
}

/// The format of the associated data. Every format has its own number, so encodings of different formats always differ.
const PLACE_FORMAT: u8 = 1;
