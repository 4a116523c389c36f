//! Listing certificates with their versions. Each list is one query.

use std::ops::ControlFlow;

use chrono::{DateTime, Utc};
use keywright_core::{
    credential::{CredentialName, IssuedCredential, ListedCertificate, LookupName},
    ports::{EXPIRY_MOMENTS, ExpiryCounts, Receive, RepositoryError, SignedTypes},
};

use super::{row, statements};
use crate::{
    connections::Connections,
    row::{Row, column, count},
    statement::statement,
};

pub(super) async fn all(
    reader: &Connections,
    types: SignedTypes,
    receive: Receive<'_, ListedCertificate>,
) -> Result<(), RepositoryError> {
    let sql = match types {
        SignedTypes::All => statements::CERTIFICATES_OF_ALL_TYPES,
        SignedTypes::Certificates => statements::CERTIFICATES,
    };
    each(reader, sql, receive).await
}

pub(super) async fn authorities(
    reader: &Connections,
    receive: Receive<'_, ListedCertificate>,
) -> Result<(), RepositoryError> {
    each(reader, statements::AUTHORITIES, receive).await
}

async fn each(
    reader: &Connections,
    sql: &'static str,
    receive: Receive<'_, ListedCertificate>,
) -> Result<(), RepositoryError> {
    let mut grouping = Grouping::default();
    let mut flow = ControlFlow::Continue(());
    let mut receive_complete = |complete| {
        flow = receive(complete);
        flow
    };
    let query = statement(sql);
    let add = |row: &Row| grouping.add(row);
    reader
        .decode_each(query, add, &mut receive_complete)
        .await?;
    if let (ControlFlow::Continue(()), Some(last)) = (flow, grouping.certificate) {
        // The last certificate: there are no more rows that the receiver could refuse.
        let _ = receive(last);
    }
    Ok(())
}

pub(super) async fn by_name(
    reader: &Connections,
    name: &LookupName,
    types: SignedTypes,
) -> Result<Option<ListedCertificate>, RepositoryError> {
    let sql = match types {
        SignedTypes::All => statements::CERTIFICATE_OF_ANY_TYPE_BY_NAME,
        SignedTypes::Certificates => statements::CERTIFICATE_BY_NAME,
    };
    let query = statement(sql).bind(name.folded());
    let mut grouping = Grouping::default();
    for row in reader.fetch_all(query).await? {
        grouping.add(&row)?;
    }
    Ok(grouping.certificate)
}

pub(super) async fn signed_by(
    reader: &Connections,
    signer: &LookupName,
) -> Result<Vec<CredentialName>, RepositoryError> {
    let query = statement(statements::CERTIFICATES_SIGNED_BY).bind(signer.folded());
    let rows = reader.fetch_all(query).await?;
    rows.iter().map(row::name).collect()
}

pub(super) async fn issued_by(
    reader: &Connections,
    signer: &LookupName,
) -> Result<Vec<IssuedCredential>, RepositoryError> {
    let query = statement(statements::ISSUED_BY).bind(signer.folded());
    let rows = reader.fetch_all(query).await?;
    rows.iter().map(row::issued_credential).collect()
}

pub(super) async fn by_expiry(
    reader: &Connections,
    moments: [DateTime<Utc>; EXPIRY_MOMENTS],
) -> Result<Vec<ExpiryCounts>, RepositoryError> {
    let query = moments.iter().fold(
        statement(statements::CREDENTIALS_BY_EXPIRY),
        |query, moment| query.bind(moment.timestamp_millis()),
    );
    let rows = reader.fetch_all(query).await?;
    rows.iter().map(expiry_counts).collect()
}

fn expiry_counts(row: &Row) -> Result<ExpiryCounts, RepositoryError> {
    let counts = [
        count(column!(row, "credential", "until_1")?),
        count(column!(row, "credential", "until_2")?),
        count(column!(row, "credential", "until_3")?),
        count(column!(row, "credential", "until_4")?),
        count(column!(row, "credential", "until_5")?),
        count(column!(row, "credential", "later")?),
    ];
    Ok(ExpiryCounts {
        credential_type: row::credential_type(row)?,
        has_certificate: column!(row, "credential_version", "has_certificate")?,
        counts,
    })
}

/// Groups rows, one per version, by certificate. The rows of one certificate are adjacent.
#[derive(Default)]
struct Grouping {
    certificate: Option<ListedCertificate>,
}

impl Grouping {
    /// Adds a version. If it is the first of another certificate, returns the previous certificate.
    fn add(&mut self, row: &Row) -> Result<Option<ListedCertificate>, RepositoryError> {
        let id = column!(row, "credential", "credential_id")?;
        let version = row::listed_version(row)?;
        if let Some(certificate) = self.certificate.as_mut().filter(|one| one.id == id) {
            certificate.versions.push(version);
            return Ok(None);
        }
        let next = ListedCertificate {
            id,
            name: row::name(row)?,
            credential_type: row::credential_type(row)?,
            versions: vec![version],
        };
        Ok(self.certificate.replace(next))
    }
}
