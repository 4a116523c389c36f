//! Adding versions of several credentials atomically, alone or with another change.

use std::sync::Arc;

use keywright_core::{
    credential::CredentialType,
    ports::{
        Additions, AllAppended, AppendCondition, Identifiers, NewVersion, ReadSigned, ReadVersions,
        RepositoryFailure,
    },
};
use uuid::Uuid;

use super::{
    append::{Place, append_within},
    count_max, statements,
};
use crate::{
    connections::{Ended, Transaction, Writer},
    row::{Row, column},
    statement::{built_statement, statement},
};

pub(super) async fn append_all(
    writer: &Writer,
    identifiers: &Arc<dyn Identifiers>,
    additions: Additions,
) -> Result<AllAppended, RepositoryFailure> {
    let identifiers = Arc::clone(identifiers);
    let additions = Arc::new(additions);
    let shared = Arc::clone(&additions);
    let places = writer
        .transaction(move |transaction| {
            append_all_once(transaction, Arc::clone(&identifiers), Arc::clone(&shared))
        })
        .await?;
    let versions = Arc::unwrap_or_clone(additions).versions.into_iter();
    let versions = versions.map(|(version, _)| version);
    let Some(places) = places else {
        return Ok(AllAppended::Changed(versions.collect()));
    };
    let written = versions.zip(places);
    let written = written.map(|(version, place)| place.stored(version));
    Ok(AllAppended::Written(written.collect()))
}

async fn append_all_once(
    mut transaction: Transaction,
    identifiers: Arc<dyn Identifiers>,
    additions: Arc<Additions>,
) -> Result<Ended<Option<Vec<Place>>>, RepositoryFailure> {
    if !fit(&mut transaction, &additions).await? {
        return transaction.conclude(None).await;
    }
    match append_each(&mut transaction, identifiers.as_ref(), &additions.versions).await? {
        Some(places) => transaction.commit(Some(places)).await,
        None => transaction.abandon(None).await,
    }
}

/// Whether all inputs of the additions are unchanged. Must be called before the transaction changes anything.
pub(super) async fn fit(
    transaction: &mut Transaction,
    additions: &Additions,
) -> Result<bool, RepositoryFailure> {
    Ok(are_unchanged(transaction, &additions.unchanged).await?
        && are_all_signed(transaction, &additions.signed).await?)
}

/// Whether reading these versions again returns the same ids.
pub(super) async fn are_unchanged(
    transaction: &mut Transaction,
    unchanged: &[ReadVersions],
) -> Result<bool, RepositoryFailure> {
    for read in unchanged {
        let query = match count_max(read.selection) {
            Some(count_max) => statement(statements::VERSION_IDS_NEWEST_FIRST)
                .bind(read.name.folded())
                .bind(count_max),
            None => statement(statements::VERSION_IDS_CURRENT).bind(read.name.folded()),
        };
        if ids(&transaction.fetch_all(query).await?)? != read.ids {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the credentials that each of these CAs signed are still the same.
async fn are_all_signed(
    transaction: &mut Transaction,
    signed: &[ReadSigned],
) -> Result<bool, RepositoryFailure> {
    for read in signed {
        let sql = statements::newest_ids_signed_by(read.types, read.signers.len());
        // One more row than expected is enough to detect a difference.
        let count_max = i64::try_from(read.ids.len()).map_or(i64::MAX, |count| count + 1);
        let query = built_statement(sql)
            .bind(CredentialType::CERTIFICATE)
            .bind(count_max);
        let signers = read.signers.iter();
        let query = signers.fold(query, |query, signer| query.bind(signer.folded()));
        if ids(&transaction.fetch_all(query).await?)? != read.ids {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Adds versions within a transaction, which the caller must commit only if all of them were written. `None` if a version can't
/// be added.
pub(super) async fn append_each(
    transaction: &mut Transaction,
    identifiers: &dyn Identifiers,
    versions: &[(NewVersion, AppendCondition)],
) -> Result<Option<Vec<Place>>, RepositoryFailure> {
    let mut places = Vec::with_capacity(versions.len());
    for (version, condition) in versions {
        match append_within(transaction, identifiers, version, *condition).await? {
            Ok(place) => places.push(place),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(places))
}

fn ids(rows: &[Row]) -> Result<Vec<Uuid>, RepositoryFailure> {
    rows.iter()
        .map(|row| column!(row, "credential_version", "id"))
        .collect()
}
