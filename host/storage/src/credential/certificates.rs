//! Listing certificates with their versions. Each list is one query.

use keywright_core::{
    credential::{CredentialName, ListedCertificate, LookupName},
    ports::RepositoryFailure,
};
use sqlx::{SqlitePool, sqlite::SqliteRow};

use super::{row, statements};
use crate::failure::{column, repository_failure};

pub(super) async fn all(reader: &SqlitePool) -> Result<Vec<ListedCertificate>, RepositoryFailure> {
    let rows = sqlx::query(statements::CERTIFICATES)
        .fetch_all(reader)
        .await
        .map_err(repository_failure)?;
    grouped(&rows)
}

pub(super) async fn by_name(
    reader: &SqlitePool,
    name: &LookupName,
) -> Result<Option<ListedCertificate>, RepositoryFailure> {
    let rows = sqlx::query(statements::CERTIFICATE_BY_NAME)
        .bind(name.folded())
        .fetch_all(reader)
        .await
        .map_err(repository_failure)?;
    Ok(grouped(&rows)?.into_iter().next())
}

pub(super) async fn signed_by(
    reader: &SqlitePool,
    signer: &LookupName,
) -> Result<Vec<CredentialName>, RepositoryFailure> {
    sqlx::query(statements::CERTIFICATES_SIGNED_BY)
        .bind(signer.folded())
        .fetch_all(reader)
        .await
        .map_err(repository_failure)?
        .iter()
        .map(|row| {
            Ok(CredentialName::from_stored(column!(
                row,
                "credential",
                "name"
            )?))
        })
        .collect()
}

/// Gathers the versions, one in each row, of each certificate. Those of one certificate stand together.
fn grouped(rows: &[SqliteRow]) -> Result<Vec<ListedCertificate>, RepositoryFailure> {
    let mut certificates: Vec<ListedCertificate> = Vec::new();
    for row in rows {
        let id = column!(row, "credential", "credential_id")?;
        let version = row::listed_version(row)?;
        match certificates.last_mut() {
            Some(certificate) if certificate.id == id => certificate.versions.push(version),
            _ => certificates.push(ListedCertificate {
                id,
                name: CredentialName::from_stored(column!(row, "credential", "name")?),
                versions: vec![version],
            }),
        }
    }
    Ok(certificates)
}
