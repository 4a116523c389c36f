//! Recognising the configured keys by their records.
//!
//! A key that was ever active has a record: a canary that it encrypted, and what it takes to derive it again. A configured key
//! is the key of a record when it opens the canary. So an operator invents no ids, and a wrong password is noticed at start.

use std::{collections::HashMap, num::NonZeroU32};

use aws_lc_rs::{pbkdf2, rand};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use chrono::{DateTime, Utc};
use keywright_core::{Secret, ports::Identifiers};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::{
    DerivationFailed, KeyRing,
    data_key::{DataKey, KEY_BYTES},
};

/// The fewest iterations with which a new key is derived from a password.
pub const PASSWORD_ITERATIONS_MIN: u32 = 210_000;

/// A key as the operator configured it.
#[derive(Debug)]
pub struct ConfiguredKey {
    /// Where it comes from.
    pub source: KeySource,
    /// Whether it encrypts. Exactly one does.
    pub is_active: bool,
}

/// Where a key comes from.
#[derive(Debug)]
pub enum KeySource {
    /// It is derived from a password by PBKDF2-HMAC-SHA-512.
    Password {
        /// The password.
        password: Secret,
        /// With how many iterations, when the key is new: at least [`PASSWORD_ITERATIONS_MIN`].
        iterations: u32,
    },
    /// It is 32 random bytes.
    Raw(RawKey),
}

/// The 32 bytes of a key.
pub struct RawKey(Zeroizing<[u8; KEY_BYTES]>);

/// A text that is not 32 bytes in base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a raw encryption key must be {KEY_BYTES} bytes in base64")]
pub struct RawKeyMalformed;

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
}

/// The parameters of PBKDF2-HMAC-SHA-512.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordDerivation {
    /// 64 random bytes.
    pub salt: Vec<u8>,
    /// The number of iterations.
    pub iterations: u32,
}

/// The keys that were recognised, and what must be stored before the first value is encrypted.
#[derive(Debug)]
pub struct Unlocked {
    /// The keys.
    pub ring: KeyRing,
    /// The record of the active key, when it is new.
    pub to_store: Option<KeyRecord>,
    /// How many configured keys were ignored, because they are not active and never were.
    pub ignored_count: usize,
}

/// Why the keys can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnlockFailure {
    /// The derivation of a key failed.
    #[error(transparent)]
    DerivationFailed(#[from] DerivationFailed),
    /// A password would be stretched too little or endlessly.
    #[error(
        "an encryption password needs from {PASSWORD_ITERATIONS_MIN} to {PASSWORD_ITERATIONS_MAX} iterations"
    )]
    IterationsOutOfRange,
    /// No key is active.
    #[error("one encryption key must be active, and none is")]
    NoActiveKey,
    /// Values are stored, and none of them could be decrypted.
    #[error(
        "values are stored, and none of the configured encryption keys is the key of any of them"
    )]
    NoStoredValueOpens,
    /// A password is empty.
    #[error("an encryption password is empty")]
    PasswordEmpty,
    /// The operating system gave no randomness, or the cipher failed.
    #[error("the record of a new encryption key could not be made")]
    RecordNotMade,
    /// A stored record can't be what was stored.
    #[error("the stored record of the encryption key {0} is malformed")]
    RecordMalformed(Uuid),
    /// More than one key is active.
    #[error("one encryption key must be active, and several are")]
    SeveralActiveKeys,
}

impl KeySource {
    /// A raw key from its base64 text; white space around it does not count.
    ///
    /// # Errors
    /// When the text is not 32 bytes in base64.
    pub fn raw_from_base64(text: &Secret) -> Result<Self, RawKeyMalformed> {
        let bytes = STANDARD
            .decode(text.expose().trim())
            .map(Zeroizing::new)
            .map_err(|_| RawKeyMalformed)?;
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        if bytes.len() != KEY_BYTES {
            return Err(RawKeyMalformed);
        }
        key.copy_from_slice(&bytes);
        Ok(Self::Raw(RawKey(key)))
    }

    fn check(&self) -> Result<(), UnlockFailure> {
        let Self::Password {
            password,
            iterations,
        } = self
        else {
            return Ok(());
        };
        if password.expose().is_empty() {
            return Err(UnlockFailure::PasswordEmpty);
        }
        if !(PASSWORD_ITERATIONS_MIN..=PASSWORD_ITERATIONS_MAX).contains(iterations) {
            return Err(UnlockFailure::IterationsOutOfRange);
        }
        Ok(())
    }

    /// The key that this source gives with these parameters; none when the parameters are another source's.
    fn data_key(&self, derivation: &KeyDerivation) -> Result<Option<DataKey>, DerivationFailed> {
        let root = match (self, derivation) {
            (Self::Password { password, .. }, KeyDerivation::Password(parameters)) => {
                stretch(password, parameters)?
            }
            (Self::Raw(key), KeyDerivation::Raw) => key.0.clone(),
            _ => return Ok(None),
        };
        DataKey::new(root).map(Some)
    }

    /// How a new key of this source comes about.
    fn fresh_derivation(&self) -> Result<KeyDerivation, UnlockFailure> {
        let Self::Password { iterations, .. } = self else {
            return Ok(KeyDerivation::Raw);
        };
        let mut salt = vec![0; SALT_BYTES];
        rand::fill(&mut salt).map_err(|_| UnlockFailure::RecordNotMade)?;
        Ok(KeyDerivation::Password(PasswordDerivation {
            salt,
            iterations: *iterations,
        }))
    }
}

impl std::fmt::Debug for RawKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("RawKey(redacted)")
    }
}

