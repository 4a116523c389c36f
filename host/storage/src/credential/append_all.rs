//! Adding versions of several credentials, all of them or none, alone or with another change.

use keywright_core::ports::{
    Additions, AppendCondition, Appended, Identifiers, NewVersion, ReadVersions, RepositoryFailure,
};
use sqlx::SqliteConnection;
use uuid::Uuid;

use super::{append::append_within, count_max, statements};
use crate::{
    connections::Connections,
    failure::{column, repository_failure},
};

pub(super) async fn append_all(
    writer: &Connections,
    identifiers: &dyn Identifiers,
    additions: Additions,
) -> Result<bool, RepositoryFailure> {
    let mut connection = writer.lend().await?;
    let mut transaction = connection.begin().await?;
    let is_done = are_unchanged(&mut transaction, &additions.unchanged).await?
        && append_each(&mut transaction, identifiers, additions.versions).await?;
    if is_done {
        transaction.commit().await?;
    }
    Ok(is_done)
}

/// Whether all is still read as it was; to be asked before anything is changed.
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

/// Adds versions within a transaction, which the caller commits when all of them are written, and only then.
pub(super) async fn append_each(
    connection: &mut SqliteConnection,
    identifiers: &dyn Identifiers,
    versions: Vec<(NewVersion, AppendCondition)>,
) -> Result<bool, RepositoryFailure> {
    for (version, condition) in versions {
        let appended = append_within(connection, identifiers, version, condition).await?;
        if !matches!(appended, Appended::Written(_)) {
            return Ok(false);
        }
    }
    Ok(true)
}
