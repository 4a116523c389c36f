//! The key ring of a server, from the configured secrets and the key records in the database. It recognizes keys that other servers
//! activate.
//!
//! While an operator changes the active key of several servers, some servers encrypt with the new key. The other servers have
//! this key in their configuration, but found no record of it when they started. They read the records again when they first
//! need the key for a value, and every few seconds while a configured key has no record. Records read earlier stay valid:
//! records are only added, and no record is compared twice.

use std::{
    collections::HashSet,
    error::Error,
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use keywright_core::{
    Secret,
    ports::{
        Envelope, Identifiers, KeyRotationRepository, KeyStatus, RecognitionError, RepositoryError,
        SealContext, SealError, Sealer,
    },
};
use keywright_crypto::{
    ConfiguredKey, ConfiguredKeys, DerivationError, ENCRYPTIONS_PER_KEY_MAX,
    ENCRYPTIONS_PER_KEY_WARNED, KeyRing, KeySource, Recognition,
};
use keywright_kms::PluginSettings;
use keywright_storage::Database;
use parking_lot::RwLock;
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    task::block_in_place,
    time::timeout,
};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::{
    background::{PANIC_PAUSE, catch_panic},
    config::EncryptionConfig,
    started::{StartupContext, StartupError},
};

/// Recognizes the configured keys by their records. If the active key has no record, stores one or waits for another
/// server to do so.
pub(crate) async fn unlock(
    config: &EncryptionConfig,
    database: &Database,
    identifiers: &dyn Identifiers,
    now: DateTime<Utc>,
) -> Result<SharedKeyRing, StartupError> {
    let mut keys = RecognizedKeys::read(config, database).await?;
    let mut is_added = false;
    let mut seconds_waited = 0;
    loop {
        let in_use = keys.check().await?;
        if let Some(key_ring) = keys.recognition.key_ring() {
            keys.check_services().await?;
            keys.log(&key_ring, &in_use);
            return Ok(keys.shared(key_ring));
        }
        if is_added {
            return Err(StartupError::new(
                "the new record does not match the active encryption key",
            ));
        }
        if config.key_creation_enabled {
            is_added = keys.add_record(identifiers, now).await?;
        } else {
            wait(config.key_wait_seconds_max, &mut seconds_waited).await?;
        }
        keys.compare().await?;
    }
}

/// Recognizes the configured keys for read access: nothing is stored, and the active key needs no record.
pub(crate) async fn unlock_to_read(
    config: &EncryptionConfig,
    database: &Database,
) -> Result<SharedKeyRing, StartupError> {
    let keys = RecognizedKeys::read(config, database).await?;
    keys.check().await?;
    keys.check_services().await?;
    let key_ring = keys.recognition.key_ring_to_read();
    Ok(keys.shared(key_ring))
}

/// Returns a key ring that contains only the active key, without using a database. Returns `None` unless the active key
/// is a readable raw key. Use the key ring only to derive keys: no record contains the id of its key.
pub(crate) async fn raw_key_ring(config: &EncryptionConfig) -> Option<KeyRing> {
    let active = config.keys.iter().find(|key| key.active)?;
    let source = active.source().ok()?;
    let KeySource::Raw(_) = source else {
        return None;
    };
    let active = ConfiguredKey {
        source,
        is_active: true,
    };
    let configured = ConfiguredKeys::new(vec![active]).ok()?;
    let record = configured.new_record(Uuid::nil(), DateTime::UNIX_EPOCH);
    let records = [record.await.ok()?];
    let mut recognition = Recognition::default();
    recognition.compare(&configured, &records).await.ok()?;
    recognition.key_ring()
}

/// The configured keys, and which of them have records.
pub(crate) struct RecognizedKeys {
    configured: Arc<ConfiguredKeys>,
    database: Database,
    recognition: Recognition,
}

impl RecognizedKeys {
    /// Reads the configured keys and compares them with the records. Nothing is stored.
    pub(crate) async fn read(
        config: &EncryptionConfig,
        database: &Database,
    ) -> Result<Self, StartupError> {
        let mut keys = Self {
            configured: config.read_keys().await?,
            database: database.clone(),
            recognition: Recognition::default(),
        };
        keys.compare().await?;
        Ok(keys)
    }

    pub(crate) fn status(&self, key_id: Uuid) -> KeyStatus {
        self.recognition.key_ring_to_read().status(key_id)
    }

    /// Returns whether the active key has a record. If so, it was the active key before.
    pub(crate) fn is_active_known(&self) -> bool {
        self.recognition.key_ring().is_some()
    }

    /// Compares the keys with new records.
    async fn compare(&mut self) -> Result<(), StartupError> {
        let records = self.database.encryption_keys().await.map_err(read_failed)?;
        self.recognition
            .compare(&self.configured, &records)
            .await
            .while_doing("loading the encryption keys")
    }

    /// Checks that stored values can be decrypted. Returns the keys that encrypt values.
    async fn check(&self) -> Result<Vec<Uuid>, StartupError> {
        let in_use = self.database.keys_in_use().await.map_err(read_failed)?;
        let checked = self.recognition.check(&in_use);
        checked.map_err(|cause| StartupError::new(cause.to_string()))?;
        Ok(in_use)
    }

