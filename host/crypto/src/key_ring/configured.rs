//! The keys as the operator configured them.

use std::{fmt, num::NonZeroU32, sync::Arc};

use aws_lc_rs::{pbkdf2, rand};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use chrono::{DateTime, Utc};
use keywright_core::{
    Secret,
    ports::{KeyManagement, KeyManagementFailure},
};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::{
    DerivationFailed,
    data_key::{DataKey, KEY_BYTES},
    record::{KeyDerivation, KeyRecord, PasswordDerivation, SALT_BYTES},
};

/// The fewest iterations with which a new key is derived from a password.
pub const PASSWORD_ITERATIONS_MIN: u32 = 210_000;

/// The most iterations, so that no record keeps a server from starting for ever.
pub const PASSWORD_ITERATIONS_MAX: u32 = 10_000_000;

/// The longest wrapped key that is stored, in bytes.
pub const WRAPPED_KEY_BYTES_MAX: usize = 16 * 1_024;

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
    /// It is 32 random bytes that a key management service has encrypted, and that are stored so.
    Wrapped(WrappingKey),
}

/// The 32 bytes of a key.
pub struct RawKey(Zeroizing<[u8; KEY_BYTES]>);

/// The key of a key management service that encrypts other keys.
#[derive(Clone)]
pub struct WrappingKey {
    /// Where the service is: two that are at the same place are the same.
    pub place: String,
    /// The service.
    pub service: Arc<dyn KeyManagement>,
}

/// A text that is not 32 bytes in base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a raw encryption key must be {KEY_BYTES} bytes in base64")]
pub struct RawKeyMalformed;

/// All configured keys, in their order: one of them is active, and no two are the same.
#[derive(Debug)]
pub struct ConfiguredKeys {
    keys: Vec<ConfiguredKey>,
    active: usize,
}

/// Why the configured keys can't be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeysRefused {
    /// A password would be stretched too little or endlessly.
    #[error(
        "an encryption password needs from {PASSWORD_ITERATIONS_MIN} to {PASSWORD_ITERATIONS_MAX} iterations"
    )]
    IterationsOutOfRange,
    /// No key is active.
    #[error("one encryption key must be active, and none is")]
    NoActiveKey,
    /// A password is empty.
    #[error("an encryption password is empty")]
    PasswordEmpty,
    /// Two keys are the same one.
    #[error(
        "the encryption keys {0} and {1}, counted from 1 in the order of the configuration, are the same"
    )]
    SameKeyTwice(usize, usize),
    /// More than one key is active.
    #[error("one encryption key must be active, and several are")]
    SeveralActiveKeys,
}

/// Why the record of a new key could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RecordNotMade {
    /// The operating system gave no randomness, or the cipher failed.
    #[error("the record of a new encryption key could not be made")]
    CipherFailed,
    /// The key management service failed.
    #[error(transparent)]
    KeyManagement(#[from] KeyManagementFailure),
    /// The key management service did not give back the key that it was given.
    #[error("{0} does not decrypt what it has encrypted itself")]
    NotUnwrapped(String),
    /// The key management service made too much of the key.
    #[error("{0} made more than {WRAPPED_KEY_BYTES_MAX} bytes of a key of {KEY_BYTES} bytes")]
    WrappedKeyTooLong(String),
}

