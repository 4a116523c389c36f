//! Adding versions of several credentials, all of them or none, in one transaction.

use keywright_core::ports::{
    AppendCondition, Appended, CurrentVersions, Identifiers, NewVersion, RepositoryFailure,
};
use sqlx::{SqliteConnection, SqlitePool};
use uuid::Uuid;

use super::{
    append::{BEGIN, append_within},
    statements,
};
use crate::failure::{column, repository_failure};

pub(super) async fn append_all(
    writer: &SqlitePool,
    identifiers: &dyn Identifiers,
    versions: Vec<(NewVersion, AppendCondition)>,
    unchanged: &[CurrentVersions],
) -> Result<bool, RepositoryFailure> {
    let mut transaction = writer.begin_with(BEGIN).await.map_err(repository_failure)?;
    // Before anything is added: what is added may be of the same credentials.
    for current in unchanged {
        if !is_unchanged(&mut transaction, current).await? {
            return Ok(false);
        }
    }
    for (version, condition) in versions {
        let appended = append_within(&mut transaction, identifiers, version, condition).await?;
        if !matches!(appended, Appended::Written(_)) {
            return Ok(false);
        }
    }
    transaction.commit().await.map_err(repository_failure)?;
    Ok(true)
}

async fn is_unchanged(
    connection: &mut SqliteConnection,
    current: &CurrentVersions,
) -> Result<bool, RepositoryFailure> {
    let ids = sqlx::query(statements::VERSIONS_CURRENT)
        .bind(current.name.folded())
        .fetch_all(connection)
        .await
        .map_err(repository_failure)?
        .iter()
        .map(|row| column!(row, "credential_version", "id"))
        .collect::<Result<Vec<Uuid>, RepositoryFailure>>()?;
    Ok(ids == current.ids)
}
