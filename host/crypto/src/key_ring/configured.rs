//! The configured encryption keys, and recognizing them by their records.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    num::NonZeroU32,
    sync::Arc,
};

use aws_lc_rs::pbkdf2;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use chrono::{DateTime, Utc};
use keywright_core::{
    Secret,
    ports::{KeyDerivation, KeyManagement, KeyManagementError, KeyRecord, PasswordDerivation},
};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::{
    DataKey, DerivationError, KEY_BYTES, KeyRing, PASSWORD_ITERATIONS_MAX, SALT_BYTES,
    WRAPPED_KEY_BYTES_MAX, is_record_of, is_well_formed, record_of,
};

/// The minimum number of iterations to derive a key from a password. Records with fewer iterations are rejected.
pub const PASSWORD_ITERATIONS_MIN: u32 = 210_000;

/// A configured key.
#[derive(Debug)]
pub struct ConfiguredKey {
    /// The source of the key.
    pub source: KeySource,
    /// Whether the key encrypts. Exactly one key is active.
    pub is_active: bool,
}

/// The source of a key.
#[derive(Debug)]
pub enum KeySource {
    /// The key is derived from a password with PBKDF2-HMAC-SHA-512.
    Password {
        /// The password.
        password: Secret,
        /// The number of iterations for a new key: at least [`PASSWORD_ITERATIONS_MIN`].
        iterations: u32,
    },
    /// The key is 32 random bytes.
    Raw(RawKey),
    /// The key is 32 random bytes, stored encrypted by a key management service.
    Wrapped(WrappingKey),
}

/// The 32 bytes of a key.
pub struct RawKey(Zeroizing<[u8; KEY_BYTES]>);

/// The key of a key management service that encrypts other keys.
#[derive(Clone)]
pub struct WrappingKey {
    /// The address of the service. Two services with the same address count as one service.
    pub source: String,
    /// The service.
    pub service: Arc<dyn KeyManagement>,
}

/// A malformed raw key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a raw encryption key must be {KEY_BYTES} bytes in base64")]
pub struct RawKeyError;

/// All configured keys, in order. Exactly one is active, and there are no duplicates.
#[derive(Debug)]
pub struct ConfiguredKeys {
    keys: Vec<ConfiguredKey>,
    active: usize,
}

/// The reason why the configured keys were rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum KeyRingError {
    #[error(
        "the iterations for an encryption password must be from {PASSWORD_ITERATIONS_MIN} to {PASSWORD_ITERATIONS_MAX}"
    )]
    IterationsOutOfRange,
    #[error("no encryption key is active; set active = true on exactly one key")]
    NoActiveKey,
    #[error("an encryption password is empty")]
    PasswordEmpty,
    #[error("encryption.keys[{0}] and encryption.keys[{1}] are the same key")]
    SameKeyTwice(usize, usize),
    #[error(
        "encryption.keys[{0}] and encryption.keys[{1}] unwrap the same key: a rotation between them would change nothing; configure \
         each plugin to refuse ciphertexts of other keys, or replace the entry if only the address changed"
    )]
    SameKeyUnwrapped(usize, usize),
    #[error("several encryption keys are active; set active = true on exactly one key")]
    SeveralActiveKeys,
}

/// The reason why the record of a new key could not be created.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum RecordError {
    /// Reading randomness failed, or the cipher failed.
    #[error("could not create the record of a new encryption key")]
    CipherFailed,
    #[error(transparent)]
    KeyManagement(#[from] KeyManagementError),
    /// The key management service could not decrypt its own ciphertext to the same key.
    #[error("{0} can't decrypt a key that it has just encrypted")]
    NotUnwrapped(String),
    /// The key management service returned the key itself, so its record would disclose the key.
    #[error("{0} returned a key without encrypting it")]
    NotWrapped(String),
    #[error("{0} returned a wrapped key of more than {WRAPPED_KEY_BYTES_MAX} bytes")]
    WrappedKeyTooLong(String),
}

