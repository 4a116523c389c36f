//! From configured encryption keys to a key ring: the configuration gives the secrets, the database the records by which
//! they are recognised.

use chrono::{DateTime, Utc};
use keywright_core::ports::Identifiers;
use keywright_crypto::{
    ConfiguredKey, KeyDerivation, KeyRecord, KeyRing, KeySource, PASSWORD_ITERATIONS_MIN,
    PasswordDerivation,
};
use keywright_storage::{Database, EncryptionKeyRow};

use crate::{
    config::{EncryptionConfig, KeyConfig, KeyProvider},
    started::StartRefused,
};

/// Recognises the configured keys, and stores the record of an active one that is new.
pub(crate) async fn unlock(
    config: &EncryptionConfig,
    database: &Database,
    identifiers: &dyn Identifiers,
    now: DateTime<Utc>,
) -> Result<KeyRing, StartRefused> {
    let configured = config
        .keys
        .iter()
        .map(read_key)
        .collect::<Result<Vec<_>, _>>()?;
    let repository = database.encryption_keys();
    let reading =
        |cause| StartRefused::while_doing("reading the records of encryption keys", cause);
    let records = repository.all().await.map_err(reading)?;
    let records = records
        .into_iter()
        .map(record_of)
        .collect::<Result<Vec<_>, _>>()?;
    let in_use = repository.in_use().await.map_err(reading)?;
    let unlocked =
        KeyRing::unlock(&configured, &records, &in_use, identifiers, now).map_err(|cause| {
            StartRefused::while_doing("using the configured encryption keys", cause)
        })?;
    if let Some(record) = unlocked.to_store {
        repository.add(&row_of(record)).await.map_err(|cause| {
            StartRefused::while_doing("storing the record of the new encryption key", cause)
        })?;
    }
    if unlocked.ignored_count > 0 {
        tracing::warn!(
            encryption.keys_ignored = unlocked.ignored_count,
            "encryption keys are ignored that are not active and never were"
        );
    }
    Ok(unlocked.ring)
}

/// Reads a configured key.
pub(crate) fn read_key(config: &KeyConfig) -> Result<ConfiguredKey, StartRefused> {
    let secret = config.source()?.read()?;
    let source = match config.provider {
        KeyProvider::Password => KeySource::Password {
            password: secret,
            iterations: PASSWORD_ITERATIONS_MIN,
        },
        KeyProvider::Raw => KeySource::raw_from_base64(&secret)
            .map_err(|cause| StartRefused::while_doing("reading an encryption key", cause))?,
    };
    Ok(ConfiguredKey {
        source,
        is_active: config.active,
    })
}

fn record_of(row: EncryptionKeyRow) -> Result<KeyRecord, StartRefused> {
    let derivation = match (row.provider.as_str(), row.derivation) {
        (PASSWORD, Some((salt, iterations))) => {
            KeyDerivation::Password(PasswordDerivation { salt, iterations })
        }
        (RAW, None) => KeyDerivation::Raw,
        _ => {
            return Err(StartRefused::new(format!(
                "the stored record of the encryption key {} is malformed",
                row.id
            )));
        }
    };
    Ok(KeyRecord {
        id: row.id,
        derivation,
        canary_nonce: row.canary_nonce,
        canary_ciphertext: row.canary_ciphertext,
        created_at: row.created_at,
    })
}

fn row_of(record: KeyRecord) -> EncryptionKeyRow {
    let (provider, derivation) = match record.derivation {
        KeyDerivation::Password(PasswordDerivation { salt, iterations }) => {
            (PASSWORD, Some((salt, iterations)))
        }
        KeyDerivation::Raw => (RAW, None),
    };
    EncryptionKeyRow {
        id: record.id,
        provider: provider.to_owned(),
        derivation,
        canary_nonce: record.canary_nonce,
        canary_ciphertext: record.canary_ciphertext,
        created_at: record.created_at,
    }
}

/// How the stored records name the providers.
const PASSWORD: &str = "password";
const RAW: &str = "raw";
