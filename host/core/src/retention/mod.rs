//! Retention: deleting old versions of credentials according to policies.
//!
//! A run pages through the names that have limits and deletes batches of versions that exceed the limits and are not needed.
//! The caller may stop after any step. A run has no persistent state, so an interrupted run starts over.
//!
//! [`RetentionRepository`] defines which versions are needed. The transaction that deletes versions checks that they are not
//! needed, so runs may be concurrent with writers and with other runs.

mod clock;
mod policy;

use std::{collections::VecDeque, sync::Arc};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::ports::{
    AuditTrailError, DeletableVersion, ExceedingCredential, Identifiers, NotDeleted,
    RepositoryError, RetentionDeletion, RetentionRepository, RetentionTrail,
};

pub use clock::{CLOCK_DIFFERENCE_MAX, CLOCK_GAP_MAX, CLOCK_SETTLING, ClockWatch};
pub use policy::{
    DuplicatePathError, Kept, NameRange, PolicySegment, RetentionLimits, RetentionPolicies,
    RetentionPolicy, RetentionThreshold,
};

/// Deletes versions that exceed the limits of their policy and are not needed.
#[derive(Clone)]
pub struct Retention {
    /// The policies.
    pub policies: RetentionPolicies,
    /// The versions.
    pub repository: Arc<dyn RetentionRepository>,
    /// The audit trail of deletions. `None` disables it.
    pub trail: Option<Arc<dyn RetentionTrail>>,
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
    segments: VecDeque<PolicySegment>,
    /// The pending credentials of the first segment. Each has versions that exceed the limits of the segment.
    exceeding: VecDeque<ExceedingCredential>,
    /// The remaining names of the first segment, if any.
    rest: Option<NameRange>,
    /// The sequence of the last processed version of the first credential.
    after_sequence: i64,
    versions_deleted: u64,
    /// Whether a credential was skipped, because the search for its versions or their deletion failed.
    has_skipped: bool,
    /// Whether the last deletion failed.
    has_failed: bool,
}

/// The error of a step.
#[derive(Debug, thiserror::Error)]
pub enum RetentionError {
    /// The database failed.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The audit trail could not be written.
    #[error(transparent)]
    Trail(#[from] AuditTrailError),
}

impl Retention {
    /// Starts a run that determines the age of versions at `now`, a trusted reading of the clock. With `None`, age limits don't apply.
    pub fn begin(&self, now: Option<DateTime<Utc>>) -> RetentionRun {
        let segments: VecDeque<PolicySegment> = self.policies.segments().iter().cloned().collect();
        RetentionRun {
            id: self.identifiers.fresh(),
            now,
            rest: segments.front().map(|segment| segment.names.clone()),
            segments,
            exceeding: VecDeque::new(),
            after_sequence: 0,
            versions_deleted: 0,
            has_skipped: false,
            has_failed: false,
        }
    }

    /// Executes the next step of a run: searches up to [`PAGE_CREDENTIALS_MAX`] credentials, or deletes up to
    /// [`BATCH_VERSIONS_MAX`] versions of one credential. Returns whether the run has more steps.
    ///
    /// # Errors
    /// If the database fails; or if the audit trail can't be written, in which case the step deletes nothing. If only the search
    /// for the versions of one credential or their deletion fails, the run skips this credential. It ends if the next deletion also
    /// fails: if no version can be deleted, only few must be announced.
    pub async fn proceed(&self, run: &mut RetentionRun) -> Result<bool, RetentionError> {
        let Some(segment) = run.segments.front().cloned() else {
            return Ok(false);
        };
        if let Some(credential) = run.exceeding.front().cloned() {
            self.delete_versions(run, &segment, &credential).await?;
        } else if let Some(names) = run.rest.clone() {
            let threshold = segment.limits.at(run.now);
            let page = self
                .repository
                .page(&names, threshold, PAGE_CREDENTIALS_MAX);
            let page = page.await?;
            run.exceeding = page.exceeding.into();
            run.rest = page.rest;
        } else {
            run.segments.pop_front();
            let next = run.segments.front();
            run.rest = next.map(|segment| segment.names.clone());
        }
        Ok(true)
    }

