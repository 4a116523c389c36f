//! Key rotation: values encrypted with other configured keys are re-encrypted with the active key.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use keywright_core::{
    UseCaseError,
    encryption_key::{EncryptionKeys, RotateKeys, RotatedBatch},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::lease_holder::{Work, pause};
use crate::{config::RotationConfig, measurements};

/// Key rotation.
pub(crate) struct Rotation {
    rotate: RotateKeys,
    usage: EncryptionKeys,
    config: RotationConfig,
    known_failures: KnownFailures,
    completed: Option<Counts>,
    log: ProgressLog,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Versions re-encrypted with the active key.
    pub(crate) rotated: u64,
    /// Versions that can't be decrypted.
    pub(crate) failed: u64,
    /// The number of versions still encrypted with inactive keys. It is counted when the pass first rotates a version or finds
    /// a new failure, and then reduced by each batch. Before the count, it equals `failed`.
    pub(crate) remaining: u64,
}

impl Rotation {
    /// Creates the work from its configuration.
    pub(crate) fn new(rotate: RotateKeys, usage: EncryptionKeys, config: RotationConfig) -> Self {
        Self {
            rotate,
            usage,
            config,
            known_failures: KnownFailures::default(),
            completed: None,
            log: ProgressLog::default(),
        }
    }

    /// Returns the counts of the last pass, if it was not stopped.
    pub(crate) fn completed(&self) -> Option<Counts> {
        self.completed
    }

    async fn rotate_key(
        &mut self,
        key_id: Uuid,
        pass: &mut Pass,
        stop: &CancellationToken,
    ) -> Result<bool, UseCaseError> {
        let mut after_sequence = i64::MIN;
        loop {
            if !self.rotate.is_towards_active_key().await? {
                self.log.superseded();
                return Ok(false);
            }
            let count_max = self.config.batch_versions.count_u32();
            let batch = self
                .rotate
                .rotate_batch(key_id, after_sequence, count_max)
                .await?;
            let Some(last_sequence) = batch.last_sequence else {
                return Ok(true);
            };
            after_sequence = last_sequence;
            self.count(&batch, pass).await?;
            if !pause(stop, self.config.pause_milliseconds.milliseconds()).await {
                return Ok(false);
            }
        }
    }

    async fn count(&mut self, batch: &RotatedBatch, pass: &mut Pass) -> Result<(), UseCaseError> {
        let mut new_failures = 0;
        for &version_id in &batch.failed {
            if self.known_failures.insert(version_id) {
                new_failures += 1;
                ProgressLog::failed(version_id);
            }
        }
        measurements::rotation_batch_done(batch.rotated, new_failures);
        let counts = &mut pass.counts;
        counts.rotated += batch.rotated;
        counts.failed += u64::try_from(batch.failed.len()).unwrap_or(u64::MAX);
        let is_new = batch.rotated + new_failures > 0;
        if pass.has_started {
            counts.remaining = counts.remaining.saturating_sub(batch.rotated + batch.gone);
        } else {
            counts.remaining = counts.failed;
            if is_new {
                counts.remaining = self.usage.usage().await?.inactive_keys;
                pass.has_started = true;
                self.log.started(counts);
            }
        }
        measurements::rotation_versions_remain(counts.remaining);
        if pass.has_started {
            self.log.advanced(counts);
        }
        Ok(())
    }
}

/// One pass over all versions of inactive keys.
#[derive(Default)]
struct Pass {
    /// Whether anything new was found. Versions that failed before are not new.
    has_started: bool,
    counts: Counts,
}

#[async_trait]
impl Work for Rotation {
    fn name(&self) -> &'static str {
        "key-rotation"
    }

    fn interval(&self) -> Duration {
        self.config.interval_seconds.seconds()
    }

    async fn run(&mut self, stop: CancellationToken) -> Result<(), UseCaseError> {
        let mut pass = Pass::default();
        self.completed = None;
        let mut is_stopped = false;
        for key_id in self.rotate.keys_to_rotate().await? {
            if !self.rotate_key(key_id, &mut pass, &stop).await? {
                is_stopped = true;
                break;
            }
        }
        if is_stopped {
            // The rest is left to other servers.
            measurements::rotation_versions_remain(0);
        } else {
            self.completed = Some(pass.counts);
            measurements::rotation_versions_remain(pass.counts.remaining);
        }
        if pass.has_started {
            ProgressLog::ended(&pass.counts);
        }
        Ok(())
    }
}

