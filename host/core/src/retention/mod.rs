//! Retention: versions of credentials do not grow for ever, where a policy says so.
//!
//! A run walks over the names for which there are limits, some credentials at a time, and deletes what is beyond the limits
//! and not needed, some versions at a time. Whoever drives it decides between any two steps whether it goes on. Nothing is
//! kept of a run but what it has deleted: one that breaks off is begun anew.
//!
//! What is needed, and so stays, is said at [`RetentionRepository`]. It is looked at in the transaction that deletes, so
//! a run may go on beside writers, and beside other runs.

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
    /// What is kept.
    pub policies: RetentionPolicies,
    /// Where the versions are.
    pub repository: Arc<dyn RetentionRepository>,
    /// Where it is written down what is deleted; without it, that is not.
    pub trail: Option<Arc<dyn RetentionTrail>>,
    /// The time, by which versions have an age.
    pub clock: Arc<dyn Clock>,
    /// What gives runs their ids.
    pub identifiers: Arc<dyn Identifiers>,
}

/// One walk over all names for which there are limits.
#[derive(Debug)]
pub struct RetentionRun {
    id: Uuid,
    /// The moment by which versions have an age, however long the run takes. `None` if the clock is not trusted: no age counts.
    now: Option<DateTime<Utc>>,
    /// What is still to be looked at.
    stretches: VecDeque<PolicyStretch>,
    /// The credentials of the first stretch that were found to have versions beyond its limits.
    exceeding: VecDeque<ExceedingCredential>,
    /// The names of the first stretch after those; none: there are no more.
    rest: Option<NameRange>,
    /// The versions of the first credential up to this sequence have been looked at.
    after_sequence: i64,
    versions_deleted: u64,
}

/// Whether there is more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetentionProgress {
    /// The run has come to its end.
    Done,
    /// There is more to do.
    Further,
}

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RetentionFailure {
    /// The database did not answer.
    #[error(transparent)]
    Repository(#[from] RepositoryFailure),
    /// The audit trail was not written.
    #[error(transparent)]
    Trail(#[from] TrailUnwritten),
}

impl Retention {
    /// Begins a run. Where the clock is not trusted, nothing is deleted for its age.
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

    /// Does the next step of a run: looks at up to [`PAGE_CREDENTIALS_MAX`] credentials, or deletes up to
    /// [`BATCH_VERSIONS_MAX`] versions of one of them.
    ///
    /// # Errors
    /// When the database does not answer, or the audit trail can't be written. What the step was about to delete stays then.
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

    /// Writes down what is deleted, deletes it, and writes down what of it is not. Returns how many are.
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
    /// How many versions it has deleted so far.
    #[must_use]
    pub fn versions_deleted(&self) -> u64 {
        self.versions_deleted
    }

    /// Goes on after these versions of the first credential, or after the credential, when they are its last.
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

/// How many credentials a step looks at.
pub const PAGE_CREDENTIALS_MAX: u32 = 500;

/// How many versions a step deletes, in one transaction: few enough for those who wait to write.
pub const BATCH_VERSIONS_MAX: u32 = 100;
