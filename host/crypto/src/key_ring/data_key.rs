//! One encryption key, and its stored record.
//!
//! Every key that was ever active has a record: an encrypted canary, and the parameters to obtain the key. A record belongs to the
//! configured key that decrypts its canary. So keys need no ids in the configuration, and a wrong password is detected at start-up.

use aes_gcm::{
    Aes256Gcm, Nonce,
    aead::{Aead, KeyInit, Payload},
};
use aws_lc_rs::hkdf;
use chrono::{DateTime, Utc};
use keywright_core::ports::{KeyDerivation, KeyRecord};
use uuid::Uuid;
use zeroize::Zeroizing;

/// The maximum number of iterations. Without it, a record could delay the start-up endlessly.
pub const PASSWORD_ITERATIONS_MAX: u32 = 10_000_000;

/// The longest stored wrapped key, in bytes.
pub const WRAPPED_KEY_BYTES_MAX: usize = 16 * 1_024;

/// Deriving a key failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("could not derive a key")]
pub struct DerivationError;

/// A key that encrypts and decrypts. It is zeroized on drop.
pub(super) struct DataKey {
    root: Zeroizing<[u8; KEY_BYTES]>,
    cipher: Aes256Gcm,
}

impl DataKey {
    /// Creates a key. The root itself encrypts nothing: all used keys are derived from it.
    pub(super) fn new(root: Zeroizing<[u8; KEY_BYTES]>) -> Result<Self, DerivationError> {
        let key = expand(&root, SEALING_PURPOSE, "")?;
        let cipher = Aes256Gcm::new_from_slice(key.as_slice()).map_err(|_| DerivationError)?;
        Ok(Self { root, cipher })
    }

    /// Derives a key for another purpose.
    pub(super) fn derive(
        &self,
        label: &str,
    ) -> Result<Zeroizing<[u8; KEY_BYTES]>, DerivationError> {
        expand(&self.root, LABEL_PURPOSE, label)
    }

    /// Encrypts with a random nonce. Returns the nonce and the ciphertext.
    pub(super) fn encrypt(
        &self,
        associated_data: &[u8],
        plaintext: &[u8],
    ) -> Option<(Vec<u8>, Vec<u8>)> {
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
    pub(super) fn decrypt(
        &self,
        associated_data: &[u8],
        nonce: &[u8],
        ciphertext: &[u8],
    ) -> Option<Vec<u8>> {
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
pub(super) fn record_of(
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

pub(super) fn is_record_of(record: &KeyRecord, key: &DataKey) -> bool {
    key.decrypt(
        &canary_associated_data(record.id),
        &record.canary_nonce,
        &record.canary_ciphertext,
    )
    .is_some_and(|canary| canary == CANARY)
}

pub(super) fn is_well_formed(record: &KeyRecord) -> bool {
    match &record.derivation {
        KeyDerivation::Password(parameters) => {
            parameters.salt.len() == SALT_BYTES
                && (1..=PASSWORD_ITERATIONS_MAX).contains(&parameters.iterations)
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
pub(super) const KEY_BYTES: usize = 32;

pub(super) const SALT_BYTES: usize = 64;

const NONCE_BYTES: usize = 12;
const HKDF_SALT: &[u8] = b"keywright";

/// The purposes of derived keys. Neither is a prefix of the other, so that no label leads to the key for values.
const SEALING_PURPOSE: &str = "seal";
const LABEL_PURPOSE: &str = "label:";

/// The plaintext of a canary.
const CANARY: &[u8] = b"keywright encryption key canary";

/// The format byte of a canary's associated data. It differs from the format byte of values.
const CANARY_FORMAT: u8 = 0;
