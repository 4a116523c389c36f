//! Builds a key ring from the configured secrets and the key records in the database.

mod shared;

use std::{collections::HashSet, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use keywright_core::ports::{Identifiers, KeyRotationRepository, KeyStatus, RepositoryError};
use keywright_crypto::{ConfiguredKey, ConfiguredKeys, KeyRing, KeySource, Recognition};
use keywright_storage::Database;
use uuid::Uuid;

use crate::{
    config::EncryptionConfig,
    started::{StartupContext, StartupError},
};
pub(crate) use shared::SharedKeyRing;

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
        keys.check().await?;
        if let Some(key_ring) = keys.recognition.key_ring() {
            keys.log(&key_ring);
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

    /// Checks that stored values can be decrypted.
    async fn check(&self) -> Result<(), StartupError> {
        let in_use = self.database.keys_in_use().await.map_err(read_failed)?;
        let checked = self.recognition.check(&in_use);
        checked.map_err(|cause| StartupError::new(cause.to_string()))
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

    fn log(&self, key_ring: &KeyRing) {
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
