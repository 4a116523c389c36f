//! Adding a version, in one transaction that validates its preconditions.

mod batch;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use keywright_core::{
    certificate::{CertificateFacts, SerialNumber},
    credential::{CredentialName, CredentialType, IssuerVersion, StoredVersion},
    ports::{AppendCondition, Appended, Identifiers, NewVersion, ReadVersions, RepositoryFailure},
};
use uuid::Uuid;

use batch::Adding;
pub(crate) use batch::AppendBatches;
#[cfg(test)]
pub(crate) use batch::append_batches;

use super::{append_all::are_unchanged, row, statements};
use crate::{
    connections::{Ended, Engine, Transaction, Writer},
    failure::{TRANSITIONAL_VERSION, is_refused, sequence_behind},
    row::column,
    statement::statement,
};

/// A version to add, and the preconditions for adding it.
#[derive(Clone)]
pub(super) struct Addition {
    pub(super) identifiers: Arc<dyn Identifiers>,
    pub(super) version: NewVersion,
    pub(super) condition: AppendCondition,
    pub(super) unchanged: Vec<ReadVersions>,
}

/// Adds a version, together with others if there are batches.
pub(super) async fn append(
    writer: &Writer,
    batches: Option<&AppendBatches>,
    addition: Addition,
) -> Result<Appended, RepositoryFailure> {
    let addition = Arc::new(addition);
    let adding = match batches {
        Some(batches) => batches.append(&addition).await?,
        None => Adding::Alone { _turn: None },
    };
    let appended = match adding {
        Adding::Added(place) => Ok(place),
        Adding::Alone { _turn } => {
            let shared = Arc::clone(&addition);
            let appending = writer
                .transaction(move |transaction| append_once(transaction, Arc::clone(&shared)));
            appending.await?
        }
    };
    Ok(match appended {
        Ok(place) => {
            let version = Arc::unwrap_or_clone(addition).version;
            Appended::Written(Box::new(place.stored(version)))
        }
        Err(refused) => refused,
    })
}

async fn append_once(
    mut transaction: Transaction,
    addition: Arc<Addition>,
) -> Result<Ended<Result<Place, Appended>>, RepositoryFailure> {
    let Addition {
        identifiers,
        version,
        condition,
        unchanged,
    } = addition.as_ref();
    if !are_unchanged(&mut transaction, unchanged).await? {
        return transaction.conclude(Err(Appended::Outdated)).await;
    }
    match append_within(&mut transaction, identifiers.as_ref(), version, *condition).await? {
        Ok(place) => transaction.commit(Ok(place)).await,
        Err(refused) => transaction.conclude(Err(refused)).await,
    }
}

/// Adds a version within a transaction. The caller must commit only if this returns a position. The other outcome is never
/// [`Appended::Written`].
pub(super) async fn append_within(
    transaction: &mut Transaction,
    identifiers: &dyn Identifiers,
    version: &NewVersion,
    condition: AppendCondition,
) -> Result<Result<Place, Appended>, RepositoryFailure> {
    let credential = match find_credential(transaction, &version.name, condition).await? {
        Some(existing) => {
            if existing.credential_type != version.credential_type {
                return Ok(Err(Appended::TypeDiffers(existing.credential_type)));
            }
            if !holds(condition, Some(&existing)) {
                return Ok(Err(Appended::Changed));
            }
            if existing.name.as_str() != version.name.as_str() {
                return Ok(Err(Appended::NamedOtherwise(existing.name)));
            }
            existing
        }
        None if !holds(condition, None) => return Ok(Err(Appended::Changed)),
        None => insert_credential(transaction, identifiers.fresh(), version).await?,
    };
    let inserted = insert_version(transaction, credential.sequence, version).await?;
    let Some(sequence) = inserted else {
        return Ok(Err(Appended::TransitionalExists));
    };
    Ok(Ok(Place {
        sequence,
        credential,
    }))
}

/// The position of an added version.
pub(super) struct Place {
    sequence: i64,
    credential: Owner,
}

impl Place {
    /// Returns the version as a read would return it.
    pub(super) fn stored(self, version: NewVersion) -> StoredVersion {
        let Self {
            sequence,
            credential,
        } = self;
        StoredVersion {
            id: version.id,
            sequence,
            credential_id: credential.id,
            name: credential.name,
            credential_type: credential.credential_type,
            created_at: in_milliseconds(version.created_at),
            is_transitional: version.is_transitional,
            is_generated: version.is_generated,
            certificate: version.certificate.map(|facts| CertificateFacts {
                expires_at: in_milliseconds(facts.expires_at),
                ..facts
            }),
            signed_by: version.signed_by,
            issuer: version.issuer.map(|issuer| IssuerVersion {
                expires_at: in_milliseconds(issuer.expires_at),
                ..issuer
            }),
            provenance: version.provenance,
            envelope: version.envelope,
        }
    }
}

/// The credential that a version belongs to.
struct Owner {
    sequence: i64,
    id: Uuid,
    name: CredentialName,
    credential_type: CredentialType,
    /// Set only if the condition depends on it.
    newest_version_id: Option<Uuid>,
}