    async fn delete_versions(
        &self,
        run: &mut RetentionRun,
        segment: &PolicySegment,
        credential: &ExceedingCredential,
    ) -> Result<(), RetentionError> {
        let threshold = segment.limits.at(run.now);
        let searching = self.repository.deletable_versions(
            credential.id,
            threshold,
            run.after_sequence,
            BATCH_VERSIONS_MAX,
        );
        let found = match searching.await {
            Ok(found) => found,
            Err(failure) => {
                run.skip(segment, credential, &failure);
                return Ok(());
            }
        };
        if !found.is_empty() {
            let version_ids: Vec<Uuid> = found.iter().map(|version| version.id).collect();
            let deletion = RetentionDeletion {
                run_id: run.id,
                credential,
                policy_path: segment.path.as_str(),
                limits: segment.limits,
                version_ids: &version_ids,
            };
            let deleted = match self.delete_announced(threshold, &deletion).await {
                Err(RetentionError::Repository(failure @ RepositoryError::Query(_)))
                    if !run.has_failed =>
                {
                    run.has_failed = true;
                    run.skip(segment, credential, &failure);
                    return Ok(());
                }
                deleted => deleted?,
            };
            run.has_failed = false;
            run.versions_deleted = run.versions_deleted.saturating_add(deleted);
        }
        run.advance_past(&found);
        Ok(())
    }

    /// Records versions as deleted, deletes them, and records the versions that were not deleted after all. Returns the
    /// number of deleted versions.
    async fn delete_announced(
        &self,
        threshold: RetentionThreshold,
        deletion: &RetentionDeletion<'_>,
    ) -> Result<u64, RetentionError> {
        let mut announced = None;
        if let Some(trail) = &self.trail {
            trail.announce(deletion).await?;
            announced = Some(Announced {
                trail: trail.as_ref(),
                deletion,
                not_deleted: deletion.version_ids.to_vec(),
                reason: NotDeleted::Unconfirmed,
            });
        }
        let deleting = self.repository.delete_versions(
            deletion.credential.id,
            threshold,
            deletion.version_ids,
        );
        let deleted = deleting.await?;
        if let Some(announced) = &mut announced {
            announced.not_deleted.retain(|id| !deleted.contains(id));
            announced.reason = NotDeleted::Changed;
        }
        Ok(u64::try_from(deleted.len()).unwrap_or(u64::MAX))
    }
}

impl RetentionRun {
    /// Returns the number of versions deleted so far.
    pub fn versions_deleted(&self) -> u64 {
        self.versions_deleted
    }

    /// Returns whether the run has skipped a credential because the search for its versions or their deletion failed.
    pub fn has_skipped(&self) -> bool {
        self.has_skipped
    }

    /// Skips the first credential. The next step searches again, so that it fails if the whole database is unavailable.
    fn skip(
        &mut self,
        segment: &PolicySegment,
        credential: &ExceedingCredential,
        failure: &RepositoryError,
    ) {
        tracing::warn!(
            credential.name = credential.name.as_str(),
            error = failure as &dyn std::error::Error,
            "retention skipped a credential"
        );
        self.exceeding.clear();
        self.after_sequence = 0;
        self.rest = Some(segment.names.after(&credential.name.folded()));
        self.has_skipped = true;
    }

    /// Advances past these versions of the first credential, or past the credential if these are its last versions.
    fn advance_past(&mut self, versions: &[DeletableVersion]) {
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

/// An announced deletion. Its drop records the versions that were not deleted, even if the whole run is dropped.
struct Announced<'a> {
    trail: &'a dyn RetentionTrail,
    deletion: &'a RetentionDeletion<'a>,
    not_deleted: Vec<Uuid>,
    reason: NotDeleted,
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        if !self.not_deleted.is_empty() {
            let deletion = RetentionDeletion {
                version_ids: &self.not_deleted,
                ..self.deletion.clone()
            };
            self.trail.retract(&deletion, self.reason);
        }
    }
}

/// The maximum number of credentials per step.
pub const PAGE_CREDENTIALS_MAX: u32 = 500;

/// The maximum number of versions that a step, or the deletion of a credential, deletes in one transaction. Small, so that writers
/// don't wait long.
pub const BATCH_VERSIONS_MAX: u32 = 100;

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use futures_util::FutureExt;

    use super::*;
    use crate::{credential::CredentialName, permission::PermissionPath, ports::RetentionPage};

    /// Credentials in memory, reduced to their names and the sequences of their versions.
    #[derive(Default)]
    struct World {
        /// The names in order, each with the sequences of its deletable versions.
        credentials: Mutex<Vec<(&'static str, Vec<i64>)>>,
        /// The sequences of versions that `delete_versions` skips.
        skipped: Vec<i64>,
        /// The name of the credential whose versions can't be searched.
        unsearchable: &'static str,
        /// The names of the credentials whose versions can't be deleted.
        undeletable: &'static [&'static str],
        is_unavailable: bool,
        is_hanging: bool,
        is_trail_broken: bool,
        recorded: Mutex<Vec<String>>,
    }

    impl World {
        fn recorded(&self) -> Vec<String> {
            self.recorded.lock().unwrap().clone()
        }