/// The reason why a record could not be compared with the configured keys.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum ComparisonError {
    #[error(
        "the records {0} and {1} contain different keys for the active entry of encryption.keys; keep both, because stored values may \
         need them; make a new encryption key the active one, and rotate to it"
    )]
    ActiveKeyAmbiguous(Uuid, Uuid),
    #[error(transparent)]
    DerivationFailed(#[from] DerivationError),
    #[error(transparent)]
    KeyManagement(#[from] KeyManagementError),
    #[error("the stored record of the encryption key {0} is malformed; restore it from a backup")]
    RecordMalformed(Uuid),
}

impl ConfiguredKeys {
    /// Checks the keys.
    pub fn new(keys: Vec<ConfiguredKey>) -> Result<Self, KeyRingError> {
        for key in &keys {
            key.source.check()?;
        }
        for (index, key) in keys.iter().enumerate() {
            let mut before = keys.iter().take(index);
            if let Some(other) = before.position(|other| other.source.is(&key.source)) {
                return Err(KeyRingError::SameKeyTwice(other, index));
            }
        }
        let numbered = keys.iter().enumerate();
        let active: Vec<usize> = numbered
            .filter(|(_, key)| key.is_active)
            .map(|(index, _)| index)
            .collect();
        match active[..] {
            [] => Err(KeyRingError::NoActiveKey),
            [active] => Ok(Self { keys, active }),
            _ => Err(KeyRingError::SeveralActiveKeys),
        }
    }

    /// Creates a record for the active key, which must not have a record yet. Store the record before you encrypt with the key.
    pub async fn new_record(&self, id: Uuid, now: DateTime<Utc>) -> Result<KeyRecord, RecordError> {
        let key = self
            .keys
            .get(self.active)
            .ok_or(RecordError::CipherFailed)?;
        let (root, derivation) = key.source.fresh().await?;
        DataKey::new(root)
            .ok()
            .and_then(|key| record_of(&key, id, derivation, now))
            .ok_or(RecordError::CipherFailed)
    }
}

impl KeySource {
    /// Decodes a raw key from base64. Ignores white space around it.
    pub fn raw_from_base64(text: &Secret) -> Result<Self, RawKeyError> {
        let bytes = STANDARD
            .decode(text.expose().trim())
            .map(Zeroizing::new)
            .map_err(|_| RawKeyError)?;
        Ok(Self::Raw(RawKey(key_of(&bytes).ok_or(RawKeyError)?)))
    }

    /// Checks the source, independently of other keys.
    pub fn check(&self) -> Result<(), KeyRingError> {
        let Self::Password {
            password,
            iterations,
        } = self
        else {
            return Ok(());
        };
        if password.expose().is_empty() {
            return Err(KeyRingError::PasswordEmpty);
        }
        if !(PASSWORD_ITERATIONS_MIN..=PASSWORD_ITERATIONS_MAX).contains(iterations) {
            return Err(KeyRingError::IterationsOutOfRange);
        }
        Ok(())
    }

    /// Returns whether both sources provide the same key. Not in constant time, because it compares only the operator's
    /// configuration.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Password { password: one, .. }, Self::Password { password: two, .. }) => {
                one.expose() == two.expose()
            }
            (Self::Raw(one), Self::Raw(two)) => one.0 == two.0,
            (Self::Wrapped(one), Self::Wrapped(two)) => one.source == two.source,
            _ => false,
        }
    }

    /// Returns the key of this source for a record, or `None` if the record belongs to another source.
    async fn data_key(&self, record: &KeyRecord) -> Result<Option<DataKey>, ComparisonError> {
        let root = match (self, &record.derivation) {
            (Self::Password { password, .. }, KeyDerivation::Password(parameters)) => {
                stretch(password, parameters)?
            }
            (Self::Raw(key), KeyDerivation::Raw) => key.0.clone(),
            (Self::Wrapped(wrapping), KeyDerivation::Wrapped(wrapped_key)) => {
                match wrapping.unwrap_key(wrapped_key).await? {
                    Some(root) => root,
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        let data_key = DataKey::new(root)?;
        Ok(is_record_of(record, &data_key).then_some(data_key))
    }

    /// Creates a new key, with the parameters to obtain it again.
    async fn fresh(&self) -> Result<(Zeroizing<[u8; KEY_BYTES]>, KeyDerivation), RecordError> {
        match self {
            Self::Password {
                password,
                iterations,
            } => {
                let mut salt = vec![0; SALT_BYTES];
                getrandom::fill(&mut salt).map_err(|_| RecordError::CipherFailed)?;
                let parameters = PasswordDerivation {
                    salt,
                    iterations: *iterations,
                };
                let root = stretch(password, &parameters).map_err(|_| RecordError::CipherFailed)?;
                Ok((root, KeyDerivation::Password(parameters)))
            }
            Self::Raw(key) => Ok((key.0.clone(), KeyDerivation::Raw)),
            Self::Wrapped(wrapping) => {
                let (root, wrapped_key) = wrapping.fresh().await?;
                Ok((root, KeyDerivation::Wrapped(wrapped_key)))
            }
        }
    }
}

impl WrappingKey {
    /// Decrypts a key with the service. Returns `None` if another service encrypted the key, or it is malformed.
    async fn unwrap_key(
        &self,
        wrapped_key: &[u8],
    ) -> Result<Option<Zeroizing<[u8; KEY_BYTES]>>, KeyManagementError> {
        let key = self.service.unwrap_key(wrapped_key).await?;
        Ok(key.and_then(|key| key_of(&key)))
    }

    /// Creates a new key, and wraps it. Checks that the service can unwrap it again, before any value depends on the key.
    async fn fresh(&self) -> Result<(Zeroizing<[u8; KEY_BYTES]>, Vec<u8>), RecordError> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        getrandom::fill(key.as_mut_slice()).map_err(|_| RecordError::CipherFailed)?;
        let wrapped_key = self.service.wrap_key(key.as_slice()).await?;
        if wrapped_key.len() > WRAPPED_KEY_BYTES_MAX {
            return Err(RecordError::WrappedKeyTooLong(self.source.clone()));
        }
        let mut parts = wrapped_key.windows(KEY_BYTES);
        if parts.any(|part| part == key.as_slice()) {
            return Err(RecordError::NotWrapped(self.source.clone()));
        }
        match self.unwrap_key(&wrapped_key).await? {
            Some(unwrapped) if unwrapped == key => Ok((key, wrapped_key)),
            _ => Err(RecordError::NotUnwrapped(self.source.clone())),
        }
    }
}

impl fmt::Debug for RawKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RawKey(redacted)")
    }
}

