//! Credentials and their versions.

mod append;
mod append_all;
mod find;
mod row;
pub(crate) mod statements;

use std::sync::Arc;

use async_trait::async_trait;
use keywright_core::{
    credential::{CredentialType, Find, FoundCredential, LookupName, StoredVersion},
    ports::{
        AppendCondition, Appended, CredentialRepository, CurrentVersions, Identifiers, NewVersion,
        RepositoryFailure, VersionSelection,
    },
};
use sqlx::{AssertSqlSafe, sqlite::SqliteRow};
use uuid::Uuid;

use crate::{database::Pools, failure::repository_failure};

/// Credentials in SQLite.
#[derive(Clone)]
pub struct SqliteCredentialRepository {
    pools: Pools,
    identifiers: Arc<dyn Identifiers>,
}

impl SqliteCredentialRepository {
    pub(crate) fn new(pools: Pools, identifiers: Arc<dyn Identifiers>) -> Self {
        Self { pools, identifiers }
    }
}

#[async_trait]
impl CredentialRepository for SqliteCredentialRepository {
    async fn version_by_id(&self, id: Uuid) -> Result<Option<StoredVersion>, RepositoryFailure> {
        sqlx::query(statements::VERSION_BY_ID)
            .bind(id)
            .fetch_optional(&self.pools.reader)
            .await
            .map_err(repository_failure)?
            .as_ref()
            .map(row::stored_version)
            .transpose()
    }

    async fn versions_by_name(
        &self,
        name: &LookupName,
        selection: VersionSelection,
    ) -> Result<Vec<StoredVersion>, RepositoryFailure> {
        let query = match selection {
            VersionSelection::All => sqlx::query(statements::VERSIONS_NEWEST_FIRST)
                .bind(name.folded())
                .bind(i64::MAX),
            VersionSelection::Current => {
                sqlx::query(statements::VERSIONS_CURRENT).bind(name.folded())
            }
            VersionSelection::Newest(count) => sqlx::query(statements::VERSIONS_NEWEST_FIRST)
                .bind(name.folded())
                .bind(i64::from(count)),
        };
        versions(
            &query
                .fetch_all(&self.pools.reader)
                .await
                .map_err(repository_failure)?,
        )
    }

    async fn newest_by_names(
        &self,
        names: &[LookupName],
    ) -> Result<Vec<StoredVersion>, RepositoryFailure> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        // The text holds nothing but the places of the parameters, and there are as many texts as there are counts: none
        // is worth a place in the cache of prepared statements.
        let sql = AssertSqlSafe(statements::newest_by_names(names.len()));
        let query = names
            .iter()
            .fold(sqlx::query(sql).persistent(false), |query, name| {
                query.bind(name.folded())
            });
        versions(
            &query
                .fetch_all(&self.pools.reader)
                .await
                .map_err(repository_failure)?,
        )
    }

    async fn newest_signed_by(
        &self,
        signers: &[LookupName],
        count_max: u32,
    ) -> Result<Vec<StoredVersion>, RepositoryFailure> {
        if signers.is_empty() {
            return Ok(Vec::new());
        }
        // As above: nothing but the places of the parameters.
        let sql = AssertSqlSafe(statements::newest_signed_by(signers.len()));
        let query = sqlx::query(sql)
            .persistent(false)
            .bind(CredentialType::CERTIFICATE)
            .bind(i64::from(count_max));
        let query = signers
            .iter()
            .fold(query, |query, signer| query.bind(signer.folded()));
        versions(
            &query
                .fetch_all(&self.pools.reader)
                .await
                .map_err(repository_failure)?,
        )
    }

    async fn find(&self, find: &Find) -> Result<Vec<FoundCredential>, RepositoryFailure> {
        find::find(&self.pools.reader, find).await
    }

    async fn append(
        &self,
        version: NewVersion,
        condition: AppendCondition,
    ) -> Result<Appended, RepositoryFailure> {
        append::append(
            &self.pools.writer,
            self.identifiers.as_ref(),
            version,
            condition,
        )
        .await
    }

    async fn append_all(
        &self,
        versions: Vec<(NewVersion, AppendCondition)>,
        unchanged: &[CurrentVersions],
    ) -> Result<bool, RepositoryFailure> {
        append_all::append_all(
            &self.pools.writer,
            self.identifiers.as_ref(),
            versions,
            unchanged,
        )
        .await
    }

    async fn delete(&self, name: &LookupName) -> Result<bool, RepositoryFailure> {
        let deleted = sqlx::query(statements::DELETE_CREDENTIAL)
            .bind(name.folded())
            .execute(&self.pools.writer)
            .await
            .map_err(repository_failure)?;
        Ok(deleted.rows_affected() > 0)
    }

    async fn ping(&self) -> Result<(), RepositoryFailure> {
        sqlx::query(statements::PING)
            .bind(Uuid::nil())
            .fetch_one(&self.pools.reader)
            .await
            .map(drop)
            .map_err(repository_failure)
    }
}

fn versions(rows: &[SqliteRow]) -> Result<Vec<StoredVersion>, RepositoryFailure> {
    rows.iter().map(row::stored_version).collect()
}
