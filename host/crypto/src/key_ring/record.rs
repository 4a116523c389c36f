//! What is stored of a key.
//!
//! A key that was ever active has a record: a canary that it encrypted, and what it takes to have it again. A configured key is
//! the key of a record when it opens the canary. So an operator invents no ids, and a wrong password is noticed at start.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{
    configured::{PASSWORD_ITERATIONS_MAX, WRAPPED_KEY_BYTES_MAX},
    data_key::DataKey,
};

/// What is stored of a key, without the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// What is encrypted names its key by this id.
    pub id: Uuid,
    /// How the key comes about.
    pub derivation: KeyDerivation,
    /// The nonce of the canary.
    pub canary_nonce: Vec<u8>,
    /// The canary, encrypted with the key.
    pub canary_ciphertext: Vec<u8>,
    /// When the key was first active.
    pub created_at: DateTime<Utc>,
}

/// How a key comes about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyDerivation {
    /// From a password.
    Password(PasswordDerivation),
    /// It is given as it is.
    Raw,
    /// A key management service decrypts these bytes, at most [`WRAPPED_KEY_BYTES_MAX`].
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
    /// The record of a key; none when the cipher fails.
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

    /// Whether a key is the one whose record this is.
    pub(super) fn is_of(&self, key: &DataKey) -> bool {
        key.decrypt(
            &canary_place(self.id),
            &self.canary_nonce,
            &self.canary_ciphertext,
        )
        .is_some_and(|canary| canary == CANARY)
    }

    /// Whether this can be what was stored.
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

/// The associated data of a canary: its format, and the key's id.
fn canary_place(id: Uuid) -> Vec<u8> {
    [&[CANARY_FORMAT], id.as_bytes().as_slice()].concat()
}

pub(super) const SALT_BYTES: usize = 64;

/// What a canary says.
const CANARY: &[u8] = b"keywright encryption key canary";

/// The format byte of a canary's associated data; that of values differs.
const CANARY_FORMAT: u8 = 0;
