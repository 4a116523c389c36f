//! The keys that encrypt stored values, and their stored records.
//!
//! Every key that was ever active has a record: an encrypted canary, and the parameters to obtain the key. A record belongs to the
//! configured key that decrypts its canary (`configured.rs`). So keys need no ids in the configuration, and a wrong password is
//! detected at start-up.

mod configured;

use std::{collections::HashMap, fmt, sync::Arc};

use aes_gcm::{
    Aes256Gcm, Nonce,
    aead::{Aead, KeyInit, Payload},
};
use aws_lc_rs::hkdf;
use chrono::{DateTime, Utc};
use keywright_core::{
    Secret,
    ports::{Envelope, KeyDerivation, KeyRecord, KeyStatus, SealContext, SealError},
};
use uuid::Uuid;
use zeroize::Zeroizing;

pub use configured::{
    ComparisonError, ConfiguredKey, ConfiguredKeys, KeyRingError, KeySource, NoMatchingKeyError,
    PASSWORD_ITERATIONS_MIN, RawKey, RawKeyError, Recognition, RecordError, WrappingKey,
};

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
        let key = self.keys.get(&self.active).ok_or(DerivationError)?;
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

/// The maximum number of iterations. Without it, a record could delay the start-up endlessly.
pub const PASSWORD_ITERATIONS_MAX: u32 = 10_000_000;

/// The longest stored wrapped key, in bytes.
pub const WRAPPED_KEY_BYTES_MAX: usize = 16 * 1_024;

/// Deriving a key failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("could not derive a key")]
pub struct DerivationError;

/// A key that encrypts and decrypts. It is zeroized on drop.
struct DataKey {
    root: Zeroizing<[u8; KEY_BYTES]>,
    cipher: Aes256Gcm,
}

impl DataKey {
    /// Creates a key. The root itself encrypts nothing: all used keys are derived from it.
    fn new(root: Zeroizing<[u8; KEY_BYTES]>) -> Result<Self, DerivationError> {
        let key = expand(&root, SEALING_PURPOSE, "")?;
        let cipher = Aes256Gcm::new_from_slice(key.as_slice()).map_err(|_| DerivationError)?;
        Ok(Self { root, cipher })
    }

    fn derive(&self, label: &str) -> Result<Zeroizing<[u8; KEY_BYTES]>, DerivationError> {
        expand(&self.root, LABEL_PURPOSE, label)
    }

    /// Encrypts with a random nonce. Returns the nonce and the ciphertext.
    fn encrypt(&self, associated_data: &[u8], plaintext: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).ok()?;
        let payload = Payload {
            msg: plaintext,
            aad: associated_data,
        };
        let ciphertext = self.cipher.encrypt(&Nonce::from(nonce), payload).ok()?;
        Some((nonce.to_vec(), ciphertext))
    }

    /// Decrypts. Returns `None` if the nonce, the ciphertext or the associated data was modified.
    fn decrypt(&self, associated_data: &[u8], nonce: &[u8], ciphertext: &[u8]) -> Option<Vec<u8>> {
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().ok()?;
        let payload = Payload {
            msg: ciphertext,
            aad: associated_data,
        };
        self.cipher.decrypt(&Nonce::from(nonce), payload).ok()
    }
}

/// Derives a key with HKDF-SHA-256.
fn expand(
    root: &[u8; KEY_BYTES],
    purpose: &str,
    label: &str,
) -> Result<Zeroizing<[u8; KEY_BYTES]>, DerivationError> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    hkdf::Salt::new(hkdf::HKDF_SHA256, HKDF_SALT)
        .extract(root)
        .expand(&[purpose.as_bytes(), label.as_bytes()], hkdf::HKDF_SHA256)
        .and_then(|output| output.fill(key.as_mut_slice()))
        .map_err(|_| DerivationError)?;
    Ok(key)
}

/// Creates the record of a key. Returns `None` if the cipher fails.
fn record_of(
    key: &DataKey,
    id: Uuid,
    derivation: KeyDerivation,
    now: DateTime<Utc>,
) -> Option<KeyRecord> {
    let (canary_nonce, canary_ciphertext) = key.encrypt(&canary_associated_data(id), CANARY)?;
    Some(KeyRecord {
        id,
        derivation,
        canary_nonce,
        canary_ciphertext,
        created_at: now,
    })
}

fn is_record_of(record: &KeyRecord, key: &DataKey) -> bool {
    key.decrypt(
        &canary_associated_data(record.id),
        &record.canary_nonce,
        &record.canary_ciphertext,
    )
    .is_some_and(|canary| canary == CANARY)
}

fn is_well_formed(record: &KeyRecord) -> bool {
    match &record.derivation {
        KeyDerivation::Password(parameters) => {
            parameters.salt.len() == SALT_BYTES
                && (PASSWORD_ITERATIONS_MIN..=PASSWORD_ITERATIONS_MAX)
                    .contains(&parameters.iterations)
        }
        KeyDerivation::Raw => true,
        KeyDerivation::Wrapped(wrapped_key) => {
            (1..=WRAPPED_KEY_BYTES_MAX).contains(&wrapped_key.len())
        }
    }
}

/// Returns the associated data of a canary: its format, and the key's id.
fn canary_associated_data(id: Uuid) -> Vec<u8> {
    [&[CANARY_FORMAT], id.as_bytes().as_slice()].concat()
}

/// The length of every key, in bytes.
const KEY_BYTES: usize = 32;

const SALT_BYTES: usize = 64;

const NONCE_BYTES: usize = 12;
const HKDF_SALT: &[u8] = b"keywright";

/// The purposes of derived keys. Neither is a prefix of the other, so that no label leads to the key for values.
const SEALING_PURPOSE: &str = "seal";
const LABEL_PURPOSE: &str = "label:";

/// The plaintext of a canary.
const CANARY: &[u8] = b"keywright encryption key canary";

/// The format byte of a canary's associated data. It differs from the format byte of values.
const CANARY_FORMAT: u8 = 0;
