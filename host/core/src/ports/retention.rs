//! What retention needs from outside: the versions that may go, and the trail that tells of them.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::RepositoryFailure;
use crate::{
    credential::CredentialName,
    retention::{NameRange, RetentionLimits, RetentionThreshold},
};

/// The versions of credentials, as far as retention is concerned.
///
/// What it may delete is said here alone. A version stays, whatever the threshold is, when without it another answer would
/// change than a list of versions: when it is the newest of its credential, the newest that is not transitional, or the
/// newest that has a certificate; when it is transitional; when it has signed a version that is still there; and when it is
/// the newest of its credential that a certain authority has signed.
#[async_trait]
pub trait RetentionRepository: Send + Sync {
    /// Looks at the first credentials, so many at most, whose names are in a range, and returns those of them that have
    /// versions beyond the threshold.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn page(
        &self,
        names: &NameRange,
        threshold: RetentionThreshold,
        count_max: u32,
    ) -> Result<RetentionPage, RepositoryFailure>;

    /// The oldest versions of a credential, so many at most, that may be deleted, of those that come after a sequence.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn deletable_versions(
        &self,
        credential_id: Uuid,
        threshold: RetentionThreshold,
        after_sequence: i64,
        count_max: u32,
    ) -> Result<Vec<DeletableVersion>, RepositoryFailure>;

    /// Deletes those of these versions that may still be deleted, in one transaction, and returns their ids, in no order.
    ///
    /// # Errors
    /// When the database can't answer; then nothing was deleted, unless the answer to the commit was lost.
    async fn delete_versions(
        &self,
        credential_id: Uuid,
        threshold: RetentionThreshold,
        version_ids: &[Uuid],
    ) -> Result<Vec<Uuid>, RepositoryFailure>;
}

/// Where the looks of all servers at the clock are written down.
#[async_trait]
pub trait RetentionClock: Send + Sync {
    /// Reads the last look; `None` before the first.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn read(&self) -> Result<Option<ClockRecord>, RepositoryFailure>;

    /// Replaces the last look.
    ///
    /// # Errors
    /// When the database can't answer.
    async fn write(&self, record: ClockRecord) -> Result<(), RepositoryFailure>;
}

/// The last look at the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockRecord {
    /// What the clock said.
    pub seen_at: DateTime<Utc>,
    /// From when on versions may be deleted by their age.
    pub trusted_from: DateTime<Utc>,
}

impl ClockRecord {
    /// Whether the clock was trusted at the moment of the look.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.trusted_from <= self.seen_at
    }
}

/// Some credentials of a range of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionPage {
    /// Those that have versions beyond the threshold; not all of them need have one that may be deleted.
    pub exceeding: Vec<ExceedingCredential>,
    /// The range of the names that were not looked at; none when there are no more.
    pub rest: Option<NameRange>,
}

/// A credential that has versions beyond a threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExceedingCredential {
    /// Identifies it.
    pub id: Uuid,
    /// Its name, in the casing of its first writer.
    pub name: CredentialName,
}

/// A version that may be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletableVersion {
    /// Identifies it.
    pub id: Uuid,
    /// Its place in the order of all versions.
    pub sequence: i64,
}

/// Where it is written down which versions the server deletes by itself.
#[async_trait]
pub trait RetentionTrail: Send + Sync {
    /// Writes down that versions are deleted, before they are.
    ///
    /// # Errors
    /// When that can't be done at present. Nothing must be deleted then.
    async fn announce(&self, deletion: &RetentionDeletion<'_>) -> Result<(), TrailUnwritten>;

    /// Writes down that announced versions are not deleted, as soon as that can be done.
    fn take_back(&self, deletion: &RetentionDeletion<'_>, reason: NotDeleted);
}

/// Versions of a credential that a policy is about to delete.
#[derive(Clone, Debug)]
pub struct RetentionDeletion<'a> {
    /// Identifies the run to which it belongs.
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

/// Why a version is not deleted that was to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDeleted {
    /// The database did not confirm it. It may be deleted all the same, if only the confirmation was lost.
    Unconfirmed,
    /// It is needed now, or somebody else has deleted it.
    Changed,
}

/// The trail can't be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit trail can't be written at present, so nothing is deleted")]
pub struct TrailUnwritten;