impl ConfiguredKeys {
    /// Takes keys that can be meant.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn new(keys: Vec<ConfiguredKey>) -> Result<Self, KeysRefused> {
        for key in &keys {
            key.source.check()?;
        }
        for (place, key) in keys.iter().enumerate() {
            let mut before = keys.iter().take(place);
            if let Some(other) = before.position(|other| other.source.is(&key.source)) {
                return Err(KeysRefused::SameKeyTwice(other + 1, place + 1));
            }
        }
        let numbered = keys.iter().enumerate();
        let active: Vec<usize> = numbered
            .filter(|(_, key)| key.is_active)
            .map(|(place, _)| place)
            .collect();
        match active[..] {
            [] => Err(KeysRefused::NoActiveKey),
            [active] => Ok(Self { keys, active }),
            _ => Err(KeysRefused::SeveralActiveKeys),
        }
    }

    /// The keys, in their order.
    #[must_use]
    pub fn all(&self) -> &[ConfiguredKey] {
        &self.keys
    }

    /// The place of the active one among them.
    pub(super) fn active(&self) -> usize {
        self.active
    }

    /// Makes a record for the active key, which has none yet. It must be on disk before anything is encrypted with the key.
    ///
    /// # Errors
    /// When there is no randomness, or when the key management service fails.
    pub async fn new_record(
        &self,
        id: Uuid,
        now: DateTime<Utc>,
    ) -> Result<KeyRecord, RecordNotMade> {
        let key = self
            .keys
            .get(self.active)
            .ok_or(RecordNotMade::CipherFailed)?;
        let (root, derivation) = key.source.fresh().await?;
        DataKey::new(root)
            .ok()
            .and_then(|key| KeyRecord::new(id, derivation, &key, now))
            .ok_or(RecordNotMade::CipherFailed)
    }
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
        Ok(Self::Raw(RawKey(key_of(&bytes).ok_or(RawKeyMalformed)?)))
    }

    /// Whether it can be meant, whatever other keys there are.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), KeysRefused> {
        let Self::Password {
            password,
            iterations,
        } = self
        else {
            return Ok(());
        };
        if password.expose().is_empty() {
            return Err(KeysRefused::PasswordEmpty);
        }
        if !(PASSWORD_ITERATIONS_MIN..=PASSWORD_ITERATIONS_MAX).contains(iterations) {
            return Err(KeysRefused::IterationsOutOfRange);
        }
        Ok(())
    }

    /// Whether both give the same key. Only the operator's own configuration is compared, so the time may tell of it.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Password { password: one, .. }, Self::Password { password: two, .. }) => {
                one.expose() == two.expose()
            }
            (Self::Raw(one), Self::Raw(two)) => one.0 == two.0,
            (Self::Wrapped(one), Self::Wrapped(two)) => one.place == two.place,
            _ => false,
        }
    }

    /// The key that this source gives with these parameters; none when the parameters are another source's.
    pub(super) async fn data_key(
        &self,
        derivation: &KeyDerivation,
    ) -> Result<Option<DataKey>, KeyNotGiven> {
        let root = match (self, derivation) {
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
        Ok(DataKey::new(root).map(Some)?)
    }

    /// A new key of this source, and how it comes about again.
    async fn fresh(&self) -> Result<(Zeroizing<[u8; KEY_BYTES]>, KeyDerivation), RecordNotMade> {
        match self {
            Self::Password {
                password,
                iterations,
            } => {
                let mut salt = vec![0; SALT_BYTES];
                rand::fill(&mut salt).map_err(|_| RecordNotMade::CipherFailed)?;
                let parameters = PasswordDerivation {
                    salt,
                    iterations: *iterations,
                };
                let root =
                    stretch(password, &parameters).map_err(|_| RecordNotMade::CipherFailed)?;
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
    /// A key that the service decrypts; none when it is another service's, or no key.
    async fn unwrap_key(
        &self,
        wrapped_key: &[u8],
    ) -> Result<Option<Zeroizing<[u8; KEY_BYTES]>>, KeyManagementFailure> {
        let key = self.service.unwrap_key(wrapped_key).await?;
        Ok(key.and_then(|key| key_of(&key)))
    }

    /// A new key, as it is and wrapped. What the service can't unwrap again is never stored: it would be found out only when
    /// values depend on it.
    async fn fresh(&self) -> Result<(Zeroizing<[u8; KEY_BYTES]>, Vec<u8>), RecordNotMade> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        rand::fill(key.as_mut_slice()).map_err(|_| RecordNotMade::CipherFailed)?;
        let wrapped_key = self.service.wrap_key(key.as_slice()).await?;
        if wrapped_key.len() > WRAPPED_KEY_BYTES_MAX {
            return Err(RecordNotMade::WrappedKeyTooLong(self.place.clone()));
        }
        match self.unwrap_key(&wrapped_key).await? {
            Some(unwrapped) if unwrapped == key => Ok((key, wrapped_key)),
            _ => Err(RecordNotMade::NotUnwrapped(self.place.clone())),
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
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// Why a source did not give its key.
#[derive(Debug)]
pub(super) enum KeyNotGiven {
    Derivation(DerivationFailed),
    KeyManagement(KeyManagementFailure),
}

impl From<DerivationFailed> for KeyNotGiven {
    fn from(failure: DerivationFailed) -> Self {
        Self::Derivation(failure)
    }
}

impl From<KeyManagementFailure> for KeyNotGiven {
    fn from(failure: KeyManagementFailure) -> Self {
        Self::KeyManagement(failure)
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
