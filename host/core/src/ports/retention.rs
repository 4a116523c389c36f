//! The ports of retention: deletable versions, the shared clock record, and the audit trail of deletions.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::RepositoryFailure;
use crate::{
    credential::CredentialName,
    retention::{NameRange, RetentionLimits, RetentionThreshold},
};

/// The versions of credentials that retention may delete.
///
/// A version is needed, and stays regardless of the threshold, if deleting it would change any response other than a list of
/// versions:
///
/// - the newest version of its credential, the newest that is not transitional, and the newest with a certificate
/// - a transitional version
/// - a version that signed an existing version
/// - for each CA, the newest version of a credential that this CA signed
#[async_trait]
pub trait RetentionRepository: Send + Sync {
    /// Searches the first credentials of a range, at most `count_max`, and returns those with versions beyond the threshold.
    ///
    /// # Errors
    /// If the query fails.
    async fn page(
        &self,
        names: &NameRange,
        threshold: RetentionThreshold,
        count_max: u32,
    ) -> Result<RetentionPage, RepositoryFailure>;

    /// Returns the oldest deletable versions of a credential after a sequence, at most `count_max`.
    ///
    /// # Errors
    /// If the query fails.
    async fn deletable_versions(
        &self,
        credential_id: Uuid,
        threshold: RetentionThreshold,
        after_sequence: i64,
        count_max: u32,
    ) -> Result<Vec<DeletableVersion>, RepositoryFailure>;

    /// Deletes the versions among these that are still deletable, in one transaction. Returns their ids, in no order.
    ///
    /// # Errors
    /// If the transaction fails. Nothing is deleted then, unless only the response to the commit was lost.
    async fn delete_versions(
        &self,
        credential_id: Uuid,
        threshold: RetentionThreshold,
        version_ids: &[Uuid],
    ) -> Result<Vec<Uuid>, RepositoryFailure>;
}

/// The record of the last clock reading of any server.
#[async_trait]
pub trait RetentionClock: Send + Sync {
    /// Reads the record; `None` before the first reading.
    ///
    /// # Errors
    /// If the query fails.
    async fn read(&self) -> Result<Option<ClockRecord>, RepositoryFailure>;

    /// Replaces the record.
    ///
    /// # Errors
    /// If the query fails.
    async fn write(&self, record: ClockRecord) -> Result<(), RepositoryFailure>;
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
    #[must_use]
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
    /// Its name, in the casing of its first writer.
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
    async fn announce(&self, deletion: &RetentionDeletion<'_>) -> Result<(), TrailUnwritten>;

    /// Records that announced versions were not deleted, as soon as the trail is writable.
    fn take_back(&self, deletion: &RetentionDeletion<'_>, reason: NotDeleted);
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
pub struct TrailUnwritten;