impl fmt::Debug for WrappingKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("WrappingKey")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

fn key_of(bytes: &[u8]) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    if bytes.len() != KEY_BYTES {
        return None;
    }
    key.copy_from_slice(bytes);
    Some(key)
}

fn stretch(
    password: &Secret,
    parameters: &PasswordDerivation,
) -> Result<Zeroizing<[u8; KEY_BYTES]>, DerivationError> {
    let iterations = NonZeroU32::new(parameters.iterations).ok_or(DerivationError)?;
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

/// The result of comparing the configured keys with the records so far. No record is compared twice.
#[derive(Clone, Default)]
pub struct Recognition {
    keys: HashMap<Uuid, Arc<DataKey>>,
    active: Option<Uuid>,
    compared: HashSet<Uuid>,
    /// The index of the configured key that recognized each record.
    indexes: HashMap<Uuid, usize>,
}

/// No stored value can be decrypted. Contains the ids of the keys that the values need.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no configured encryption key can decrypt any of the stored values, which need the keys {}; add them to \
     encryption.keys, or restore the right database",
    .0.iter().map(Uuid::to_string).collect::<Vec<_>>().join(", ")
)]
pub struct NoMatchingKeyError(pub Vec<Uuid>);

impl Recognition {
    /// Compares the configured keys with the records that were not compared before. After a failure, it continues with the other
    /// records and keys, and returns the first error. A record without a result can be compared again.
    ///
    /// A key may have several records. All of them decrypt; the oldest one encrypts, so that all servers agree. If the records of
    /// the active entry contain different keys, one of them may have been added to make servers encrypt with a key that is not
    /// secret. All but the oldest are rejected.
    pub async fn compare(
        &mut self,
        configured: &ConfiguredKeys,
        records: &[KeyRecord],
    ) -> Result<(), ComparisonError> {
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
    pub fn was_compared(&self, key_id: Uuid) -> bool {
        self.compared.contains(&key_id)
    }

    /// Returns the ids of all compared records.
    pub fn compared(&self) -> impl Iterator<Item = Uuid> {
        self.compared.iter().copied()
    }

    /// Returns the indexes of the configured keys without a record.
    pub fn unrecognized(&self, configured: &ConfiguredKeys) -> Vec<usize> {
        (0..configured.keys.len())
            .filter(|index| !self.indexes.values().any(|known| known == index))
            .collect()
    }

    /// Checks that no key management service without a record unwraps the key of another one. Otherwise, values would stay under
    /// the key of the other service after a rotation. Skips unavailable services.
    pub async fn check_services(
        &self,
        configured: &ConfiguredKeys,
        records: &[KeyRecord],
    ) -> Result<(), KeyRingError> {
        for index in self.unrecognized(configured) {
            let source = configured.keys.get(index).map(|key| &key.source);
            let Some(source @ KeySource::Wrapped(_)) = source else {
                continue;
            };
            for record in records {
                let Some(other) = self.indexes.get(&record.id) else {
                    continue;
                };
                match source.data_key(record).await {
                    Ok(None) => {}
                    Ok(Some(_)) => return Err(KeyRingError::SameKeyUnwrapped(*other, index)),
                    Err(_) => break,
                }
            }
        }
        Ok(())
    }

    /// Checks that at least one of the keys of stored values is known: a server with wrong keys must not start.
    ///
    /// # Errors
    /// If values are stored, and all of their keys are unknown.
    pub fn check(&self, in_use: &[Uuid]) -> Result<(), NoMatchingKeyError> {
        if in_use.is_empty() || in_use.iter().any(|id| self.keys.contains_key(id)) {
            return Ok(());
        }
        Err(NoMatchingKeyError(in_use.to_vec()))
    }

    /// Returns the recognized keys, or `None` if the active key is not recognized yet.
    pub fn key_ring(&self) -> Option<KeyRing> {
        Some(KeyRing {
            active: self.active?,
            keys: self.keys.clone(),
        })
    }

    /// Returns the recognized keys for decryption. The key ring can't encrypt if the active key is not recognized yet.
    pub fn key_ring_to_read(&self) -> KeyRing {
        KeyRing {
            active: self.active.unwrap_or_default(),
            keys: self.keys.clone(),
        }
    }

    async fn compare_one(
        &mut self,
        configured: &ConfiguredKeys,
        record: &KeyRecord,
    ) -> Result<(), ComparisonError> {
        if !is_well_formed(record) {
            return Err(ComparisonError::RecordMalformed(record.id));
        }
        let mut outcome = Ok(());
        // The active key comes first, because another service may unwrap the same keys.
        let mut numbered: Vec<_> = configured.keys.iter().enumerate().collect();
        numbered.sort_by_key(|(_, key)| !key.is_active);
        for (index, key) in numbered {
            let data_key = match key.source.data_key(record).await {
                Ok(Some(data_key)) => data_key,
                Ok(None) => continue,
                Err(failure) => {
                    outcome = outcome.and(Err(failure));
                    continue;
                }
            };
            let active = self.active.filter(|_| index == configured.active);
            if let Some(active) = active
                && self.keys.get(&active).map(|key| &key.root) != Some(&data_key.root)
            {
                self.compared.insert(record.id);
                return Err(ComparisonError::ActiveKeyAmbiguous(active, record.id));
            }
            self.keys.insert(record.id, Arc::new(data_key));
            self.indexes.insert(record.id, index);
            if index == configured.active && self.active.is_none() {
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
