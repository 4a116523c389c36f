//! Permissions.

mod row;
pub(crate) mod statements;

use std::sync::Arc;

use async_trait::async_trait;
use keywright_core::{
    permission::{Actor, Grant, Operations, Permission, PermissionPath},
    ports::{Identifiers, PermissionRepository, RepositoryFailure},
};
use sqlx::{AssertSqlSafe, SqliteConnection, sqlite::SqliteRow};
use uuid::Uuid;

use crate::{
    connections::{Connections, SqliteQuery},
    database::Pools,
    failure::repository_failure,
};

/// Permissions in SQLite.
#[derive(Clone)]
pub struct SqlitePermissionRepository {
    pools: Pools,
    identifiers: Arc<dyn Identifiers>,
}

impl SqlitePermissionRepository {
    pub(crate) fn new(pools: Pools, identifiers: Arc<dyn Identifiers>) -> Self {
        Self { pools, identifiers }
    }

    /// Binds a new permission to one of the statements that insert.
    fn insert<'q>(&self, statement: &'static str, grant: &'q Grant) -> SqliteQuery<'q> {
        sqlx::query(statement)
            .bind(self.identifiers.fresh())
            .bind(grant.path.as_str())
            .bind(grant.actor.as_str())
            .bind(grant.operations.bits())
    }

    /// Makes all grants within a transaction.
    async fn grant_all(
        &self,
        transaction: &mut SqliteConnection,
        grants: &[Grant],
    ) -> Result<Vec<Permission>, RepositoryFailure> {
        let mut granted = Vec::with_capacity(grants.len());
        for grant in grants {
            let row = self
                .insert(statements::GRANT, grant)
                .fetch_one(&mut *transaction)
                .await
                .map_err(repository_failure)?;
            granted.push(row::permission(&row)?);
        }
        Ok(granted)
    }
}

#[async_trait]
impl PermissionRepository for SqlitePermissionRepository {
    async fn of_actor_on(
        &self,
        actor: &Actor,
        paths: &[PermissionPath],
    ) -> Result<Vec<Permission>, RepositoryFailure> {
        let Some(query) = of_actor_on(actor, paths) else {
            return Ok(Vec::new());
        };
        permissions(&self.pools.reader.fetch_all(query).await?)
    }

    async fn of_actor(&self, actor: &Actor) -> Result<Vec<Permission>, RepositoryFailure> {
        let query = sqlx::query(statements::OF_ACTOR).bind(actor.as_str());
        permissions(&self.pools.reader.fetch_all(query).await?)
    }

    async fn grant(&self, grants: &[Grant]) -> Result<(), RepositoryFailure> {
        let mut connection = self.pools.writer.lend().await?;
        let mut transaction = connection.begin().await?;
        self.grant_all(&mut transaction, grants).await?;
        transaction.commit().await
    }

    async fn grant_uncovered(
        &self,
        grants: &[Grant],
    ) -> Result<Option<Vec<Permission>>, RepositoryFailure> {
        let mut connection = self.pools.writer.lend().await?;
        let mut transaction = connection.begin().await?;
        // All are looked at before any is made, so that two for one actor don't stand in each other's way.
        for grant in grants {
            if is_covered(&mut transaction, grant).await? {
                return Ok(None);
            }
        }
        let granted = self.grant_all(&mut transaction, grants).await?;
        transaction.commit().await?;
        Ok(Some(granted))
    }

    async fn by_id(&self, id: Uuid) -> Result<Option<Permission>, RepositoryFailure> {
        let query = sqlx::query(statements::BY_ID).bind(id);
        only(&self.pools.reader, query).await
    }

    async fn on_path(&self, path: &PermissionPath) -> Result<Vec<Permission>, RepositoryFailure> {
        let query = sqlx::query(statements::ON_PATH).bind(path.as_str());
        permissions(&self.pools.reader.fetch_all(query).await?)
    }

    async fn add(&self, grant: &Grant) -> Result<Option<Permission>, RepositoryFailure> {
        only(&self.pools.writer, self.insert(statements::ADD, grant)).await
    }

    async fn replace_operations(
        &self,
        id: Uuid,
        operations: Operations,
    ) -> Result<Option<Permission>, RepositoryFailure> {
        let query = sqlx::query(statements::REPLACE_OPERATIONS)
            .bind(id)
            .bind(operations.bits());
        only(&self.pools.writer, query).await
    }

    async fn delete(&self, id: Uuid) -> Result<Option<Permission>, RepositoryFailure> {
        let query = sqlx::query(statements::DELETE).bind(id);
        only(&self.pools.writer, query).await
    }

    async fn delete_of_actor_on(
        &self,
        actor: &Actor,
        path: &PermissionPath,
    ) -> Result<Option<Permission>, RepositoryFailure> {
        let query = sqlx::query(statements::DELETE_OF_ACTOR_ON)
            .bind(actor.as_str())
            .bind(path.as_str());
        only(&self.pools.writer, query).await
    }
}

/// Asks for the permissions of an actor on any of these paths; nothing when there are no paths.
fn of_actor_on<'q>(actor: &'q Actor, paths: &'q [PermissionPath]) -> Option<SqliteQuery<'q>> {
    let last = paths.last()?;
    // The text holds nothing but the places of the parameters. There are few texts, so that they stay prepared: the places
    // that are left hold the last path again.
    let places = paths.len().next_power_of_two();
    let sql = AssertSqlSafe(statements::of_actor_on(places));
    let query = sqlx::query(sql).bind(actor.as_str());
    let query = (0..places)
        .map(|place| paths.get(place).unwrap_or(last))
        .fold(query, |query, path| query.bind(path.as_str()));
    Some(query)
}

/// Whether the actor may do already all that it is to be granted.
async fn is_covered(
    transaction: &mut SqliteConnection,
    grant: &Grant,
) -> Result<bool, RepositoryFailure> {
    let covering = PermissionPath::covering(grant.path.as_str());
    let Some(query) = of_actor_on(&grant.actor, &covering) else {
        return Ok(false);
    };
    let rows = query.fetch_all(transaction).await;
    let found = permissions(&rows.map_err(repository_failure)?)?;
    Ok(grant.is_covered_by(found))
}

/// The permission of a statement that has one row at most. It is run to its end, and so a change is on disk, before this
/// answers.
async fn only(
    connections: &Connections,
    query: SqliteQuery<'_>,
) -> Result<Option<Permission>, RepositoryFailure> {
    let rows = connections.fetch_all(query).await?;
    rows.first().map(row::permission).transpose()
}

fn permissions(rows: &[SqliteRow]) -> Result<Vec<Permission>, RepositoryFailure> {
    rows.iter().map(row::permission).collect()
}
