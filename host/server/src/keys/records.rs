//! Converts key records from and to rows of the database.

use keywright_crypto::{KeyDerivation, KeyRecord, PasswordDerivation};
use keywright_storage::EncryptionKeyRow;
use uuid::Uuid;

use crate::started::StartupError;

/// A stored key record is malformed.
#[derive(Debug, thiserror::Error)]
#[error("the record of the encryption key {0} is malformed, or was created by a newer release")]
pub(super) struct RowMalformedError(Uuid);

/// Converts rows to records.
pub(super) fn records_of(rows: Vec<EncryptionKeyRow>) -> Result<Vec<KeyRecord>, RowMalformedError> {
    rows.into_iter().map(record_of).collect()
}

/// Converts a record to a row.
pub(super) fn row_of(record: KeyRecord) -> EncryptionKeyRow {
    let (provider, derivation, wrapped_key) = match record.derivation {
        KeyDerivation::Password(PasswordDerivation { salt, iterations }) => {
            (PASSWORD, Some((salt, iterations)), None)
        }
        KeyDerivation::Raw => (RAW, None, None),
        KeyDerivation::Wrapped(wrapped_key) => (KMS, None, Some(wrapped_key)),
    };
    EncryptionKeyRow {
        id: record.id,
        provider: provider.to_owned(),
        derivation,
        wrapped_key,
        canary_nonce: record.canary_nonce,
        canary_ciphertext: record.canary_ciphertext,
        created_at: record.created_at,
    }
}

fn record_of(row: EncryptionKeyRow) -> Result<KeyRecord, RowMalformedError> {
    let derivation = match (row.provider.as_str(), row.derivation, row.wrapped_key) {
        (PASSWORD, Some((salt, iterations)), None) => {
            KeyDerivation::Password(PasswordDerivation { salt, iterations })
        }
        (RAW, None, None) => KeyDerivation::Raw,
        (KMS, None, Some(wrapped_key)) => KeyDerivation::Wrapped(wrapped_key),
        _ => return Err(RowMalformedError(row.id)),
    };
    Ok(KeyRecord {
        id: row.id,
        derivation,
        canary_nonce: row.canary_nonce,
        canary_ciphertext: row.canary_ciphertext,
        created_at: row.created_at,
    })
}

impl From<RowMalformedError> for StartupError {
    fn from(malformed: RowMalformedError) -> Self {
        Self::new(malformed.to_string())
    }
}

/// The names of the providers in records.
const KMS: &str = "kms";
const PASSWORD: &str = "password";
const RAW: &str = "raw";