/// Versions already reported as failed.
#[derive(Default)]
struct KnownFailures(HashSet<Uuid>);

impl KnownFailures {
    /// Returns whether the failure is new. If the set is full, no failure is new.
    fn insert(&mut self, version_id: Uuid) -> bool {
        self.0.len() < KNOWN_FAILURES_MAX && self.0.insert(version_id)
    }
}

/// Logs the progress of a rotation.
#[derive(Default)]
struct ProgressLog {
    logged_at: Option<Instant>,
    is_superseded: bool,
}

impl ProgressLog {
    /// The first batch with a rotated or a failed version is done; `counts` includes it.
    fn started(&mut self, counts: &Counts) {
        self.logged_at = Some(Instant::now());
        self.is_superseded = false;
        tracing::info!(
            rotation.versions_remaining = counts.remaining,
            "started rotating encryption keys"
        );
    }

    /// The first or a later batch is done.
    fn advanced(&mut self, counts: &Counts) {
        if self
            .logged_at
            .is_some_and(|logged_at| logged_at.elapsed() < LOG_INTERVAL)
        {
            return;
        }
        self.logged_at = Some(Instant::now());
        tracing::info!(
            rotation.versions_rotated = counts.rotated,
            rotation.versions_failed = counts.failed,
            rotation.versions_remaining = counts.remaining,
            "rotating encryption keys"
        );
    }

    /// A version can't be decrypted, and is not changed.
    fn failed(version_id: Uuid) {
        tracing::error!(
            credential_version.id = %version_id,
            "a version can't be rotated to the active encryption key: its ciphertext was modified or moved from another record"
        );
    }

    /// The pass has ended: no remaining version can be rotated, or a stop was requested.
    fn ended(counts: &Counts) {
        tracing::info!(
            rotation.versions_rotated = counts.rotated,
            rotation.versions_failed = counts.failed,
            rotation.versions_remaining = counts.remaining,
            "stopped rotating encryption keys"
        );
    }

    /// Nothing is rotated, because a server with another active key started later.
    fn superseded(&mut self) {
        if !self.is_superseded {
            self.is_superseded = true;
            tracing::warn!(
                "encryption keys are not rotated here: another server started later with another active key, and rotates values \
                 to that key"
            );
        }
    }
}

