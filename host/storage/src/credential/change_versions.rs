//! Deletes a version of a credential, or moves the transitional flag, in one transaction.

use std::sync::Arc;

use keywright_core::ports::{
    Additions, Identifiers, RepositoryError, TransitionalVersion, VersionChange, VersionChanged,
};
use uuid::Uuid;

use super::{
    append::{append_each, are_inputs_unchanged},
    statements,
};
use crate::{
    connections::{Ended, Transaction},
    statement::{column, statement},
};

/// A change of a credential's versions, with versions to add in the same transaction.
pub(super) struct Request {
    pub(super) identifiers: Arc<dyn Identifiers>,
    pub(super) credential_id: Uuid,
    pub(super) change: VersionChange,
    pub(super) additions: Additions,
}

pub(super) async fn change_once(
    mut transaction: Transaction,
    request: Arc<Request>,
) -> Result<Ended<VersionChanged>, RepositoryError> {
    let Request {
        identifiers,
        credential_id,
        change,
        additions,
    } = request.as_ref();
    if !are_inputs_unchanged(&mut transaction, additions).await? {
        return transaction.conclude(VersionChanged::Outdated).await;
    }
    let Some(credential) = find_credential(&mut transaction, *credential_id).await? else {
        return transaction.conclude(VersionChanged::CredentialAbsent).await;
    };
    let refused = match *change {
        VersionChange::Delete(id) => delete(&mut transaction, credential, id).await?,
        VersionChange::Move(to) => move_transitional(&mut transaction, credential, to).await?,
    };
    if let Some(refused) = refused {
        return transaction.conclude(refused).await;
    }
    let query = statement(statements::UPDATE_CREDENTIAL_COLUMNS).bind(credential);
    transaction.execute(query).await?;
    let query = statement(statements::VERSIONS_OF_CREDENTIAL_CURRENT).bind(*credential_id);
    let current = transaction.decode_all(query).await?;
    let appended = append_each(&mut transaction, identifiers.as_ref(), &additions.versions).await?;
    if appended.is_none() {
        return transaction.roll_back(VersionChanged::Outdated).await;
    }
    transaction.commit(VersionChanged::Written(current)).await
}

/// Moves the transitional flag. Returns the reason if this is refused.
async fn move_transitional(
    transaction: &mut Transaction,
    credential: i64,
    to: TransitionalVersion,
) -> Result<Option<VersionChanged>, RepositoryError> {
    let version = match to {
        TransitionalVersion::Id(id) => find_version(transaction, credential, id)
            .await?
            .map(|found| found.sequence),
        TransitionalVersion::Latest => latest_certificate(transaction, credential).await?,
        TransitionalVersion::None => None,
    };
    if version.is_none() && to != TransitionalVersion::None {
        return Ok(Some(VersionChanged::VersionAbsent));
    }
    let query = statement(statements::CLEAR_TRANSITIONAL)
        .bind(credential)
        .bind(false);
    transaction.execute(query).await?;
    if let Some(version) = version {
        let query = statement(statements::SET_TRANSITIONAL)
            .bind(version)
            .bind(true);
        transaction.execute(query).await?;
    }
    Ok(None)
}

/// Deletes a version. Returns the reason if this is refused.
async fn delete(
    transaction: &mut Transaction,
    credential: i64,
    id: Uuid,
) -> Result<Option<VersionChanged>, RepositoryError> {
    let Some(version) = find_version(transaction, credential, id).await? else {
        return Ok(Some(VersionChanged::VersionAbsent));
    };
    if !version.has_others {
        return Ok(Some(VersionChanged::IsOnly));
    }
    let query = statement(statements::DELETE_VERSION).bind(version.sequence);
    transaction.execute(query).await?;
    Ok(None)
}

/// A version found among the versions of its credential.
struct FoundVersion {
    sequence: i64,
    has_others: bool,
}

async fn find_credential(
    transaction: &mut Transaction,
    id: Uuid,
) -> Result<Option<i64>, RepositoryError> {
    let query = statement(statements::CREDENTIAL_BY_ID).bind(id);
    let row = transaction.fetch_optional(query).await?;
    row.map(|row| column!(row, "credential", "sequence"))
        .transpose()
}

async fn find_version(
    transaction: &mut Transaction,
    credential: i64,
    id: Uuid,
) -> Result<Option<FoundVersion>, RepositoryError> {
    let query = statement(statements::VERSION_OF_CREDENTIAL)
        .bind(id)
        .bind(credential);
    let row = transaction.fetch_optional(query).await?;
    let Some(row) = row.as_ref() else {
        return Ok(None);
    };
    Ok(Some(FoundVersion {
        sequence: column!(row, "credential_version", "sequence")?,
        has_others: column!(row, "credential_version", "has_others")?,
    }))
}

async fn latest_certificate(
    transaction: &mut Transaction,
    credential: i64,
) -> Result<Option<i64>, RepositoryError> {
    let query = statement(statements::LATEST_CERTIFICATE_OF_CREDENTIAL).bind(credential);
    let row = transaction.fetch_optional(query).await?;
    row.map(|row| column!(row, "credential_version", "sequence"))
        .transpose()
}
