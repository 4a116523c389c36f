//! The database access of the rotation of encryption keys.

use async_trait::async_trait;
use uuid::Uuid;

use crate::{
    credential::CredentialName,
    ports::{Envelope, RepositoryFailure},
};

/// Re-encrypting versions, and the active key that all servers share.
#[async_trait]
pub trait KeyRotationRepository: Send + Sync {
    /// Records that a server has started with this active key. No effect if the last started server had the same key.
    ///
    /// # Errors
    /// If the query fails.
    async fn activate(&self, key_id: Uuid) -> Result<(), RepositoryFailure>;

    /// Like [`KeyRotationRepository::activate`], but only if no server has ever started with this active key.
    ///
    /// # Errors
    /// If the query fails.
    async fn activate_new(&self, key_id: Uuid) -> Result<(), RepositoryFailure>;

    /// Returns the active key of the last recorded start, or `None` before the first.
    ///
    /// # Errors
    /// If the query fails.
    async fn last_activated(&self) -> Result<Option<Uuid>, RepositoryFailure>;

    /// Returns the keys that encrypt at least one version, in no order. The cost doesn't depend on the number of versions.
    ///
    /// # Errors
    /// If the query fails.
    async fn keys_in_use(&self) -> Result<Vec<Uuid>, RepositoryFailure>;

    /// Returns at most `count_max` versions of a key after this sequence, in the order of their sequences. Returns fewer if
    /// they are large, to limit memory, but at least one if there is one.
    ///
    /// # Errors
    /// If the query fails.
    async fn versions_under(
        &self,
        key_id: Uuid,
        after_sequence: i64,
        count_max: u32,
    ) -> Result<Vec<SealedVersion>, RepositoryFailure>;

    /// Replaces the envelopes of versions that still have the key and the nonce with which they were read. Skips versions
    /// that were concurrently deleted or re-encrypted. Returns the number of replaced envelopes.
    ///
    /// # Errors
    /// If a transaction fails. The envelopes of earlier ones are replaced.
    async fn replace_envelopes(
        &self,
        versions: &[ResealedVersion],
    ) -> Result<u64, RepositoryFailure>;
}

/// An encrypted version.
#[derive(Clone, Debug)]
pub struct SealedVersion {
    /// Its sequence.
    pub sequence: i64,
    /// Its id.
    pub id: Uuid,
    /// The name of its credential.
    pub name: CredentialName,
    /// Its envelope.
    pub envelope: Envelope,
}

/// A re-encrypted version.
#[derive(Clone, Debug)]
pub struct ResealedVersion {
    /// Its sequence.
    pub sequence: i64,
    /// The key when the version was read.
    pub key_id_before: Uuid,
    /// The nonce when the version was read. Nonces are unique, so it identifies the envelope.
    pub nonce_before: Vec<u8>,
    /// The new envelope of the same content.
    pub envelope: Envelope,
}
