//! The stored records of keys.
//!
//! Every key that was ever active has a record: an encrypted canary, and the parameters to obtain the key. A record belongs to the
//! configured key that decrypts its canary. So keys need no ids in the configuration, and a wrong password is detected at start-up.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{
    configured::{PASSWORD_ITERATIONS_MAX, WRAPPED_KEY_BYTES_MAX},
    data_key::DataKey,
};

/// The stored record of a key. It does not contain the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// The id of the key in encrypted values.
    pub id: Uuid,
    /// The parameters to obtain the key.
    pub derivation: KeyDerivation,
    /// The nonce of the canary.
    pub canary_nonce: Vec<u8>,
    /// The canary, encrypted with the key.
    pub canary_ciphertext: Vec<u8>,
    /// When the key was first active.
    pub created_at: DateTime<Utc>,
}

/// The parameters to obtain a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyDerivation {
    /// The key is derived from a password.
    Password(PasswordDerivation),
    /// The key itself is configured.
    Raw,
    /// A key management service decrypts these bytes to the key. At most [`WRAPPED_KEY_BYTES_MAX`].
    Wrapped(Vec<u8>),
}

/// The parameters of PBKDF2-HMAC-SHA-512.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordDerivation {
    /// 64 random bytes.
    pub salt: Vec<u8>,
    /// The number of iterations.
    pub iterations: u32,
}

impl KeyRecord {
    /// Creates the record of a key. Returns `None` if the cipher fails.
    pub(super) fn new(
        id: Uuid,
        derivation: KeyDerivation,
        key: &DataKey,
        now: DateTime<Utc>,
    ) -> Option<Self> {
        let (canary_nonce, canary_ciphertext) = key.encrypt(&canary_place(id), CANARY)?;
        Some(Self {
            id,
            derivation,
            canary_nonce,
            canary_ciphertext,
            created_at: now,
        })
    }

    /// Returns whether this is the record of the key.
    pub(super) fn is_of(&self, key: &DataKey) -> bool {
        key.decrypt(
            &canary_place(self.id),
            &self.canary_nonce,
            &self.canary_ciphertext,
        )
        .is_some_and(|canary| canary == CANARY)
    }

    /// Returns whether the record is well-formed.
    pub(super) fn is_well_formed(&self) -> bool {
        match &self.derivation {
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
}

/// Returns the associated data of a canary: its format, and the key's id.
fn canary_place(id: Uuid) -> Vec<u8> {
    [&[CANARY_FORMAT], id.as_bytes().as_slice()].concat()
}

pub(super) const SALT_BYTES: usize = 64;

/// The plaintext of a canary.
const CANARY: &[u8] = b"keywright encryption key canary";

/// The format byte of a canary's associated data. It differs from that of values.
const CANARY_FORMAT: u8 = 0;
