//! The rotation of encryption keys: what other configured keys encrypt is encrypted with the active one.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use keywright_core::{
    Failure,
    encryption_key::{EncryptionKeys, RotateKeys, RotatedBatch},
};
use uuid::Uuid;

use super::{Stop, Work};
use crate::{config::RotationConfig, measurements};

/// The rotation of encryption keys.
pub(crate) struct Rotation<R> {
    rotate: RotateKeys,
    usage: EncryptionKeys,
    config: RotationConfig,
    known_failures: KnownFailures,
    completed: Option<Counts>,
    reporter: R,
}

/// Who is told how a rotation goes on.
pub(crate) trait Reporter: Send + 'static {
    /// The first version was rotated, or failed to be; so many are left after it and those of its batch.
    fn begun(&mut self, counts: &Counts);

    /// One more batch is done.
    fn advanced(&mut self, counts: &Counts);

    /// A version does not decrypt. It is told once, and stays as it is.
    fn failed(&mut self, version_id: Uuid);

    /// Nothing more is done, because nothing is left that can be rotated or because it is time to stop.
    fn ended(&mut self, counts: &Counts);

    /// Nothing is rotated: a server with another active key started after this one.
    fn stands_back(&mut self);
}

/// How far a rotation has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The versions that are under the active key now and were not before.
    pub(crate) rotated: u64,
    /// The versions that don't decrypt.
    pub(crate) failed: u64,
    /// The versions that are left under inactive keys, as they were counted at the beginning, without those that are done.
    /// Until anything new is found, none is counted: then they are those that have failed so far.
    pub(crate) remaining: u64,
}

impl<R: Reporter> Rotation<R> {
    /// Rotates as it is configured.
    pub(crate) fn new(
        rotate: RotateKeys,
        usage: EncryptionKeys,
        config: RotationConfig,
        reporter: R,
    ) -> Self {
        Self {
            rotate,
            usage,
            config,
            known_failures: KnownFailures::default(),
            completed: None,
            reporter,
        }
    }

    /// Whom it tells.
    pub(crate) fn reporter_mut(&mut self) -> &mut R {
        &mut self.reporter
    }

    /// What came of the last walk, if it came to its end by itself.
    pub(crate) fn completed(&self) -> Option<Counts> {
        self.completed
    }

    /// Rotates what is under one key; false when it is time to stop.
    async fn rotate_key(
        &mut self,
        key_id: Uuid,
        pass: &mut Pass,
        stop: &mut Stop,
    ) -> Result<bool, Failure> {
        let mut after_sequence = 0;
        loop {
            if !self.rotate.is_towards_active_key().await? {
                self.reporter.stands_back();
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
            if !stop
                .pause(self.config.pause_milliseconds.milliseconds())
                .await
            {
                return Ok(false);
            }
        }
    }

    /// Counts a batch, and tells of it.
    async fn count(&mut self, batch: &RotatedBatch, pass: &mut Pass) -> Result<(), Failure> {
        let mut new_failures = 0;
        for &version_id in &batch.failed {
            if self.known_failures.insert(version_id) {
                new_failures += 1;
                self.reporter.failed(version_id);
            }
        }
        measurements::rotation::batch_done(batch.rotated, new_failures);
        let counts = &mut pass.counts;
        counts.rotated += batch.rotated;
        counts.failed += u64::try_from(batch.failed.len()).unwrap_or(u64::MAX);
        let is_news = batch.rotated + new_failures > 0;
        if pass.has_begun {
            counts.remaining = counts.remaining.saturating_sub(batch.rotated + batch.gone);
        } else {
            counts.remaining = counts.failed;
            if is_news {
                counts.remaining = self.usage.usage().await?.inactive_keys;
                pass.has_begun = true;
                self.reporter.begun(counts);
            }
        }
        measurements::rotation::versions_remain(counts.remaining);
        if pass.has_begun {
            self.reporter.advanced(counts);
        }
        Ok(())
    }
}

/// One walk through all versions under inactive keys.
#[derive(Default)]
struct Pass {
    /// Whether anything new was found. What failed before, and fails again, is no news.
    has_begun: bool,
    counts: Counts,
}

#[async_trait]
impl<R: Reporter> Work for Rotation<R> {
    fn name(&self) -> &'static str {
        "key-rotation"
    }

    fn interval(&self) -> Duration {
        self.config.interval_seconds.seconds()
    }

    async fn run(&mut self, mut stop: Stop) -> Result<(), Failure> {
        let mut pass = Pass::default();
        self.completed = None;
        let mut is_stopped = false;
        for key_id in self.rotate.keys_to_rotate().await? {
            if !self.rotate_key(key_id, &mut pass, &mut stop).await? {
                is_stopped = true;
                break;
            }
        }
        if is_stopped {
            // What is left is left to others.
            measurements::rotation::versions_remain(0);
        } else {
            self.completed = Some(pass.counts);
            measurements::rotation::versions_remain(pass.counts.remaining);
        }
        if pass.has_begun {
            self.reporter.ended(&pass.counts);
        }
        Ok(())
    }
}

/// The versions that were told not to decrypt.
#[derive(Default)]
struct KnownFailures(HashSet<Uuid>);

impl KnownFailures {
    /// Whether it is new. Beyond the most that are kept, none is.
    fn insert(&mut self, version_id: Uuid) -> bool {
        self.0.len() < KNOWN_FAILURES_MAX && self.0.insert(version_id)
    }
}

/// Tells the log.
#[derive(Default)]
pub(crate) struct LogReporter {
    told_at: Option<Instant>,
    has_stood_back: bool,
}

impl Reporter for LogReporter {
    fn begun(&mut self, counts: &Counts) {
        self.told_at = Some(Instant::now());
        self.has_stood_back = false;
        tracing::info!(
            rotation.versions_remaining = counts.remaining,
            "the rotation of encryption keys has begun"
        );
    }

    fn advanced(&mut self, counts: &Counts) {
        if self
            .told_at
            .is_some_and(|told_at| told_at.elapsed() < LOG_INTERVAL)
        {
            return;
        }
        self.told_at = Some(Instant::now());
        tracing::info!(
            rotation.versions_rotated = counts.rotated,
            rotation.versions_failed = counts.failed,
            rotation.versions_remaining = counts.remaining,
            "the rotation of encryption keys goes on"
        );
    }

    fn failed(&mut self, version_id: Uuid) {
        tracing::error!(
            credential_version.id = %version_id,
            "a version can't be rotated to the active encryption key: it was changed, or does not belong where it stands"
        );
    }

    fn ended(&mut self, counts: &Counts) {
        tracing::info!(
            rotation.versions_rotated = counts.rotated,
            rotation.versions_failed = counts.failed,
            rotation.versions_remaining = counts.remaining,
            "the rotation of encryption keys has ended"
        );
    }

    fn stands_back(&mut self) {
        if !self.has_stood_back {
            self.has_stood_back = true;
            tracing::warn!(
                "encryption keys are not rotated here: a server with another active key started after this one, and what \
                 is encrypted goes towards that key"
            );
        }
    }
}

/// How often the log tells how a rotation goes on.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// How many versions that don't decrypt are told. A store with more of them is broken, which is known by then.
const KNOWN_FAILURES_MAX: usize = 10_000;

#[cfg(test)]
mod tests;