impl KeyRing {
    /// Recognises the configured keys by the stored records, and makes a record for the active key when it is new.
    ///
    /// `in_use` are the ids of the keys under which anything is stored. When there are any, one of them must be recognised: a
    /// server with the wrong keys must not start. The record in [`Unlocked::to_store`] must be on disk before the ring is used.
    ///
    /// # Errors
    /// What is wrong with the keys.
    pub fn unlock(
        configured: &[ConfiguredKey],
        records: &[KeyRecord],
        in_use: &[Uuid],
        identifiers: &dyn Identifiers,
        now: DateTime<Utc>,
    ) -> Result<Unlocked, UnlockFailure> {
        let active_source = check(configured)?;
        let mut records: Vec<&KeyRecord> = records.iter().collect();
        records.sort_by_key(|record| (record.created_at, record.id));
        let mut recognised = Recognised::default();
        for key in configured {
            recognised.add(key, &records)?;
        }
        if !in_use.is_empty() && !in_use.iter().any(|id| recognised.keys.contains_key(id)) {
            return Err(UnlockFailure::NoStoredValueOpens);
        }
        let Recognised {
            mut keys,
            active,
            ignored_count,
        } = recognised;
        if let Some(active) = active {
            return Ok(Unlocked {
                ring: Self { active, keys },
                to_store: None,
                ignored_count,
            });
        }
        let (key, record) = fresh_key(active_source, identifiers.fresh(), now)?;
        keys.insert(record.id, key);
        let ring = Self {
            active: record.id,
            keys,
        };
        Ok(Unlocked {
            ring,
            to_store: Some(record),
            ignored_count,
        })
    }
}

/// What came of comparing keys with records.
#[derive(Default)]
struct Recognised {
    keys: HashMap<Uuid, DataKey>,
    active: Option<Uuid>,
    ignored_count: usize,
}

impl Recognised {
    /// Compares one configured key with all records, oldest first. Several may be its own, when several servers made one at
    /// their first start: all decrypt, and the oldest encrypts, so that all servers agree.
    fn add(&mut self, key: &ConfiguredKey, records: &[&KeyRecord]) -> Result<(), UnlockFailure> {
        let mut is_recognised = false;
        for record in records {
            check_record(record)?;
            let Some(data_key) = key.source.data_key(&record.derivation)? else {
                continue;
            };
            if !opens_canary(&data_key, record) {
                continue;
            }
            is_recognised = true;
            self.keys.insert(record.id, data_key);
            if key.is_active && self.active.is_none() {
                self.active = Some(record.id);
            }
        }
        if !is_recognised && !key.is_active {
            self.ignored_count += 1;
        }
        Ok(())
    }
}

/// Checks the configured keys, and gives the source of the active one.
fn check(configured: &[ConfiguredKey]) -> Result<&KeySource, UnlockFailure> {
    for key in configured {
        key.source.check()?;
    }
    let mut active = configured.iter().filter(|key| key.is_active);
    let source = &active.next().ok_or(UnlockFailure::NoActiveKey)?.source;
    match active.next() {
        Some(_) => Err(UnlockFailure::SeveralActiveKeys),
        None => Ok(source),
    }
}

fn check_record(record: &KeyRecord) -> Result<(), UnlockFailure> {
    match &record.derivation {
        KeyDerivation::Password(parameters)
            if parameters.salt.len() != SALT_BYTES
                || !(1..=PASSWORD_ITERATIONS_MAX).contains(&parameters.iterations) =>
        {
            Err(UnlockFailure::RecordMalformed(record.id))
        }
        _ => Ok(()),
    }
}

fn fresh_key(
    source: &KeySource,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<(DataKey, KeyRecord), UnlockFailure> {
    let derivation = source.fresh_derivation()?;
    let key = source
        .data_key(&derivation)?
        .ok_or(UnlockFailure::RecordNotMade)?;
    let (canary_nonce, canary_ciphertext) = key
        .encrypt(&canary_place(id), CANARY)
        .ok_or(UnlockFailure::RecordNotMade)?;
    let record = KeyRecord {
        id,
        derivation,
        canary_nonce,
        canary_ciphertext,
        created_at: now,
    };
    Ok((key, record))
}

fn opens_canary(key: &DataKey, record: &KeyRecord) -> bool {
    key.decrypt(
        &canary_place(record.id),
        &record.canary_nonce,
        &record.canary_ciphertext,
    )
    .is_some_and(|canary| canary == CANARY)
}

/// The associated data of a canary: its format, and the key's id.
fn canary_place(id: Uuid) -> Vec<u8> {
    [&[CANARY_FORMAT], id.as_bytes().as_slice()].concat()
}

fn stretch(
    password: &Secret,
    parameters: &PasswordDerivation,
) -> Result<Zeroizing<[u8; KEY_BYTES]>, DerivationFailed> {
    let iterations = NonZeroU32::new(parameters.iterations).ok_or(DerivationFailed)?;
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    pbkdf2::derive(
        pbkdf2::PBKDF2_HMAC_SHA512,
        iterations,
        &parameters.salt,
        password.expose().as_bytes(),
        key.as_mut_slice(),
    );
    Ok(key)
}

/// The most iterations, so that no record keeps a server from starting for ever.
const PASSWORD_ITERATIONS_MAX: u32 = 10_000_000;

const SALT_BYTES: usize = 64;

/// What a canary says.
const CANARY: &[u8] = b"keywright encryption key canary";

/// The format byte of a canary's associated data; that of values differs.
const CANARY_FORMAT: u8 = 0;
