//! The key ring of a running server, which recognizes keys that other servers activate.
//!
//! While an operator changes the key of several servers, some of them encrypt with a key that others only have in their
//! configuration: it had no record when they started. They read the records when they first need the key for a value,
//! and every few seconds while a configured key has no record. Records read earlier stay valid: records are only added,
//! and no record is compared twice.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use keywright_core::{
    Secret,
    ports::{
        Envelope, KeyStanding, RecognitionFailure, RepositoryFailure, SealFailure, SealedPlace,
        Sealer,
    },
};
use keywright_crypto::{ComparisonFailed, ConfiguredKeys, DerivationFailed, KeyRing, Recognition};
use keywright_storage::SqlEncryptionKeyRepository;
use tokio::{runtime::Handle, sync::Mutex, task};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::{meter::EncryptionMeter, records::records_of};
use crate::background::{PANIC_PAUSE, catch_panic};

/// The key ring of a running server.
pub(crate) struct SharedKeyRing {
    configured: Arc<ConfiguredKeys>,
    repository: SqlEncryptionKeyRepository,
    current: RwLock<Arc<Current>>,
    meter: EncryptionMeter,
    /// Locked while reading records; the time of the last failure.
    looking: Mutex<Option<Instant>>,
}

/// Keys for one purpose, derived from the encryption keys.
pub(crate) struct DerivedKeys {
    /// Derived from the active key.
    pub(crate) active: Zeroizing<[u8; 32]>,
    /// Derived from the other keys.
    pub(crate) others: Vec<Zeroizing<[u8; 32]>>,
}

/// The known keys at one time.
struct Current {
    recognition: Recognition,
    key_ring: KeyRing,
}

impl SharedKeyRing {
    pub(super) fn new(
        configured: Arc<ConfiguredKeys>,
        repository: SqlEncryptionKeyRepository,
        recognition: Recognition,
        key_ring: KeyRing,
    ) -> Self {
        Self {
            configured,
            meter: EncryptionMeter::new(repository.clone(), key_ring.active_key_id()),
            repository,
            current: RwLock::new(Arc::new(Current {
                recognition,
                key_ring,
            })),
            looking: Mutex::new(None),
        }
    }

    /// Derives keys for one purpose from the active key and from the other keys known now.
    pub(crate) fn derive(&self, label: &str) -> Result<DerivedKeys, DerivationFailed> {
        let current = self.current();
        Ok(DerivedKeys {
            active: current.key_ring.derive(label)?,
            others: current.key_ring.derive_from_others(label)?,
        })
    }

    /// Returns the id of the active key. It never changes.
    pub(crate) fn active_key_id(&self) -> Uuid {
        self.current().key_ring.active_key_id()
    }

    /// Reads new records every few seconds, until each configured key has one, or the process ends.
    pub(crate) fn watched(self) -> Arc<Self> {
        let shared = Arc::new(self);
        let watching = Arc::clone(&shared);
        tokio::spawn(async move {
            while catch_panic("key-records", Box::pin(watching.watch()))
                .await
                .is_none()
            {
                tokio::time::sleep(PANIC_PAUSE).await;
            }
        });
        shared
    }

    async fn watch(&self) {
        while !self.is_complete() {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let mut failed_at = self.looking.lock().await;
            if let Err(failure) = self.look(&mut failed_at).await {
                tracing::debug!(
                    error = &failure as &dyn std::error::Error,
                    "could not read the encryption key records"
                );
            }
        }
    }

    fn is_complete(&self) -> bool {
        let current = self.current();
        current
            .recognition
            .unrecognised(&self.configured)
            .is_empty()
    }

    fn current(&self) -> Arc<Current> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }

    /// Reads the records, and compares the new ones on a blocking thread.
    async fn look(&self, failed_at: &mut Option<Instant>) -> Result<(), RepositoryFailure> {
        let records = records_of(self.repository.all().await?)
            .map_err(|_| RepositoryFailure::Inconsistent("encryption_key.provider"))?;
        let configured = Arc::clone(&self.configured);
        let mut recognition = self.current().recognition.clone();
        let handle = Handle::current();
        let comparing = task::spawn_blocking(move || {
            let outcome = handle.block_on(recognition.compare(&configured, &records));
            (recognition, outcome)
        });
        let (recognition, outcome) = comparing
            .await
            .map_err(|cause| RepositoryFailure::Unavailable(cause.into()))?;
        *failed_at = outcome.as_ref().is_err().then(Instant::now);
        log_failure(&outcome);
        if let Some(key_ring) = recognition.key_ring() {
            self.replace(Current {
                recognition,
                key_ring,
            });
        }
        Ok(())
    }

    fn replace(&self, current: Current) {
        let known = self.current();
        let is_new = |id: &Uuid| known.key_ring.standing(*id) == KeyStanding::Unknown;
        for id in current.key_ring.key_ids().filter(is_new) {
            tracing::info!(
                encryption.key = %id,
                "recognized an encryption key that another server has activated"
            );
        }
        let mut slot = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *slot = Arc::new(current);
    }
}

#[async_trait]
impl Sealer for SharedKeyRing {
    async fn seal(
        &self,
        place: SealedPlace<'_>,
        plaintext: &Secret,
    ) -> Result<Envelope, SealFailure> {
        self.meter.count().await?;
        self.current().key_ring.seal(place, plaintext)
    }

    fn open(&self, place: SealedPlace<'_>, envelope: &Envelope) -> Result<Secret, SealFailure> {
        self.current().key_ring.open(place, envelope)
    }

    fn standing(&self, key_id: Uuid) -> KeyStanding {
        self.current().key_ring.standing(key_id)
    }

    async fn recognise(&self, key_id: Uuid) -> Result<(), RecognitionFailure> {
        if self.current().recognition.was_compared(key_id) {
            return Ok(());
        }
        let mut failed_at = self.looking.lock().await;
        let has_just_failed = failed_at.is_some_and(|at| at.elapsed() < FAILURE_PAUSE);
        if !self.current().recognition.was_compared(key_id) && !has_just_failed {
            self.look(&mut failed_at).await?;
        }
        if self.current().recognition.was_compared(key_id) || failed_at.is_none() {
            return Ok(());
        }
        Err(SealFailure::KeyManagementUnavailable(key_id).into())
    }
}

fn log_failure(outcome: &Result<(), ComparisonFailed>) {
    if let Err(failure) = outcome {
        tracing::warn!(
            error = failure as &dyn std::error::Error,
            "could not compare the record of an encryption key with the configured keys"
        );
    }
}

/// The interval between checks for new records.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// The pause after a key management plugin failed to respond.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);
