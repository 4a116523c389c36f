//! Encryption of what is stored.

use async_trait::async_trait;
use uuid::Uuid;

use crate::{Secret, credential::LookupName, ports::RepositoryFailure};

/// Encryption of what is stored, bound to its place.
#[async_trait]
pub trait Sealer: Send + Sync {
    /// Encrypts with the active key, once this is counted. The result opens only at the same place.
    ///
    /// # Errors
    /// When the cipher fails, when the key has encrypted as much as it may, or when its use can't be counted at present.
    async fn seal(
        &self,
        place: SealedPlace<'_>,
        plaintext: &Secret,
    ) -> Result<Envelope, SealFailure>;

    /// Decrypts.
    ///
    /// # Errors
    /// When the key is not configured, or the envelope was not sealed for this place, or was changed.
    fn open(&self, place: SealedPlace<'_>, envelope: &Envelope) -> Result<Secret, SealFailure>;

    /// What the key with this id is to the server.
    fn standing(&self, key_id: Uuid) -> KeyStanding;

    /// Looks whether a key whose standing is unknown is one of those that are configured: another server may have made it
    /// active since this one started. Ask it before [`Sealer::open`], which does not look. It costs next to nothing for a
    /// key that was looked at before.
    ///
    /// # Errors
    /// When it can't be told at present.
    async fn recognise(&self, key_id: Uuid) -> Result<(), RecognitionFailure>;
}

/// What an encryption key is to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStanding {
    /// It encrypts and decrypts.
    Active,
    /// It is configured, and only decrypts.
    Inactive,
    /// It is not configured: what is encrypted with it can't be read.
    Unknown,
}

/// The records of encryption keys in a database.
#[async_trait]
pub trait EncryptionKeyRepository: Send + Sync {
    /// How many versions are encrypted with each key that has a record, in no order.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn versions_by_key(&self) -> Result<Vec<(Uuid, u64)>, RepositoryFailure>;

    /// How many values each key may have encrypted, in no order. Keys that have encrypted nothing may be missing.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn encryptions_by_key(&self) -> Result<Vec<(Uuid, u64)>, RepositoryFailure>;
}

/// Where sealed bytes belong.
#[derive(Clone, Copy, Debug)]
pub struct SealedPlace<'a> {
    /// The version.
    pub version_id: Uuid,
    /// The name of its credential.
    pub name: &'a LookupName,
}

/// Encrypted bytes with what it takes to open them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The key that sealed them.
    pub key_id: Uuid,
    /// The nonce.
    pub nonce: Vec<u8>,
    /// The ciphertext with its tag.
    pub ciphertext: Vec<u8>,
}

/// Why something could not be sealed or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealFailure {
    /// The cipher refused; the reason is not told, so that nothing leaks.
    #[error(
        "the stored value could not be decrypted: it was changed, or does not belong where it stands"
    )]
    NotAuthentic,
    /// The active key may not encrypt any more.
    #[error(
        "the encryption key {0} has reached its limit of encrypted values, so nothing can be stored: activate a new key"
    )]
    KeyExhausted(Uuid),
    /// No configured key has this id.
    #[error("the encryption key {0} is not configured")]
    KeyUnknown(Uuid),
    /// Whose key it is could not be asked.
    #[error(
        "can't determine whether the encryption key {0} is configured: a key management plugin does not respond"
    )]
    KeyManagementUnavailable(Uuid),
    /// Encryption failed.
    #[error("the value could not be encrypted")]
    SealingFailed,
    /// How much the active key encrypts could not be written down, without which it encrypts nothing.
    #[error(
        "the value can't be encrypted at present: the storage failed to count the use of the encryption key"
    )]
    UsageNotCounted,
}

/// Why it can't be told at present whether a key is configured.
#[derive(Debug, thiserror::Error)]
pub enum RecognitionFailure {
    /// Its record could not be read.
    #[error(transparent)]
    Repository(#[from] RepositoryFailure),
    /// It could not be compared with the configured keys.
    #[error(transparent)]
    Seal(#[from] SealFailure),
}
