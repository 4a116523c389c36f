//! Adding versions of several credentials, all of them or none, alone or with another change.

use keywright_core::{
    credential::CredentialType,
    ports::{
        Additions, AllAppended, AppendCondition, Identifiers, NewVersion, ReadSigned, ReadVersions,
        RepositoryFailure,
    },
};
use sqlx::{AssertSqlSafe, SqliteConnection};
use uuid::Uuid;

use super::{
    append::{Place, append_within},
    count_max, statements,
};
use crate::{
    connections::Connections,
    failure::{column, repository_failure},
};

pub(super) async fn append_all(
    writer: &Connections,
    identifiers: &dyn Identifiers,
    additions: Additions,
) -> Result<AllAppended, RepositoryFailure> {
    let mut connection = writer.lend().await?;
    let mut transaction = connection.begin().await?;
    let places = if fit(&mut transaction, &additions).await? {
        append_each(&mut transaction, identifiers, &additions.versions).await?
    } else {
        None
    };
    let versions = additions.versions.into_iter().map(|(version, _)| version);
    let Some(places) = places else {
        return Ok(AllAppended::Changed(versions.collect()));
    };
    transaction.commit().await?;
    let written = versions.zip(places);
    let written = written.map(|(version, place)| place.stored(version));
    Ok(AllAppended::Written(written.collect()))
}

/// Whether all that additions were made from is still as it was; to be asked before anything is changed.
pub(super) async fn fit(
    connection: &mut SqliteConnection,
    additions: &Additions,
) -> Result<bool, RepositoryFailure> {
    Ok(are_unchanged(connection, &additions.unchanged).await?
        && are_all_signed(connection, &additions.signed).await?)
}

/// Whether all is still read as it was.
pub(super) async fn are_unchanged(
    connection: &mut SqliteConnection,
    unchanged: &[ReadVersions],
) -> Result<bool, RepositoryFailure> {
    for read in unchanged {
        let query = match count_max(read.selection) {
            Some(count_max) => sqlx::query(statements::VERSIONS_NEWEST_FIRST)
                .bind(read.name.folded())
                .bind(count_max),
            None => sqlx::query(statements::VERSIONS_CURRENT).bind(read.name.folded()),
        };
        let ids = query
            .fetch_all(&mut *connection)
            .await
            .map_err(repository_failure)?
            .iter()
            .map(|row| column!(row, "credential_version", "id"))
            .collect::<Result<Vec<Uuid>, RepositoryFailure>>()?;
        if ids != read.ids {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether each of these authorities has still signed what it had, and nothing else.
async fn are_all_signed(
    connection: &mut SqliteConnection,
    signed: &[ReadSigned],
) -> Result<bool, RepositoryFailure> {
    for read in signed {
        // The text holds nothing but the places of the parameters, and there are as many texts as there are counts.
        let sql = AssertSqlSafe(statements::newest_ids_signed_by(read.signers.len()));
        // One more than there were is enough to tell.
        let count_max = i64::try_from(read.ids.len()).map_or(i64::MAX, |count| count + 1);
        let query = sqlx::query_scalar(sql)
            .persistent(false)
            .bind(CredentialType::CERTIFICATE)
            .bind(count_max);
        let ids: Vec<Uuid> = read
            .signers
            .iter()
            .fold(query, |query, signer| query.bind(signer.folded()))
            .fetch_all(&mut *connection)
            .await
            .map_err(repository_failure)?;
        if ids != read.ids {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Adds versions within a transaction, which the caller commits when all of them are written, and only then; none when one
/// of them does not fit.
pub(super) async fn append_each(
    connection: &mut SqliteConnection,
    identifiers: &dyn Identifiers,
    versions: &[(NewVersion, AppendCondition)],
) -> Result<Option<Vec<Place>>, RepositoryFailure> {
    let mut places = Vec::with_capacity(versions.len());
    for (version, condition) in versions {
        match append_within(connection, identifiers, version, *condition).await? {
            Ok(place) => places.push(place),
            Err(_) => return Ok(None),
        }
    }
    Ok(Some(places))
}
