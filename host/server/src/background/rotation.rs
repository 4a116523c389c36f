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

impl Counts {
    /// Adds a batch and logs its new failures. Returns their number.
    fn add(&mut self, batch: &RotatedBatch, known_failures: &mut KnownFailures) -> u64 {
        let mut new_failures = 0;
        for &version_id in &batch.failed {
            if known_failures.insert(version_id) {
                new_failures += 1;
                ProgressLog::failed(version_id);
            }
        }
        self.rotated += batch.rotated;
        self.failed += u64::try_from(batch.failed.len()).unwrap_or(u64::MAX);
        new_failures
    }
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
        let new_failures = pass.counts.add(batch, &mut self.known_failures);
        measurements::rotation_batch_done(batch.rotated, new_failures);
        let counts = &mut pass.counts;
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
    use super::*;

    #[test]
    fn failures_count_in_each_pass_even_if_already_reported() {
        let failed = (0..=KNOWN_FAILURES_MAX).map(|number| Uuid::from_u128(number as u128));
        let batch = RotatedBatch {
            failed: failed.collect(),
            ..RotatedBatch::default()
        };
        let mut known = KnownFailures::default();
        for new_failures in [KNOWN_FAILURES_MAX as u64, 0] {
            let mut counts = Counts::default();
            assert_eq!(counts.add(&batch, &mut known), new_failures);
            assert_eq!(counts.failed, KNOWN_FAILURES_MAX as u64 + 1);
        }
    }
}
