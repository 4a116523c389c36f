//! The keys that encrypt what is stored.

mod data_key;
mod unlock;

use std::{collections::HashMap, fmt};

use keywright_core::{
    Secret,
    ports::{Envelope, KeyStanding, SealFailure, SealedPlace, Sealer},
};
use uuid::Uuid;
use zeroize::Zeroizing;

use data_key::DataKey;
pub use unlock::{
    ConfiguredKey, KeyDerivation, KeyRecord, KeySource, PASSWORD_ITERATIONS_MIN,
    PasswordDerivation, RawKey, RawKeyMalformed, UnlockFailure, Unlocked,
};

/// The configured encryption keys that were recognised: several that decrypt, one of them active, which encrypts.
///
/// A key encrypts with AES-256-GCM under random nonces of 96 bits, which is sound for 2³² values.
pub struct KeyRing {
    active: Uuid,
    keys: HashMap<Uuid, DataKey>,
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
        self.keys
            .get(&self.active)
            .ok_or(DerivationFailed)?
            .derive(label)
    }
}

impl Sealer for KeyRing {
    fn seal(&self, place: SealedPlace<'_>, plaintext: &Secret) -> Result<Envelope, SealFailure> {
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

    fn open(&self, place: SealedPlace<'_>, envelope: &Envelope) -> Result<Secret, SealFailure> {
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

    fn standing(&self, key_id: Uuid) -> KeyStanding {
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
