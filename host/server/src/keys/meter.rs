//! Counting what the active key encrypts, before it does.
//!
//! A key of AES-GCM under random nonces may encrypt 2³² values and no more. Servers reserve numbers in the database and use them
//! up in memory. So a server that is killed has counted too many, never too few, and the numbers of several servers add up.

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
    /// How many encryptions are reserved and not done yet.
    left: AtomicU64,
    /// How many are reserved next.
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

    /// Counts one encryption, which may follow.
    pub(super) async fn count(&self) -> Result<(), SealFailure> {
        if self.take_reserved() {
            return Ok(());
        }
        let mut next = self.next.lock().await;
        // Another one may have reserved meanwhile.
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
                "the active encryption key has encrypted more than half of the values that it may: make a new key the active one"
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

    /// Returns how many encryptions are counted by now, on all servers.
    async fn reserve(&self, count: u64) -> Result<u64, SealFailure> {
        let reserving =
            self.repository
                .reserve_encryptions(self.key_id, count, ENCRYPTIONS_PER_KEY_MAX);
        match reserving.await {
            Ok(Some(encryptions)) => Ok(encryptions),
            Ok(None) => {
                tracing::error!(
                    encryption.key = %self.key_id,
                    "the active encryption key has encrypted as many values as it may: nothing is stored before a new key is \
                     the active one"
                );
                Err(SealFailure::KeyExhausted(self.key_id))
            }
            Err(failure) => {
                tracing::warn!(
                    error = &failure as &dyn std::error::Error,
                    "the use of the active encryption key could not be counted"
                );
                Err(SealFailure::UsageNotCounted)
            }
        }
    }
}

/// How many encryptions a server reserves at first, and at most at once. What it has not used when it ends is lost, so it begins
/// with few.
const RESERVED_FIRST: u64 = 1_024;
const RESERVED_MAX: u64 = 65_536;
