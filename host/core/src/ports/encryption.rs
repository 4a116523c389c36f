//! Encryption of stored values, and key-encryption keys that never leave a key management service.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use strum::IntoStaticStr;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::{Secret, credential::LookupName, ports::RepositoryError};

/// Encryption of stored values. Each ciphertext is bound to its record.
#[async_trait]
pub trait Sealer: Send + Sync {
    /// Counts the encryption, then encrypts with the active key. The result can only be decrypted for the same record.
    async fn seal(
        &self,
        context: SealContext<'_>,
        plaintext: &Secret,
    ) -> Result<Envelope, SealError>;

    /// Decrypts an envelope.
    ///
    /// # Errors
    /// If the key is not configured, or the envelope was encrypted for another record or modified.
    fn open(&self, context: SealContext<'_>, envelope: &Envelope) -> Result<Secret, SealError>;

    /// Returns whether the key with this id is active, inactive or unknown.
    fn status(&self, key_id: Uuid) -> KeyStatus;

    /// Compares an unknown key with the configured keys: another server may have activated it since this server started.
    /// Call it before [`Sealer::open`], which doesn't compare keys. Cheap for a key that was compared before.
    async fn recognize(&self, key_id: Uuid) -> Result<(), RecognitionError>;
}

/// Whether an encryption key is configured, and whether it is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyStatus {
    /// The key encrypts and decrypts.
    Active,
    /// The key is configured and only decrypts.
    Inactive,
    /// The key is not configured. Values encrypted with it can't be read.
    Unknown,
}

/// The stored record of an encryption key. It does not contain the key.
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
    /// The time when the key was first active.
    pub created_at: DateTime<Utc>,
}

/// The parameters to obtain a key. The variants are named like the providers.
#[derive(Clone, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum KeyDerivation {
    /// The key is derived from a password.
    Password(PasswordDerivation),
    /// The key itself is configured.
    Raw,
    /// A key management service decrypts these bytes to the key.
    #[strum(serialize = "kms")]
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

/// The stored records of encryption keys.
#[async_trait]
pub trait EncryptionKeyRepository: Send + Sync {
    /// Returns the number of versions encrypted with each key that has a record or a version, in no particular order.
    async fn versions_by_key(&self) -> Result<Vec<(Uuid, u64)>, RepositoryError>;

    /// Returns the number of encryptions reserved for each key, in no particular order. Unused keys may be missing.
    async fn encryptions_by_key(&self) -> Result<Vec<(Uuid, u64)>, RepositoryError>;
}

/// The record to which a ciphertext is bound.
#[derive(Clone, Copy, Debug)]
pub struct SealContext<'a> {
    /// The id of the version.
    pub version_id: Uuid,
    /// The name of its credential.
    pub name: &'a LookupName,
}

/// A ciphertext with its key id and nonce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The id of the encryption key.
    pub key_id: Uuid,
    /// The nonce.
    pub nonce: Vec<u8>,
    /// The ciphertext with its tag.
    pub ciphertext: Vec<u8>,
}

/// The error of an encryption or a decryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// Decryption failed. The cause is omitted so that it leaks nothing.
    #[error(
        "could not decrypt the stored value: its ciphertext was modified or moved from another record"
    )]
    NotAuthentic,
    /// The active key has reached its limit of encryptions.
    #[error(
        "the encryption key {0} has reached its limit of encryptions; activate a new key to store values"
    )]
    KeyExhausted(Uuid),
    /// No configured key has this id.
    #[error("the encryption key {0} is not configured")]
    KeyUnknown(Uuid),
    /// A key management plugin did not respond, so the key can't be compared with the configured keys.
    #[error(
        "could not determine whether the encryption key {0} is configured: a key management plugin does not respond"
    )]
    KeyManagementUnavailable(Uuid),
    /// Encryption failed.
    #[error("could not encrypt the value")]
    SealingFailed,
    /// The storage could not count the encryption. The active key must not encrypt before the encryption is counted.
    #[error(
        "the value can't be encrypted at present: the storage could not count the use of the encryption key"
    )]
    UsageNotCounted,
}

/// The error of comparing a key with the configured keys.
#[derive(Debug, thiserror::Error)]
pub enum RecognitionError {
    /// The record of the key can't be read.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The key can't be compared with the configured keys.
    #[error(transparent)]
    Seal(#[from] SealError),
}

/// A service that encrypts keys with a key-encryption key that never leaves the service.
#[async_trait]
pub trait KeyManagement: Send + Sync {
    /// Encrypts a key. The result is stored; only the service can decrypt it.
    async fn wrap_key(&self, key: &[u8]) -> Result<Vec<u8>, KeyManagementError>;

    /// Decrypts a key. `None` if the service reports that it did not encrypt this key.
    async fn unwrap_key(
        &self,
        wrapped_key: &[u8],
    ) -> Result<Option<Zeroizing<Vec<u8>>>, KeyManagementError>;
}

/// The error of a key management service. `Display` names the service and the cause, and contains no secret.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct KeyManagementError(#[from] pub Box<dyn std::error::Error + Send + Sync>);
