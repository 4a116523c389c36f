//! Retention: deleting old versions of credentials according to policies.
//!
//! A run pages through the names that have limits and deletes batches of versions that exceed the limits and are not needed.
//! Its driver may stop after any step. A run has no persistent state, so an interrupted run starts over.
//!
//! [`RetentionRepository`] defines which versions are needed. The deleting transaction checks it, so runs may be concurrent
//! with writers and with other runs.

mod clock;
mod policy;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, sync::Arc};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::ports::{
    Clock, DeletableVersion, ExceedingCredential, Identifiers, NotDeleted, RepositoryFailure,
    RetentionDeletion, RetentionRepository, RetentionTrail, TrailUnwritten,
};

pub use clock::{CLOCK_DIFFERENCE_MAX, CLOCK_GAP_MAX, CLOCK_SETTLING, ClockWatch};
pub use policy::{
    Kept, NameRange, PathTwice, PolicyStretch, RetentionLimits, RetentionPolicies, RetentionPolicy,
    RetentionThreshold,
};

/// Deletes versions that no policy keeps.
#[derive(Clone)]
pub struct Retention {
    /// The policies.
    pub policies: RetentionPolicies,
    /// The versions.
    pub repository: Arc<dyn RetentionRepository>,
    /// The audit trail of deletions. `None` disables it.
    pub trail: Option<Arc<dyn RetentionTrail>>,
    /// The clock that determines the age of versions.
    pub clock: Arc<dyn Clock>,
    /// Generates the ids of runs.
    pub identifiers: Arc<dyn Identifiers>,
}

/// One pass over all names that have limits.
#[derive(Debug)]
pub struct RetentionRun {
    id: Uuid,
    /// The time that determines the age of versions for the whole run. `None` if the clock is not trusted and age limits
    /// don't apply.
    now: Option<DateTime<Utc>>,
    /// The remaining stretches.
    stretches: VecDeque<PolicyStretch>,
    /// The credentials of the first stretch that have versions beyond its limits and are still to be processed.
    exceeding: VecDeque<ExceedingCredential>,
    /// The names of the first stretch that are still to be paged through, if any.
    rest: Option<NameRange>,
    /// The last processed sequence of the first credential.
    after_sequence: i64,
    versions_deleted: u64,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetentionProgress {
    /// The run is complete.
    Done,
    /// The run has more steps.
    Further,
}

/// The error of a step.
#[derive(Debug, thiserror::Error)]
pub enum RetentionFailure {
    /// The database failed.
    #[error(transparent)]
    Repository(#[from] RepositoryFailure),
    /// The audit trail could not be written.
    #[error(transparent)]
    Trail(#[from] TrailUnwritten),
}

impl Retention {
    /// Starts a run. If the clock is not trusted, age limits don't apply.
    #[must_use]
    pub fn begin(&self, is_clock_trusted: bool) -> RetentionRun {
        let stretches: VecDeque<PolicyStretch> =
            self.policies.stretches().iter().cloned().collect();
        RetentionRun {
            id: self.identifiers.fresh(),
            now: is_clock_trusted.then(|| self.clock.now()),
            rest: stretches.front().map(|stretch| stretch.names.clone()),
            stretches,
            exceeding: VecDeque::new(),
            after_sequence: 0,
            versions_deleted: 0,
        }
    }

    /// Executes the next step of a run: searches up to [`PAGE_CREDENTIALS_MAX`] credentials, or deletes up to
    /// [`BATCH_VERSIONS_MAX`] versions of one credential.
    ///
    /// # Errors
    /// If the database fails, or the audit trail can't be written. The step deletes nothing then.
    pub async fn proceed(
        &self,
        run: &mut RetentionRun,
    ) -> Result<RetentionProgress, RetentionFailure> {
        let Some(stretch) = run.stretches.front().cloned() else {
            return Ok(RetentionProgress::Done);
        };
        if let Some(credential) = run.exceeding.front().cloned() {
            self.delete_versions(run, &stretch, &credential).await?;
        } else if let Some(names) = run.rest.clone() {
            let threshold = stretch.limits.at(run.now);
            let page = self
                .repository
                .page(&names, threshold, PAGE_CREDENTIALS_MAX);
            let page = page.await?;
            run.exceeding = page.exceeding.into();
            run.rest = page.rest;
        } else {
            run.stretches.pop_front();
            let next = run.stretches.front();
            run.rest = next.map(|stretch| stretch.names.clone());
        }
        Ok(RetentionProgress::Further)
    }

    async fn delete_versions(
        &self,
        run: &mut RetentionRun,
        stretch: &PolicyStretch,
        credential: &ExceedingCredential,
    ) -> Result<(), RetentionFailure> {
        let threshold = stretch.limits.at(run.now);
        let found = self
            .repository
            .deletable_versions(
                credential.id,
                threshold,
                run.after_sequence,
                BATCH_VERSIONS_MAX,
            )
            .await?;
        if !found.is_empty() {
            let version_ids: Vec<Uuid> = found.iter().map(|version| version.id).collect();
            let deletion = RetentionDeletion {
                run_id: run.id,
                credential,
                policy_path: stretch.path.as_str(),
                limits: stretch.limits,
                version_ids: &version_ids,
            };
            let deleted = self.delete_announced(threshold, &deletion).await?;
            run.versions_deleted = run.versions_deleted.saturating_add(deleted);
        }
        run.passed(&found);
        Ok(())
    }

    /// Records versions as deleted, deletes them, and records the versions that were not deleted after all. Returns the
    /// number of deleted versions.
    async fn delete_announced(
        &self,
        threshold: RetentionThreshold,
        deletion: &RetentionDeletion<'_>,
    ) -> Result<u64, RetentionFailure> {
        if let Some(trail) = &self.trail {
            trail.announce(deletion).await?;
        }
        let take_back = |version_ids: &[Uuid], reason| {
            if let Some(trail) = &self.trail
                && !version_ids.is_empty()
            {
                let deletion = RetentionDeletion {
                    version_ids,
                    ..deletion.clone()
                };
                trail.take_back(&deletion, reason);
            }
        };
        let deleting = self.repository.delete_versions(
            deletion.credential.id,
            threshold,
            deletion.version_ids,
        );
        let deleted = match deleting.await {
            Ok(deleted) => deleted,
            Err(failure) => {
                take_back(deletion.version_ids, NotDeleted::Unconfirmed);
                return Err(failure.into());
            }
        };
        let announced = deletion.version_ids.iter().copied();
        let stayed: Vec<Uuid> = announced.filter(|id| !deleted.contains(id)).collect();
        take_back(&stayed, NotDeleted::Changed);
        Ok(u64::try_from(deleted.len()).unwrap_or(u64::MAX))
    }
}

impl RetentionRun {
    /// Returns the number of versions deleted so far.
    #[must_use]
    pub fn versions_deleted(&self) -> u64 {
        self.versions_deleted
    }

    /// Advances past these versions of the first credential, or past the credential if they are its last.
    fn passed(&mut self, versions: &[DeletableVersion]) {
        match versions.last() {
            Some(last) if versions.len() >= BATCH_VERSIONS_MAX as usize => {
                self.after_sequence = last.sequence;
            }
            _ => {
                self.exceeding.pop_front();
                self.after_sequence = 0;
            }
        }
    }
}

/// The maximum number of credentials per step.
pub const PAGE_CREDENTIALS_MAX: u32 = 500;

/// The maximum number of versions that a step deletes in one transaction. Small, so that writers don't wait long.
pub const BATCH_VERSIONS_MAX: u32 = 100;
