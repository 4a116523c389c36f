//! Listing certificates with their versions. Each list is one query.

use chrono::{DateTime, Utc};
use keywright_core::{
    credential::{CredentialName, IssuedCredential, ListedCertificate, LookupName},
    ports::{EXPIRY_MOMENTS, RepositoryFailure},
};

use super::{row, statements};
use crate::{
    connections::Connections,
    row::{Row, column, count},
    statement::statement,
};

pub(super) async fn all(reader: &Connections) -> Result<Vec<ListedCertificate>, RepositoryFailure> {
    let query = statement(statements::CERTIFICATES);
    grouped(&reader.fetch_all(query).await?)
}

pub(super) async fn by_name(
    reader: &Connections,
    name: &LookupName,
) -> Result<Option<ListedCertificate>, RepositoryFailure> {
    let query = statement(statements::CERTIFICATE_BY_NAME).bind(name.folded());
    Ok(grouped(&reader.fetch_all(query).await?)?.into_iter().next())
}

pub(super) async fn signed_by(
    reader: &Connections,
    signer: &LookupName,
) -> Result<Vec<CredentialName>, RepositoryFailure> {
    let query = statement(statements::CERTIFICATES_SIGNED_BY).bind(signer.folded());
    reader
        .fetch_all(query)
        .await?
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

pub(super) async fn issued_by(
    reader: &Connections,
    signer: &LookupName,
) -> Result<Vec<IssuedCredential>, RepositoryFailure> {
    let query = statement(statements::ISSUED_BY).bind(signer.folded());
    let rows = reader.fetch_all(query).await?;
    rows.iter().map(row::issued_credential).collect()
}

pub(super) async fn by_expiry(
    reader: &Connections,
    moments: [DateTime<Utc>; EXPIRY_MOMENTS],
) -> Result<[u64; EXPIRY_MOMENTS + 1], RepositoryFailure> {
    let query = moments.iter().fold(
        statement(statements::CERTIFICATES_BY_EXPIRY),
        |query, moment| query.bind(moment.timestamp_millis()),
    );
    let row = reader.fetch_optional(query).await?;
    let row = row
        .as_ref()
        .ok_or(RepositoryFailure::Inconsistent("credential"))?;
    Ok([
        count(column!(row, "credential", "until_1")?),
        count(column!(row, "credential", "until_2")?),
        count(column!(row, "credential", "until_3")?),
        count(column!(row, "credential", "until_4")?),
        count(column!(row, "credential", "until_5")?),
        count(column!(row, "credential", "later")?),
    ])
}

/// Gathers the versions, one in each row, of each certificate. Those of one certificate stand together.
fn grouped(rows: &[Row]) -> Result<Vec<ListedCertificate>, RepositoryFailure> {
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
