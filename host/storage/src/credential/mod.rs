//! Credentials and their versions.

mod append;
mod find;
mod row;
pub(crate) mod statements;

use std::sync::Arc;

use async_trait::async_trait;
use keywright_core::{
    credential::{Find, FoundCredential, LookupName, StoredVersion},
    ports::{
        AppendCondition, Appended, CredentialRepository, Identifiers, NewVersion,
        RepositoryFailure, VersionSelection,
    },
};
use sqlx::{AssertSqlSafe, sqlite::SqliteRow};
use uuid::Uuid;

use crate::database::Pools;

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
        self.pools
            .reader
            .fetch_optional(sqlx::query(statements::VERSION_BY_ID).bind(id))
            .await?
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
        versions(&self.pools.reader.fetch_all(query).await?)
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
        versions(&self.pools.reader.fetch_all(query).await?)
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

    async fn delete(&self, name: &LookupName) -> Result<bool, RepositoryFailure> {
        let query = sqlx::query(statements::DELETE_CREDENTIAL).bind(name.folded());
        Ok(self.pools.writer.execute(query).await? > 0)
    }

    async fn ping(&self) -> Result<(), RepositoryFailure> {
        let query = sqlx::query(statements::PING).bind(Uuid::nil());
        self.pools.reader.fetch_all(query).await.map(drop)
    }
}

fn versions(rows: &[SqliteRow]) -> Result<Vec<StoredVersion>, RepositoryFailure> {
    rows.iter().map(row::stored_version).collect()
}