    async fn check_services(&self) -> Result<(), StartupError> {
        let records = self.database.encryption_keys().await.map_err(read_failed)?;
        self.recognition
            .check_services(&self.configured, &records)
            .await
            .while_doing("loading the encryption keys")
    }

    /// Stores a record of the active key, unless another server has stored one meanwhile. Returns whether it was
    /// stored.
    async fn add_record(
        &self,
        identifiers: &dyn Identifiers,
        now: DateTime<Utc>,
    ) -> Result<bool, StartupError> {
        let record = self
            .configured
            .new_record(identifiers.fresh(), now)
            .await
            .while_doing("creating the record of the new encryption key")?;
        let known: HashSet<Uuid> = self.recognition.compared().collect();
        let adding = self.database.add_encryption_key(&record, &known).await;
        adding.while_doing("storing the record of the new encryption key")
    }

    fn log(&self, key_ring: &KeyRing, in_use: &[Uuid]) {
        let unknown = in_use
            .iter()
            .filter(|id| key_ring.status(**id) == KeyStatus::Unknown);
        for id in unknown {
            tracing::warn!(
                encryption.key = %id,
                "stored values can't be read: their encryption key is not configured, or its password is wrong"
            );
        }
        for index in self.recognition.unrecognized(&self.configured) {
            tracing::warn!(
                encryption.key_number = index + 1,
                "ignored an encryption key: it is not active, and no server has used it as the active key"
            );
        }
        tracing::info!(
            encryption.active_key = %key_ring.active_key_id(),
            encryption.keys = key_ring.key_ids().count(),
            "loaded encryption keys"
        );
    }

    fn shared(self, key_ring: KeyRing) -> SharedKeyRing {
        SharedKeyRing::new(self.configured, self.database, self.recognition, key_ring)
    }
}

fn read_failed(cause: RepositoryError) -> StartupError {
    StartupError::while_doing("reading the encryption key records", cause)
}

/// Waits a second for another server to create the active key's record.
async fn wait(seconds_max: u32, seconds_waited: &mut u32) -> Result<(), StartupError> {
    if *seconds_waited == 0 {
        tracing::warn!(
            encryption.key_wait_seconds_max = seconds_max,
            "the active encryption key has no record in the database, and encryption.key_creation_enabled is false: waiting for \
             another server to create it"
        );
    }
    if *seconds_waited >= seconds_max {
        return Err(StartupError::new(format!(
            "the active encryption key has no record in the database after {seconds_max} seconds, and \
             encryption.key_creation_enabled is false: check that the key is correct, and let one server create its record"
        )));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    *seconds_waited += 1;
    Ok(())
}

/// The key ring of a running server.
pub(crate) struct SharedKeyRing {
    configured: Arc<ConfiguredKeys>,
    database: Database,
    current: RwLock<Arc<Current>>,
    meter: Arc<EncryptionMeter>,
    /// The time of the last failure to read records. Locked while records are read.
    reading: Arc<Mutex<Option<Instant>>>,
}

/// The keys known at one time.
struct Current {
    recognition: Recognition,
    key_ring: KeyRing,
}

impl SharedKeyRing {
    fn new(
        configured: Arc<ConfiguredKeys>,
        database: Database,
        recognition: Recognition,
        key_ring: KeyRing,
    ) -> Self {
        Self {
            configured,
            meter: Arc::new(EncryptionMeter::new(
                database.clone(),
                key_ring.active_key_id(),
            )),
            database,
            current: RwLock::new(Arc::new(Current {
                recognition,
                key_ring,
            })),
            reading: Arc::default(),
        }
    }

    /// Derives a key for one purpose from the active key.
    pub(crate) fn derive(&self, label: &str) -> Result<Zeroizing<[u8; 32]>, DerivationError> {
        self.current().key_ring.derive(label)
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
            tokio::time::sleep(RECORDS_INTERVAL).await;
            let failed_at = Arc::clone(&self.reading).lock_owned().await;
            if let Err(failure) = self.read_records(failed_at).await {
                tracing::debug!(
                    error = &failure as &dyn Error,
                    "could not read the encryption key records"
                );
            }
        }
    }

    fn is_complete(&self) -> bool {
        let current = self.current();
        current
            .recognition
            .unrecognized(&self.configured)
            .is_empty()
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read())
    }

    /// Reads the records, and compares new records with the configured keys in a task. The task holds the lock, so that cancelled
    /// requests don't start several comparisons at a time. Deriving a key from a password blocks the task's thread.
    async fn read_records(
        &self,
        mut failed_at: OwnedMutexGuard<Option<Instant>>,
    ) -> Result<OwnedMutexGuard<Option<Instant>>, RepositoryError> {
        let records = self.database.encryption_keys().await?;
        let configured = Arc::clone(&self.configured);
        let mut recognition = self.current().recognition.clone();
        let mut comparing = Box::pin(async move {
            let comparing = recognition.compare(&configured, &records);
            let failure = match timeout(PluginSettings::DEADLINE, comparing).await {
                Ok(outcome) => outcome.err().map(Box::<dyn Error + Send + Sync>::from),
                Err(elapsed) => Some(elapsed.into()),
            };
            if let Some(failure) = &failure {
                tracing::warn!(
                    error = failure.as_ref() as &dyn Error,
                    "could not compare the record of an encryption key with the configured keys"
                );
            }
            *failed_at = failure.map(|_| Instant::now());
            (recognition, failed_at)
        });
        let blocking = poll_fn(move |context| block_in_place(|| comparing.as_mut().poll(context)));
        let (recognition, failed_at) = tokio::spawn(blocking)
            .await
            .map_err(|cause| RepositoryError::Unavailable(cause.into()))?;
        if let Some(key_ring) = recognition.key_ring() {
            self.replace(Current {
                recognition,
                key_ring,
            });
        }
        Ok(failed_at)
    }

    fn replace(&self, current: Current) {
        let known = self.current();
        let is_new = |id: &Uuid| known.key_ring.status(*id) == KeyStatus::Unknown;
        for id in current.key_ring.key_ids().filter(is_new) {
            tracing::info!(
                encryption.key = %id,
                "recognized an encryption key that another server has activated"
            );
        }
        *self.current.write() = Arc::new(current);
    }
}

