//! Listing certificates with their versions. Each list is one query.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use keywright_core::{
    credential::{
        CHAIN_DEPTH_MAX, ChainLink, CredentialName, EffectiveExpiry, FindNames, IssuedCredential,
        ListedCertificate, LookupName,
    },
    permission::Actor,
    ports::{
        CertificateLists, EXPIRY_MOMENTS, ExpiryCounts, Receive, RepositoryError, SignedTypes,
    },
};

use super::{
    find::{self, NameSearch},
    row, statements,
};
use crate::{
    Database,
    statement::{Row, column, count, small, statement, time},
};

#[async_trait]
impl CertificateLists for Database {
    async fn certificates(
        &self,
        actor: &Actor,
        types: SignedTypes,
        receive: Receive<'_, ListedCertificate>,
    ) -> Result<(), RepositoryError> {
        let reader = self.reader.of_actor(actor);
        let sql = match types {
            SignedTypes::All => statements::CERTIFICATES_OF_ALL_TYPES,
            SignedTypes::Certificates => statements::CERTIFICATES,
        };
        let query = statement(sql);
        reader.decode_each(query, listed_version, receive).await
    }

    async fn authorities(
        &self,
        actor: &Actor,
        receive: Receive<'_, ListedCertificate>,
    ) -> Result<(), RepositoryError> {
        let reader = self.reader.of_actor(actor);
        let query = statement(statements::AUTHORITIES);
        reader.decode_each(query, listed_version, receive).await
    }

    async fn certificate(
        &self,
        actor: &Actor,
        name: &LookupName,
        types: SignedTypes,
        receive: Receive<'_, ListedCertificate>,
    ) -> Result<(), RepositoryError> {
        let reader = self.reader.of_actor(actor);
        let sql = match types {
            SignedTypes::All => statements::CERTIFICATE_OF_ANY_TYPE_BY_NAME,
            SignedTypes::Certificates => statements::CERTIFICATE_BY_NAME,
        };
        let query = statement(sql).bind(name.folded());
        reader.decode_each(query, listed_version, receive).await
    }

    async fn certificates_signed_by(
        &self,
        actor: &Actor,
        signer: &LookupName,
    ) -> Result<Vec<CredentialName>, RepositoryError> {
        let reader = self.reader.of_actor(actor);
        let query = statement(statements::CERTIFICATES_SIGNED_BY).bind(signer.folded());
        let rows = reader.fetch_all(query).await?;
        rows.iter().map(row::name).collect()
    }

    async fn issued_by(
        &self,
        actor: &Actor,
        signer: &LookupName,
    ) -> Result<Vec<IssuedCredential>, RepositoryError> {
        let reader = self.reader.of_actor(actor);
        let query = statement(statements::ISSUED_BY).bind(signer.folded());
        let rows = reader.fetch_all(query).await?;
        rows.iter().map(row::issued_credential).collect()
    }

    async fn credentials_by_expiry(
        &self,
        moments: [DateTime<Utc>; EXPIRY_MOMENTS],
    ) -> Result<Vec<ExpiryCounts>, RepositoryError> {
        let reader = &self.reader;
        let query = moments.iter().fold(
            statement(statements::CREDENTIALS_BY_EXPIRY),
            |query, moment| query.bind(moment.timestamp_millis()),
        );
        let rows = reader.fetch_all(query).await?;
        rows.iter().map(expiry_counts).collect()
    }

    async fn effective_expiries(
        &self,
        actor: &Actor,
        names: &FindNames,
        until: DateTime<Utc>,
        receive: Receive<'_, EffectiveExpiry>,
    ) -> Result<(), RepositoryError> {
        let reader = self.reader.of_actor(actor);
        let Some(names) = NameSearch::new(names, reader.engine()) else {
            return Ok(());
        };
        let query = names
            .choose(&find::statements::EFFECTIVE_EXPIRIES, reader.engine())
            .bind(until.timestamp_millis())
            .bind(i64::from(CHAIN_DEPTH_MAX));
        let decode = |row: &Row| effective_expiry(row).map(Some);
        let query = names.bind_to(query);
        reader.decode_each(query, decode, receive).await
    }

    async fn transitional_authorities(
        &self,
        actor: &Actor,
        receive: Receive<'_, CredentialName>,
    ) -> Result<(), RepositoryError> {
        let reader = self.reader.of_actor(actor);
        let query = statement(find::statements::TRANSITIONAL_AUTHORITIES);
        let decode = |row: &Row| row::name(row).map(Some);
        reader.decode_each(query, decode, receive).await
    }
}

/// Decodes a certificate with one of its versions.
fn listed_version(row: &Row) -> Result<Option<ListedCertificate>, RepositoryError> {
    Ok(Some(ListedCertificate {
        id: column!(row, "credential", "credential_id")?,
        name: row::name(row)?,
        credential_type: row::credential_type(row)?,
        versions: vec![row::listed_version(row)?],
    }))
}

fn effective_expiry(row: &Row) -> Result<EffectiveExpiry, RepositoryError> {
    let link_name: Option<String> = column!(row, "credential_version", "first_name")?;
    Ok(EffectiveExpiry {
        name: CredentialName::from_stored(column!(row, "credential", "name")?),
        version_created_at: time(
            column!(row, "credential", "version_created_at")?,
            "credential.current_created_at",
        )?,
        link: ChainLink {
            depth: small(
                column!(row, "credential_version", "first_depth")?,
                "credential_version.first_depth",
            )?,
            name: link_name.map(CredentialName::from_stored),
            version_id: column!(row, "credential_version", "first_id")?,
            expires_at: time(
                column!(row, "credential_version", "first_at")?,
                "credential_version.expires_at",
            )?,
        },
    })
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
