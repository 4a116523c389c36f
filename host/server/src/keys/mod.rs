//! From configured encryption keys to a key ring: the configuration gives the secrets, the database the records by which
//! they are recognised.

mod configured;
mod meter;
mod records;
mod shared;

use std::{collections::HashSet, error::Error, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use keywright_core::ports::{Identifiers, KeyStanding, RepositoryFailure};
use keywright_crypto::{ConfiguredKey, ConfiguredKeys, KeyRing, KeySource, Recognition};
use keywright_storage::{Database, SqlEncryptionKeyRepository};
use uuid::Uuid;

use crate::{config::EncryptionConfig, started::StartRefused};
use configured::configured_keys;
pub(crate) use configured::{read_authorities, source_of};
use records::{records_of, row_of};
pub(crate) use shared::SharedKeyRing;

/// Recognises the configured keys, and stores the record of an active one that is new, or waits until another server has.
pub(crate) async fn unlock(
    config: &EncryptionConfig,
    database: &Database,
    identifiers: &dyn Identifiers,
    now: DateTime<Utc>,
) -> Result<SharedKeyRing, StartRefused> {
    let mut keys = RecognisedKeys::read(config, database).await?;
    let mut is_added = false;
    let mut seconds_waited = 0;
    loop {
        keys.check().await?;
        if let Some(key_ring) = keys.recognition.key_ring() {
            keys.tell(&key_ring);
            return Ok(keys.shared(key_ring));
        }
        if is_added {
            return Err(StartRefused::new(
                "the active encryption key is not recognised by the record that was just made of it",
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

/// Recognises the configured keys for what only reads: nothing is stored, and the active key need not have a record.
pub(crate) async fn unlock_to_read(
    config: &EncryptionConfig,
    database: &Database,
) -> Result<SharedKeyRing, StartRefused> {
    let keys = RecognisedKeys::read(config, database).await?;
    keys.check().await?;
    let key_ring = keys.recognition.key_ring_to_read();
    Ok(keys.shared(key_ring))
}

/// Returns the active key alone, without a database: `None` unless it is a readable raw key. It can derive keys; nothing
/// stored names it.
pub(crate) async fn raw_key_ring(config: &EncryptionConfig) -> Option<KeyRing> {
    let active = config.keys.iter().find(|key| key.active)?;
    let source = source_of(&active.origin().ok()?).ok()?;
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

/// The configured keys, and those of them that were recognised by the records that there are.
pub(crate) struct RecognisedKeys {
    configured: Arc<ConfiguredKeys>,
    repository: SqlEncryptionKeyRepository,
    recognition: Recognition,
}

impl RecognisedKeys {
    /// Reads the configured keys, and compares them with the records. Nothing is stored.
    pub(crate) async fn read(
        config: &EncryptionConfig,
        database: &Database,
    ) -> Result<Self, StartRefused> {
        let mut keys = Self {
            configured: configured_keys(config).await?,
            repository: database.encryption_keys(),
            recognition: Recognition::default(),
        };
        keys.compare().await?;
        Ok(keys)
    }

    /// What the key with this id is by the configuration.
    pub(crate) fn standing(&self, key_id: Uuid) -> KeyStanding {
        self.recognition.key_ring_to_read().standing(key_id)
    }

    /// Whether the active key has a record: it has been active before.
    pub(crate) fn is_active_known(&self) -> bool {
        self.recognition.key_ring().is_some()
    }

    /// Compares the keys with the records that are new.
    async fn compare(&mut self) -> Result<(), StartRefused> {
        let records = records_of(self.repository.all().await.map_err(reading)?)?;
        self.recognition
            .compare(&self.configured, &records)
            .await
            .map_err(using)
    }

    /// Sees that something of what is stored can be decrypted.
    async fn check(&self) -> Result<(), StartRefused> {
        let in_use = self.repository.in_use().await.map_err(reading)?;
        self.recognition.check(&in_use).map_err(using)
    }

    /// Makes a record of the active key and stores it, unless another server has stored one meanwhile; says whether it did.
    async fn add_record(
        &self,
        identifiers: &dyn Identifiers,
        now: DateTime<Utc>,
    ) -> Result<bool, StartRefused> {
        let record = self
            .configured
            .new_record(identifiers.fresh(), now)
            .await
            .map_err(|cause| {
                StartRefused::while_doing("making the record of the new encryption key", cause)
            })?;
        let known: HashSet<Uuid> = self.recognition.compared().collect();
        let adding = self.repository.add(&row_of(record), &known).await;
        adding.map_err(|cause| {
            StartRefused::while_doing("storing the record of the new encryption key", cause)
        })
    }

    fn tell(&self, key_ring: &KeyRing) {
        for place in self.recognition.unrecognised(&self.configured) {
            tracing::warn!(
                encryption.key_number = place + 1,
                "an encryption key is ignored until a server has made it active: it is not active, and never was"
            );
        }
        tracing::info!(
            encryption.active_key = %key_ring.active_key_id(),
            encryption.keys = key_ring.key_ids().count(),
            "the encryption keys are there"
        );
    }

    fn shared(self, key_ring: KeyRing) -> SharedKeyRing {
        SharedKeyRing::new(self.configured, self.repository, self.recognition, key_ring)
    }
}

fn reading(cause: RepositoryFailure) -> StartRefused {
    StartRefused::while_doing("reading the records of encryption keys", cause)
}

fn using(cause: impl Into<Box<dyn Error + Send + Sync>>) -> StartRefused {
    StartRefused::while_doing("using the configured encryption keys", cause)
}

/// Waits a second for another server to make the active key's record.
async fn wait(seconds_max: u32, seconds_waited: &mut u32) -> Result<(), StartRefused> {
    if *seconds_waited == 0 {
        tracing::warn!(
            encryption.key_wait_seconds_max = seconds_max,
            "the active encryption key has no record in the database, and encryption.key_creation_enabled is false: waiting \
             for another server to make it"
        );
    }
    if *seconds_waited >= seconds_max {
        return Err(StartRefused::new(format!(
            "the active encryption key has no record in the database after {seconds_max} seconds, and \
             encryption.key_creation_enabled is false: if the key is the right one, let one server make its record"
        )));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    *seconds_waited += 1;
    Ok(())
}