/// The interval between log messages about the progress.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The maximum number of failed versions to report. With more failures, the database is damaged, and further reports add nothing.
const KNOWN_FAILURES_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;
    use keywright_core::{
        Secret,
        credential::CredentialName,
        ports::{
            EncryptionKeyRepository, Envelope, KeyRotationRepository, KeyStatus, RecognitionError,
            RepositoryError, ResealedVersion, SealContext, SealError, SealedVersion, Sealer,
        },
    };

    const ACTIVE: Uuid = Uuid::from_u128(1);
    const INACTIVE: Uuid = Uuid::from_u128(2);

    /// A sealer that decrypts nothing.
    struct NothingOpens;

    #[async_trait]
    impl Sealer for NothingOpens {
        async fn seal(&self, _: SealContext<'_>, _: &Secret) -> Result<Envelope, SealError> {
            unreachable!("nothing was opened")
        }

        fn open(&self, _: SealContext<'_>, _: &Envelope) -> Result<Secret, SealError> {
            Err(SealError::NotAuthentic)
        }

        fn status(&self, key_id: Uuid) -> KeyStatus {
            if key_id == ACTIVE {
                KeyStatus::Active
            } else {
                KeyStatus::Inactive
            }
        }

        async fn recognize(&self, _: Uuid) -> Result<(), RecognitionError> {
            Ok(())
        }
    }

    /// Versions of the inactive key. `active_until` is the batch, counted from 0, before which another key becomes active.
    struct Versions {
        count: i64,
        batches: AtomicUsize,
        active_until: usize,
    }

    #[async_trait]
    impl KeyRotationRepository for Versions {
        async fn activate(&self, _: Uuid) -> Result<(), RepositoryError> {
            unreachable!("rotation activates no key")
        }

        async fn activate_new(&self, _: Uuid) -> Result<(), RepositoryError> {
            unreachable!("rotation activates no key")
        }

        async fn last_activated(&self) -> Result<Option<Uuid>, RepositoryError> {
            let batch = self.batches.fetch_add(1, Ordering::Relaxed);
            Ok(Some(if batch < self.active_until {
                ACTIVE
            } else {
                INACTIVE
            }))
        }

        async fn keys_in_use(&self) -> Result<Vec<Uuid>, RepositoryError> {
            Ok(vec![INACTIVE])
        }

        async fn versions_under(
            &self,
            key_id: Uuid,
            after_sequence: i64,
            count_max: u32,
        ) -> Result<Vec<SealedVersion>, RepositoryError> {
            let after = after_sequence.max(0);
            let last = self.count.min(after + i64::from(count_max));
            let version = |sequence: i64| SealedVersion {
                sequence,
                id: Uuid::from_u128(sequence.unsigned_abs().into()),
                name: CredentialName::from_stored("/a".to_owned()),
                envelope: Envelope {
                    key_id,
                    nonce: Vec::new(),
                    ciphertext: Vec::new(),
                },
            };
            Ok((after + 1..=last).map(version).collect())
        }

        async fn replace_envelopes(&self, _: &[ResealedVersion]) -> Result<u64, RepositoryError> {
            unreachable!("nothing was opened")
        }
    }

    #[async_trait]
    impl EncryptionKeyRepository for Versions {
        async fn encryptions_by_key(&self) -> Result<Vec<(Uuid, u64)>, RepositoryError> {
            Ok(Vec::new())
        }

        async fn versions_by_key(&self) -> Result<Vec<(Uuid, u64)>, RepositoryError> {
            Ok(vec![(INACTIVE, self.count.unsigned_abs())])
        }
    }

    fn rotation(count: i64, active_until: usize) -> Rotation {
        let sealer: Arc<dyn Sealer> = Arc::new(NothingOpens);
        let versions = Arc::new(Versions {
            count,
            batches: AtomicUsize::new(0),
            active_until,
        });
        let rotate = RotateKeys {
            repository: Arc::<Versions>::clone(&versions),
            sealer: Arc::clone(&sealer),
        };
        let usage = EncryptionKeys {
            repository: versions,
            sealer,
        };
        let config = toml::from_str("pause_milliseconds = 0").unwrap();
        Rotation::new(rotate, usage, config)
    }

    #[tokio::test]
    async fn failures_count_in_each_pass_even_if_already_reported() {
        let count = KNOWN_FAILURES_MAX as u64 + 1;
        let mut rotation = rotation(count.cast_signed(), usize::MAX);
        for _ in 0..2 {
            rotation.run(CancellationToken::new()).await.unwrap();
            let completed = rotation.completed().unwrap();
            assert_eq!((completed.rotated, completed.failed), (0, count));
        }
    }

    #[tokio::test]
    async fn a_stopped_or_superseded_pass_is_not_completed() {
        for (is_requested, active_until) in [(true, usize::MAX), (false, 1)] {
            let mut rotation = rotation(1_000, active_until);
            let stop = CancellationToken::new();
            if is_requested {
                stop.cancel();
            }
            rotation.run(stop).await.unwrap();
            assert_eq!(rotation.completed(), None);
        }
    }

    #[test]
    fn a_failure_is_new_only_once_and_up_to_the_maximum() {
        let mut known = KnownFailures::default();
        let id = |number: usize| Uuid::from_u128(number as u128);
        for number in 0..KNOWN_FAILURES_MAX {
            assert!(known.insert(id(number)));
            assert!(!known.insert(id(number)));
        }
        assert!(!known.insert(id(KNOWN_FAILURES_MAX)));
    }
}
