//! The ports of background work: leases, retention, and the rotation of encryption keys.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use crate::{
    credential::CredentialName,
    ports::{Envelope, RepositoryError},
    retention::{NameRange, RetentionLimits, RetentionThreshold},
};

/// Leases in a database: a lease names a piece of work that one server at a time should do, and has at most one holder
/// until it expires.
///
/// Times come from the clocks of the servers. A lease that is renewed `r` before its expiry has one holder as long as no two
/// clocks differ by more than `r`. If they do, or if a holder pauses for longer, two servers may hold it for a while. So a
/// lease saves work, but correctness must not depend on it.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Acquires a lease if no other holder has it at `now`. Returns whether it was acquired.
    async fn acquire(
        &self,
        lease: &Lease,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<bool, RepositoryError>;

    /// Extends a lease. Returns `false` if another holder has acquired it, or it was released.
    async fn renew(&self, lease: &Lease, until: DateTime<Utc>) -> Result<bool, RepositoryError>;

    /// Releases a lease before it expires. No effect if this holder does not have it.
    async fn release(&self, lease: &Lease) -> Result<(), RepositoryError>;
}

/// A lease and its holder, or a server that tries to acquire it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The name of the work, the same for all servers.
    pub name: &'static str,
    /// The unique id of the holder.
    pub holder: Uuid,
    /// The maximum remaining time of the lease: one that expires later was acquired while a clock was ahead.
    pub time_max: TimeDelta,
}

/// The versions of credentials that retention may delete.
///
/// A version is needed, and stays regardless of the threshold, if deleting it would change any response other than a list of
/// versions:
///
/// - the latest version of its credential, the newest that is not transitional, and the newest with a certificate
/// - a transitional version
/// - a version that signed an existing version
/// - for each CA that signed versions of its credential, the latest of these versions
///
/// If a method that writes fails, it has written nothing, unless the commit succeeded and its response was lost.
#[async_trait]
pub trait RetentionRepository: Send + Sync {
    /// Searches the first credentials of a range, at most `count_max`, and returns the credentials among them that have versions
    /// beyond the threshold.
    async fn page(
        &self,
        names: &NameRange,
        threshold: RetentionThreshold,
        count_max: u32,
    ) -> Result<RetentionPage, RepositoryError>;

    /// Returns the oldest deletable versions of a credential after a sequence, at most `count_max`.
    async fn deletable_versions(
        &self,
        credential_id: Uuid,
        threshold: RetentionThreshold,
        after_sequence: i64,
        count_max: u32,
    ) -> Result<Vec<DeletableVersion>, RepositoryError>;

    /// Deletes the versions among these that are still deletable, in one transaction. Returns their ids, in no particular order.
    async fn delete_versions(
        &self,
        credential_id: Uuid,
        threshold: RetentionThreshold,
        version_ids: &[Uuid],
    ) -> Result<Vec<Uuid>, RepositoryError>;
}

/// The record of the last clock reading of any server.
#[async_trait]
pub trait RetentionClock: Send + Sync {
    /// Reads the record; `None` before the first reading.
    async fn read(&self) -> Result<Option<ClockRecord>, RepositoryError>;

    /// Replaces the record.
    async fn write(&self, record: ClockRecord) -> Result<(), RepositoryError>;
}

/// The last clock reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockRecord {
    /// The time that the clock showed.
    pub seen_at: DateTime<Utc>,
    /// The time from which versions may be deleted by age.
    pub trusted_from: DateTime<Utc>,
}

impl ClockRecord {
    /// Returns whether the clock was trusted at the reading.
    pub fn is_trusted(&self) -> bool {
        self.trusted_from <= self.seen_at
    }
}

/// Some credentials of a range of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionPage {
    /// The credentials with versions beyond the threshold. Some may have no deletable version.
    pub exceeding: Vec<ExceedingCredential>,
    /// The range of the remaining names, or `None`.
    pub rest: Option<NameRange>,
}

/// A credential that has versions beyond a threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExceedingCredential {
    /// Its id.
    pub id: Uuid,
    /// Its name, with the casing of its first version.
    pub name: CredentialName,
}

/// A version that may be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletableVersion {
    /// Its id.
    pub id: Uuid,
    /// Its position in the order of all versions.
    pub sequence: i64,
}

/// The audit trail of versions that retention deletes.
#[async_trait]
pub trait RetentionTrail: Send + Sync {
    /// Records the deletion of versions, before they are deleted.
    ///
    /// # Errors
    /// If the record can't be written. Nothing must be deleted then.
    async fn announce(&self, deletion: &RetentionDeletion<'_>) -> Result<(), AuditTrailError>;

    /// Records that announced versions were not deleted, as soon as the trail is writable.
    fn retract(&self, deletion: &RetentionDeletion<'_>, reason: NotDeleted);
}

/// Versions of a credential that a policy is about to delete.
#[derive(Clone, Debug)]
pub struct RetentionDeletion<'a> {
    /// The id of the run.
    pub run_id: Uuid,
    /// The credential.
    pub credential: &'a ExceedingCredential,
    /// The path of the policy.
    pub policy_path: &'a str,
    /// The limits of the policy.
    pub limits: RetentionLimits,
    /// The ids of the versions.
    pub version_ids: &'a [Uuid],
}

/// The reason why an announced version was not deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDeleted {
    /// The database did not confirm the deletion. The version may be deleted nevertheless.
    Unconfirmed,
    /// The version is needed now, or was deleted concurrently.
    Changed,
}

/// The audit trail can't be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit trail can't be written at present, so nothing is deleted")]
pub struct AuditTrailError;

/// Re-encrypting versions, and the active key that all servers share.
#[async_trait]
pub trait KeyRotationRepository: Send + Sync {
    /// Records that a server has started with this active key. No effect if the last started server had the same key.
    async fn activate(&self, key_id: Uuid) -> Result<(), RepositoryError>;

    /// Like [`KeyRotationRepository::activate`], but only if no server has ever started with this active key.
    async fn activate_new(&self, key_id: Uuid) -> Result<(), RepositoryError>;

    /// Returns the active key of the last recorded start, or `None` before the first.
    async fn last_activated(&self) -> Result<Option<Uuid>, RepositoryError>;

    /// Returns the keys that encrypt at least one version, in no particular order. The cost doesn't depend on the number of
    /// versions.
    async fn keys_in_use(&self) -> Result<Vec<Uuid>, RepositoryError>;

    /// Returns at most `count_max` versions of a key after this sequence, in the order of their sequences. Returns fewer if
    /// they are large, to limit memory, but at least one if there is one.
    async fn versions_under(
        &self,
        key_id: Uuid,
        after_sequence: i64,
        count_max: u32,
    ) -> Result<Vec<SealedVersion>, RepositoryError>;

    /// Replaces the envelopes of versions that still have the key and the nonce with which they were read. Skips versions
    /// that were concurrently deleted or re-encrypted. Returns the number of replaced envelopes.
    ///
    /// # Errors
    /// If a transaction fails. Envelopes that earlier transactions replaced stay replaced.
    async fn replace_envelopes(&self, versions: &[ResealedVersion])
    -> Result<u64, RepositoryError>;
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
