//! Permissions.

mod row;
pub(crate) mod statements;

use std::sync::Arc;

use async_trait::async_trait;
use keywright_core::{
    permission::{Actor, Grant, Permission, PermissionPath},
    ports::{Identifiers, PermissionRepository, RepositoryFailure},
};
use sqlx::AssertSqlSafe;

use crate::{connections::Connections, database::Pools, statement::statement};

/// Permissions in a database.
#[derive(Clone)]
pub struct SqlPermissionRepository {
    pools: Pools,
    identifiers: Arc<dyn Identifiers>,
}

impl SqlPermissionRepository {
    pub(crate) fn new(pools: Pools, identifiers: Arc<dyn Identifiers>) -> Self {
        Self { pools, identifiers }
    }
}

#[async_trait]
impl PermissionRepository for SqlPermissionRepository {
    async fn of_actor_on(
        &self,
        actor: &Actor,
        paths: &[PermissionPath],
    ) -> Result<Vec<Permission>, RepositoryFailure> {
        let Some(last) = paths.last() else {
            return Ok(Vec::new());
        };
        // The text holds nothing but the places of the parameters. There are few texts, so that they stay prepared: the
        // places that are left hold the last path again.
        let places = paths.len().next_power_of_two();
        let sql = AssertSqlSafe(statements::of_actor_on(places));
        let query = statement(sql).bind(actor.as_str());
        let query = (0..places)
            .map(|place| paths.get(place).unwrap_or(last))
            .fold(query, |query, path| query.bind(path.as_str()));
        self.pools
            .reader
            .fetch_all(query)
            .await?
            .iter()
            .map(row::permission)
            .collect()
    }

    async fn of_actor(&self, actor: &Actor) -> Result<Vec<Permission>, RepositoryFailure> {
        self.pools
            .reader
            .fetch_all(statement(statements::OF_ACTOR).bind(actor.as_str()))
            .await?
            .iter()
            .map(row::permission)
            .collect()
    }

    async fn grant(&self, grants: &[Grant]) -> Result<(), RepositoryFailure> {
        let writer = &self.pools.writer;
        let identifiers = self.identifiers.as_ref();
        writer.retry(|| grant(writer, identifiers, grants)).await
    }
}

async fn grant(
    writer: &Connections,
    identifiers: &dyn Identifiers,
    grants: &[Grant],
) -> Result<(), RepositoryFailure> {
    let mut connection = writer.lend().await?;
    let mut transaction = connection.begin().await?;
    for grant in grants {
        let query = statement(statements::GRANT)
            .bind(identifiers.fresh())
            .bind(grant.path.as_str())
            .bind(grant.actor.as_str())
            .bind(i64::from(grant.operations.bits()));
        transaction.execute(query).await?;
    }
    transaction.commit().await
}