        fn record(&self, event: &str, deletion: &RetentionDeletion<'_>) {
            let ids: Vec<u128> = deletion.version_ids.iter().map(Uuid::as_u128).collect();
            let line = format!("{event} {} {ids:?}", deletion.credential.name);
            self.recorded.lock().unwrap().push(line);
        }

        /// Returns the remaining versions of a credential.
        fn left(&self, id: Uuid) -> Vec<i64> {
            let index = usize::try_from(id.as_u128()).unwrap();
            self.credentials.lock().unwrap()[index].1.clone()
        }
    }

    #[async_trait]
    impl RetentionRepository for World {
        async fn page(
            &self,
            names: &NameRange,
            _: RetentionThreshold,
            count_max: u32,
        ) -> Result<RetentionPage, RepositoryError> {
            let credentials = self.credentials.lock().unwrap();
            let is_within = |name: &str| *names.from <= *name && *name < *names.before;
            let found = credentials.iter().zip(0..);
            let found = found.filter(|((name, _), _)| is_within(name));
            let found: Vec<_> = found.take(count_max as usize).collect();
            let is_full = found.len() == count_max as usize;
            let last = found.last().filter(|_| is_full);
            Ok(RetentionPage {
                rest: last.map(|((name, _), _)| names.after(name)),
                exceeding: found
                    .iter()
                    .map(|((name, _), id)| ExceedingCredential {
                        id: Uuid::from_u128(*id),
                        name: CredentialName::parse(name).unwrap(),
                    })
                    .collect(),
            })
        }

        async fn deletable_versions(
            &self,
            credential_id: Uuid,
            _: RetentionThreshold,
            after_sequence: i64,
            count_max: u32,
        ) -> Result<Vec<DeletableVersion>, RepositoryError> {
            let index = usize::try_from(credential_id.as_u128()).unwrap();
            if self.credentials.lock().unwrap()[index].0 == self.unsearchable {
                return Err(RepositoryError::Unavailable("timed out".into()));
            }
            let left = self.left(credential_id).into_iter();
            let after = left.filter(|sequence| *sequence > after_sequence);
            let found = after.take(count_max as usize);
            Ok(found
                .map(|sequence| DeletableVersion {
                    id: Uuid::from_u128(sequence.unsigned_abs().into()),
                    sequence,
                })
                .collect())
        }

        async fn delete_versions(
            &self,
            credential_id: Uuid,
            _: RetentionThreshold,
            version_ids: &[Uuid],
        ) -> Result<Vec<Uuid>, RepositoryError> {
            if self.is_hanging {
                std::future::pending::<()>().await;
            }
            if self.is_unavailable {
                return Err(RepositoryError::Unavailable("connection refused".into()));
            }
            let sequence_of = |id: &Uuid| i64::try_from(id.as_u128()).unwrap();
            let is_deleted = |id: &&Uuid| !self.skipped.contains(&sequence_of(id));
            let deleted: Vec<Uuid> = version_ids.iter().filter(is_deleted).copied().collect();
            let index = usize::try_from(credential_id.as_u128()).unwrap();
            let (name, versions) = &mut self.credentials.lock().unwrap()[index];
            if self.undeletable.contains(name) {
                return Err(RepositoryError::Query("malformed page".into()));
            }
            versions.retain(|sequence| !deleted.iter().any(|id| sequence_of(id) == *sequence));
            Ok(deleted)
        }
    }

    #[async_trait]
    impl RetentionTrail for World {
        async fn announce(&self, deletion: &RetentionDeletion<'_>) -> Result<(), AuditTrailError> {
            if self.is_trail_broken {
                return Err(AuditTrailError);
            }
            self.record("announced", deletion);
            Ok(())
        }

        fn retract(&self, deletion: &RetentionDeletion<'_>, reason: NotDeleted) {
            self.record(&format!("{reason:?}"), deletion);
        }
    }

    struct Fixed;

    impl Identifiers for Fixed {
        fn fresh(&self) -> Uuid {
            Uuid::nil()
        }
    }

    fn retention(world: &Arc<World>, paths: &[&str]) -> Retention {
        let policies = paths.iter().map(|path| RetentionPolicy {
            path: PermissionPath::parse(path).unwrap(),
            kept: Kept::Within(RetentionLimits::new(std::num::NonZeroU32::new(1), None).unwrap()),
        });
        Retention {
            policies: RetentionPolicies::new(policies.collect()).unwrap(),
            repository: Arc::<World>::clone(world),
            trail: Some(Arc::<World>::clone(world)),
            identifiers: Arc::new(Fixed),
        }
    }

    /// Completes a run and returns the number of versions that it deleted.
    async fn run(retention: &Retention) -> Result<u64, RetentionError> {
        let mut run = retention.begin(Some(DateTime::UNIX_EPOCH));
        while retention.proceed(&mut run).await? {}
        Ok(run.versions_deleted())
    }

