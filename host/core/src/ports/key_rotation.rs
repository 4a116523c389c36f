//! What the rotation of encryption keys needs of a database.

use async_trait::async_trait;
use uuid::Uuid;

use crate::{
    credential::CredentialName,
    ports::{Envelope, RepositoryFailure},
};

/// Versions of credentials, as those see them that encrypt them with another key; and which key that is, for all servers.
#[async_trait]
pub trait KeyRotationRepository: Send + Sync {
    /// Writes down that a server has started with this active key, after all others that ever were. Nothing changes when the
    /// last one had the same.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn activate(&self, key_id: Uuid) -> Result<(), RepositoryFailure>;

    /// The same, if no server has ever started with this active key; nothing changes otherwise.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn activate_new(&self, key_id: Uuid) -> Result<(), RepositoryFailure>;

    /// The active key of the last start that was written down; none before the first.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn last_activated(&self) -> Result<Option<Uuid>, RepositoryFailure>;

    /// The keys under which at least one version is encrypted, in no order. It costs nothing, however many versions there are.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn keys_in_use(&self) -> Result<Vec<Uuid>, RepositoryFailure>;

    /// The versions under a key behind this sequence, at most so many, in the order of their sequences. There are fewer where
    /// they are long, so that they have room in memory, and none only where there is none.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn versions_under(
        &self,
        key_id: Uuid,
        after_sequence: i64,
        count_max: u32,
    ) -> Result<Vec<SealedVersion>, RepositoryFailure>;

    /// Gives versions other envelopes, in one transaction: those that still have the key and the nonce with which they were
    /// read. The others were deleted meanwhile, or encrypted anew by somebody else, and stay as they are. How many there were.
    ///
    /// # Errors
    /// When the database can't answer; then nothing was changed, unless the answer to the commit was lost.
    async fn replace_envelopes(
        &self,
        versions: &[ResealedVersion],
    ) -> Result<u64, RepositoryFailure>;
}

/// A version of which nothing is known but how it is sealed.
#[derive(Clone, Debug)]
pub struct SealedVersion {
    /// Its sequence.
    pub sequence: i64,
    /// Its id.
    pub id: Uuid,
    /// The name of its credential.
    pub name: CredentialName,
    /// What is sealed.
    pub envelope: Envelope,
}

/// A version that was sealed anew.
#[derive(Clone, Debug)]
pub struct ResealedVersion {
    /// Its sequence.
    pub sequence: i64,
    /// The key that it had when it was read.
    pub key_id_before: Uuid,
    /// The nonce that it had when it was read: each is used once, so that it tells one envelope from all others.
    pub nonce_before: Vec<u8>,
    /// The same content, sealed again.
    pub envelope: Envelope,
}
