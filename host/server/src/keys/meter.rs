//! Counts the encryptions of the active key in advance.
//!
//! An AES-GCM key with random nonces may encrypt at most 2³² values. Servers reserve numbers in the database and use
//! them up in memory. So a killed server has counted too many, never too few, and the counts of several servers add up.

use std::sync::atomic::{AtomicU64, Ordering};

use keywright_core::ports::SealFailure;
use keywright_crypto::{ENCRYPTIONS_PER_KEY_MAX, ENCRYPTIONS_PER_KEY_WARNED};
use keywright_storage::SqlEncryptionKeyRepository;
use tokio::sync::Mutex;
use uuid::Uuid;

/// Counts the encryptions of one key.
pub(super) struct EncryptionMeter {
    repository: SqlEncryptionKeyRepository,
    key_id: Uuid,
    /// The number of reserved encryptions left.
    left: AtomicU64,
    /// The number of encryptions to reserve next.
    next: Mutex<u64>,
}

impl EncryptionMeter {
    pub(super) fn new(repository: SqlEncryptionKeyRepository, key_id: Uuid) -> Self {
        Self {
            repository,
            key_id,
            left: AtomicU64::new(0),
            next: Mutex::new(RESERVED_FIRST),
        }
    }

    /// Counts one encryption, before it happens.
    pub(super) async fn count(&self) -> Result<(), SealFailure> {
        if self.take_reserved() {
            return Ok(());
        }
        let mut next = self.next.lock().await;
        // Another task may have reserved meanwhile.
        if self.take_reserved() {
            return Ok(());
        }
        let encryptions = self.reserve(*next).await?;
        self.left.fetch_add(*next - 1, Ordering::AcqRel);
        *next = (*next * 2).min(RESERVED_MAX);
        if encryptions >= ENCRYPTIONS_PER_KEY_WARNED {
            tracing::warn!(
                encryption.key = %self.key_id,
                encryption.encryptions = encryptions,
                encryption.encryptions_max = ENCRYPTIONS_PER_KEY_MAX,
                "the active encryption key has encrypted more than half of its maximum number of values: configure a new active key"
            );
        }
        Ok(())
    }

    fn take_reserved(&self) -> bool {
        let taken = self
            .left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
                left.checked_sub(1)
            });
        taken.is_ok()
    }

    /// Returns the number of encryptions counted so far, on all servers.
    async fn reserve(&self, count: u64) -> Result<u64, SealFailure> {
        let reserving =
            self.repository
                .reserve_encryptions(self.key_id, count, ENCRYPTIONS_PER_KEY_MAX);
        match reserving.await {
            Ok(Some(encryptions)) => Ok(encryptions),
            Ok(None) => {
                tracing::error!(
                    encryption.key = %self.key_id,
                    "the active encryption key has reached its maximum number of encryptions: values can't be stored until a \
                     new key is active"
                );
                Err(SealFailure::KeyExhausted(self.key_id))
            }
            Err(failure) => {
                tracing::warn!(
                    error = &failure as &dyn std::error::Error,
                    "could not count the encryptions of the active key"
                );
                Err(SealFailure::UsageNotCounted)
            }
        }
    }
}

/// The number of encryptions reserved at first, and the maximum reserved at once. Unused reservations are lost at
/// shutdown, so the first one is small.
const RESERVED_FIRST: u64 = 1_024;
const RESERVED_MAX: u64 = 65_536;
