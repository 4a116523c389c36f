//! Deletes a version of a credential, or moves the transitional flag, in one transaction.

use std::sync::Arc;

use keywright_core::ports::{
    Additions, Identifiers, RepositoryError, TransitionalMoved, TransitionalVersion, VersionDeleted,
};
use uuid::Uuid;

use super::{
    append::{append_each, are_inputs_unchanged},
    statements,
};
use crate::{
    connections::{Ended, Transaction, Writer},
    row::column,
    statement::statement,
};

/// A change of a credential's versions, with versions to add in the same transaction.
pub(super) struct Change {
    pub(super) identifiers: Arc<dyn Identifiers>,
    pub(super) credential_id: Uuid,
    pub(super) additions: Additions,
}

pub(super) async fn move_transitional(
    writer: &Writer,
    change: Change,
    to: TransitionalVersion,
) -> Result<TransitionalMoved, RepositoryError> {
    let change = Arc::new(change);
    writer
        .transaction(move |transaction| {
            move_transitional_once(transaction, Arc::clone(&change), to)
        })
        .await
}

pub(super) async fn delete_version(
    writer: &Writer,
    change: Change,
    version_id: Uuid,
) -> Result<VersionDeleted, RepositoryError> {
    let change = Arc::new(change);
    writer
        .transaction(move |transaction| {
            delete_version_once(transaction, Arc::clone(&change), version_id)
        })
        .await
}

async fn move_transitional_once(
    mut transaction: Transaction,
    change: Arc<Change>,
    to: TransitionalVersion,
) -> Result<Ended<TransitionalMoved>, RepositoryError> {
    let Change {
        identifiers,
        credential_id,
        additions,
    } = change.as_ref();
    if !are_inputs_unchanged(&mut transaction, additions).await? {
        return transaction.conclude(TransitionalMoved::Changed).await;
    }
    let Some(credential) = find_credential(&mut transaction, *credential_id).await? else {
        return transaction
            .conclude(TransitionalMoved::CredentialAbsent)
            .await;
    };
    let version = match to {
        TransitionalVersion::Id(id) => find_version(&mut transaction, credential, id)
            .await?
            .map(|found| found.sequence),
        TransitionalVersion::Latest => latest_certificate(&mut transaction, credential).await?,
        TransitionalVersion::None => None,
    };
    if version.is_none() && to != TransitionalVersion::None {
        return transaction.conclude(TransitionalMoved::VersionAbsent).await;
    }
    set_transitional(
        &mut transaction,
        statements::CLEAR_TRANSITIONAL,
        credential,
        false,
    )
    .await?;
    if let Some(version) = version {
        set_transitional(
            &mut transaction,
            statements::SET_TRANSITIONAL,
            version,
            true,
        )
        .await?;
    }
    update_credential_columns(&mut transaction, credential).await?;
    let query = statement(statements::VERSIONS_OF_CREDENTIAL_CURRENT).bind(*credential_id);
    let current = transaction.decode_all(query).await?;
    let appended = append_each(&mut transaction, identifiers.as_ref(), &additions.versions).await?;
    if appended.is_none() {
        return transaction.roll_back(TransitionalMoved::Changed).await;
    }
    transaction.commit(TransitionalMoved::Moved(current)).await
}

async fn delete_version_once(
    mut transaction: Transaction,
    change: Arc<Change>,
    version_id: Uuid,
) -> Result<Ended<VersionDeleted>, RepositoryError> {
    let Change {
        identifiers,
        credential_id,
        additions,
    } = change.as_ref();
    if !are_inputs_unchanged(&mut transaction, additions).await? {
        return transaction.conclude(VersionDeleted::Changed).await;
    }
    let Some(credential) = find_credential(&mut transaction, *credential_id).await? else {
        return transaction.conclude(VersionDeleted::Absent).await;
    };
    let Some(version) = find_version(&mut transaction, credential, version_id).await? else {
        return transaction.conclude(VersionDeleted::Absent).await;
    };
    if !version.has_others {
        return transaction.conclude(VersionDeleted::IsOnly).await;
    }
    let query = statement(statements::DELETE_VERSION).bind(version.sequence);
    transaction.execute(query).await?;
    update_credential_columns(&mut transaction, credential).await?;
    let appended = append_each(&mut transaction, identifiers.as_ref(), &additions.versions).await?;
    if appended.is_none() {
        return transaction.roll_back(VersionDeleted::Changed).await;
    }
    transaction.commit(VersionDeleted::Deleted).await
}

/// A version found among the versions of its credential.
struct FoundVersion {
    sequence: i64,
    has_others: bool,
}

/// Returns the sequence of a credential.
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

async fn set_transitional(
    transaction: &mut Transaction,
    sql: &'static str,
    sequence: i64,
    is_transitional: bool,
) -> Result<(), RepositoryError> {
    let query = statement(sql).bind(sequence).bind(is_transitional);
    transaction.execute(query).await.map(drop)
}

async fn update_credential_columns(
    transaction: &mut Transaction,
    credential: i64,
) -> Result<(), RepositoryError> {
    let query = statement(statements::UPDATE_CREDENTIAL_COLUMNS).bind(credential);
    transaction.execute(query).await.map(drop)
}