    fn world(credentials: &[(&'static str, std::ops::Range<i64>)]) -> World {
        let credentials = credentials.iter();
        let credentials = credentials.map(|(name, versions)| (*name, versions.clone().collect()));
        World {
            credentials: Mutex::new(credentials.collect()),
            ..World::default()
        }
    }

    #[tokio::test]
    async fn a_step_deletes_one_batch_and_the_next_step_continues() {
        let batch = i64::from(BATCH_VERSIONS_MAX);
        for (versions, announcements) in
            [(batch - 1, 1), (batch, 1), (batch + 1, 2), (3 * batch, 3)]
        {
            let mut world = world(&[("/a", 1..versions + 1)]);
            // The same run must not find a skipped version again.
            world.skipped = vec![1, batch];
            let skipped = world
                .skipped
                .iter()
                .filter(|skipped| **skipped <= versions)
                .count();
            let world = Arc::new(world);
            let deleted = run(&retention(&world, &["/*"])).await.unwrap();
            assert_eq!(deleted, versions.unsigned_abs() - skipped as u64);
            let recorded = world.recorded();
            let announced = recorded.iter().filter(|line| line.starts_with("announced"));
            assert_eq!(announced.count(), announcements, "{versions}");
        }
    }

    #[tokio::test]
    async fn a_step_searches_one_page_and_the_next_step_continues() {
        let mut world = World::default();
        let count = usize::try_from(PAGE_CREDENTIALS_MAX).unwrap() + 1;
        let names: Vec<&'static str> = (0..count)
            .map(|number| &*Box::leak(format!("/{number:05}").into_boxed_str()))
            .collect();
        world.credentials = Mutex::new(names.iter().map(|name| (*name, vec![1])).collect());
        let world = Arc::new(world);
        let deleted = run(&retention(&world, &["/*"])).await.unwrap();
        assert_eq!(deleted, count as u64);
    }

    #[tokio::test]
    async fn announced_versions_that_are_not_deleted_are_recorded() {
        let mut changed = world(&[("/a", 1..4)]);
        changed.skipped = vec![2];
        let changed = Arc::new(changed);
        assert_eq!(run(&retention(&changed, &["/*"])).await.unwrap(), 2);
        assert_eq!(
            changed.recorded(),
            ["announced /a [1, 2, 3]", "Changed /a [2]"]
        );
        let mut unavailable = world(&[("/a", 1..3)]);
        unavailable.is_unavailable = true;
        let unavailable = Arc::new(unavailable);
        let outcome = run(&retention(&unavailable, &["/*"])).await;
        assert!(matches!(outcome, Err(RetentionError::Repository(_))));
        assert_eq!(
            unavailable.recorded(),
            ["announced /a [1, 2]", "Unconfirmed /a [1, 2]"]
        );
        let mut hanging = world(&[("/a", 1..3)]);
        hanging.is_hanging = true;
        let hanging = Arc::new(hanging);
        let interrupted = retention(&hanging, &["/*"]);
        assert!(run(&interrupted).now_or_never().is_none());
        assert_eq!(hanging.recorded(), unavailable.recorded());
    }

    #[tokio::test]
    async fn a_credential_whose_search_fails_is_skipped() {
        let mut world = world(&[("/a", 1..2), ("/b", 2..3), ("/c", 3..4)]);
        world.unsearchable = "/b";
        let world = Arc::new(world);
        assert_eq!(run(&retention(&world, &["/*"])).await.unwrap(), 2);
        assert_eq!(world.recorded(), ["announced /a [1]", "announced /c [3]"]);
    }

    #[tokio::test]
    async fn one_failed_deletion_is_skipped_and_two_in_a_row_end_the_run() {
        for (undeletable, deleted, left) in [
            (&["/b", "/d"][..], Some(2), vec!["/b", "/d"]),
            (&["/b", "/c"], None, vec!["/b", "/c", "/d"]),
        ] {
            let mut world = world(&[("/a", 1..2), ("/b", 2..3), ("/c", 3..4), ("/d", 4..5)]);
            world.undeletable = undeletable;
            let world = Arc::new(world);
            assert_eq!(run(&retention(&world, &["/*"])).await.ok(), deleted);
            let credentials = world.credentials.lock().unwrap();
            let kept = credentials
                .iter()
                .filter(|(_, versions)| !versions.is_empty());
            assert_eq!(kept.map(|(name, _)| *name).collect::<Vec<_>>(), left);
        }
    }

    #[test]
    fn without_a_trusted_clock_no_age_limit_applies() {
        let limits = RetentionLimits::new(None, std::num::NonZeroU32::new(1)).unwrap();
        assert_eq!(limits.at(None).created_before, None);
    }
}