fn holds(condition: AppendCondition, credential: Option<&Owner>) -> bool {
    match condition {
        AppendCondition::Always => true,
        AppendCondition::CredentialIs(expected) => {
            credential.is_some_and(|credential| credential.id == expected)
        }
        AppendCondition::NewestIs(expected) => {
            credential.and_then(|credential| credential.newest_version_id) == expected
        }
    }
}

async fn find_credential(
    transaction: &mut Transaction,
    name: &CredentialName,
    condition: AppendCondition,
) -> Result<Option<Owner>, RepositoryFailure> {
    let sql = match condition {
        AppendCondition::NewestIs(_) => statements::CREDENTIAL_AND_NEWEST_VERSION,
        AppendCondition::Always | AppendCondition::CredentialIs(_) => {
            statements::CREDENTIAL_BY_NAME
        }
    };
    let query = statement(sql).bind(name.lookup().folded());
    let row = transaction.fetch_optional(query).await?;
    let Some(row) = row.as_ref() else {
        return Ok(None);
    };
    Ok(Some(Owner {
        sequence: column!(row, "credential", "sequence")?,
        id: column!(row, "credential", "id")?,
        name: CredentialName::from_stored(column!(row, "credential", "name")?),
        credential_type: row::credential_type(row)?,
        newest_version_id: column!(row, "credential_version", "newest_version_id")?,
    }))
}

async fn insert_credential(
    transaction: &mut Transaction,
    id: Uuid,
    version: &NewVersion,
) -> Result<Owner, RepositoryFailure> {
    let query = statement(statements::INSERT_CREDENTIAL)
        .bind(id)
        .bind(version.name.as_str())
        .bind(version.name.lookup().folded())
        .bind(version.credential_type.as_str())
        .bind(version.created_at.timestamp_millis());
    let row = transaction.fetch_one(query).await?;
    Ok(Owner {
        sequence: column!(row, "credential", "sequence")?,
        id,
        name: version.name.clone(),
        credential_type: version.credential_type.clone(),
        newest_version_id: None,
    })
}

/// Inserts the version, points the credential at it, and returns its sequence. `None` if the version is transitional and the
/// credential already has a transitional version.
async fn insert_version(
    transaction: &mut Transaction,
    credential_sequence: i64,
    version: &NewVersion,
) -> Result<Option<i64>, RepositoryFailure> {
    let certificate = version.certificate.as_ref();
    let expires_at = certificate.map(|facts| facts.expires_at.timestamp_millis());
    let serial_number = certificate.and_then(|facts| facts.serial_number.as_ref());
    let signed_by = version.signed_by.as_ref();
    let issuer = version.issuer.as_ref();
    let provenance = version.provenance.as_ref();
    let sql = match transaction.engine() {
        Engine::Postgres => statements::POSTGRES_ADD_VERSION,
        Engine::Sqlite => statements::SQLITE_ADD_VERSION,
    };
    let query = statement(sql)
        .bind(version.id)
        .bind(credential_sequence)
        .bind(version.created_at.timestamp_millis())
        .bind(version.is_transitional)
        .bind(version.is_generated)
        .bind(expires_at)
        .bind(certificate.map(|facts| facts.is_certificate_authority))
        .bind(certificate.map(|facts| facts.is_self_signed))
        .bind(certificate.map(|facts| i64::from(facts.key_length_bits)))
        .bind(signed_by.map(CredentialName::as_str))
        .bind(signed_by.map(|name| name.lookup().folded().to_owned()))
        .bind(issuer.and_then(|issuer| issuer.version_id))
        .bind(issuer.map(|issuer| issuer.expires_at.timestamp_millis()))
        .bind(provenance.map(|plugin| plugin.name.as_str()))
        .bind(provenance.map(|plugin| plugin.version.as_str()))
        .bind(provenance.map(|plugin| plugin.digest.as_str()))
        .bind(provenance.map(|plugin| plugin.interface_version.as_str()))
        .bind(version.envelope.key_id)
        .bind(version.envelope.nonce.as_slice())
        .bind(version.envelope.ciphertext.as_slice())
        .bind(serial_number.map(SerialNumber::octets));
    // Fetches all rows, so that the statement runs to its end.
    let inserted = match transaction.fetch_all(query).await {
        Err(failure) if version.is_transitional && is_refused(&failure, &TRANSITIONAL_VERSION) => {
            return Ok(None);
        }
        inserted => inserted?,
    };
    let added = inserted.first().ok_or_else(sequence_behind)?;
    let sequence: i64 = column!(added, "credential_version", "sequence")?;
    if transaction.engine() == Engine::Sqlite {
        let query = statement(statements::SQLITE_POINT_AT_NEW_VERSION)
            .bind(credential_sequence)
            .bind(sequence)
            .bind(version.created_at.timestamp_millis())
            .bind(expires_at)
            .bind(version.is_transitional);
        transaction.execute(query).await?;
    }
    Ok(Some(sequence))
}

/// Truncates a time to the precision of the database.
fn in_milliseconds(time: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(time.timestamp_millis()).unwrap_or(time)
}