#[async_trait]
impl Sealer for SharedKeyRing {
    async fn seal(
        &self,
        context: SealContext<'_>,
        plaintext: &Secret,
    ) -> Result<Envelope, SealError> {
        if !self.meter.take_reserved() {
            // The reservation runs in its own task: if the request is dropped meanwhile, the other reserved encryptions must
            // not be lost.
            let meter = Arc::clone(&self.meter);
            let counting = tokio::spawn(async move { meter.reserve_and_count().await });
            counting.await.map_err(|_| SealError::UsageNotCounted)??;
        }
        self.current().key_ring.seal(context, plaintext)
    }

    fn open(&self, context: SealContext<'_>, envelope: &Envelope) -> Result<Secret, SealError> {
        self.current().key_ring.open(context, envelope)
    }

    fn status(&self, key_id: Uuid) -> KeyStatus {
        self.current().key_ring.status(key_id)
    }

    async fn recognize(&self, key_id: Uuid) -> Result<(), RecognitionError> {
        if self.current().recognition.was_compared(key_id) {
            return Ok(());
        }
        let mut failed_at = Arc::clone(&self.reading).lock_owned().await;
        let has_just_failed = failed_at.is_some_and(|at| at.elapsed() < FAILURE_PAUSE);
        if !self.current().recognition.was_compared(key_id) && !has_just_failed {
            failed_at = self.read_records(failed_at).await?;
        }
        if self.current().recognition.was_compared(key_id) || failed_at.is_none() {
            return Ok(());
        }
        Err(SealError::KeyManagementUnavailable(key_id).into())
    }
}

/// Counts the encryptions of the active key in advance.
///
/// An AES-GCM key with random nonces may encrypt at most 2³² values. Servers reserve numbers in the database and use
/// them up in memory. So a killed server has counted too many, never too few, and the counts of several servers add up.
struct EncryptionMeter {
    database: Database,
    key_id: Uuid,
    /// The number of reserved encryptions left.
    left: AtomicU64,
    /// The number of encryptions to reserve next.
    next: Mutex<u64>,
}

impl EncryptionMeter {
    fn new(database: Database, key_id: Uuid) -> Self {
        Self {
            database,
            key_id,
            left: AtomicU64::new(0),
            next: Mutex::new(RESERVED_FIRST),
        }
    }

    /// Reserves encryptions and counts one of them, before it happens.
    async fn reserve_and_count(&self) -> Result<(), SealError> {
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

    /// Counts one reserved encryption, or returns `false` if none is left.
    fn take_reserved(&self) -> bool {
        let taken = self
            .left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
                left.checked_sub(1)
            });
        taken.is_ok()
    }

    /// Reserves encryptions in the database. Returns the number of encryptions counted so far, on all servers.
    async fn reserve(&self, count: u64) -> Result<u64, SealError> {
        let reserving =
            self.database
                .reserve_encryptions(self.key_id, count, ENCRYPTIONS_PER_KEY_MAX);
        match reserving.await {
            Ok(Some(encryptions)) => Ok(encryptions),
            Ok(None) => {
                tracing::error!(
                    encryption.key = %self.key_id,
                    "the active encryption key has reached its maximum number of encryptions: values can't be stored until a \
                     new key is active"
                );
                Err(SealError::KeyExhausted(self.key_id))
            }
            Err(failure) => {
                tracing::warn!(
                    error = &failure as &dyn Error,
                    "could not count the encryptions of the active key"
                );
                Err(SealError::UsageNotCounted)
            }
        }
    }
}

const RECORDS_INTERVAL: Duration = Duration::from_secs(5);

/// The pause after a key management plugin failed to respond.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

/// The number of encryptions reserved at first, and the maximum reserved at once. Unused reservations are lost at
/// shutdown, so the first one is small.
const RESERVED_FIRST: u64 = 1_024;
const RESERVED_MAX: u64 = 65_536;
