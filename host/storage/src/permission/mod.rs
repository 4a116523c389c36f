//! Permissions.

mod row;
pub(crate) mod statements;

use std::sync::Arc;

use async_trait::async_trait;
use keywright_core::{
    credential::{CredentialName, LookupName},
    permission::{Actor, Grant, Operations, Permission, PermissionPath},
    ports::{Identifiers, PermissionRepository, RepositoryFailure},
};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::{
    connections::{Ended, Transaction},
    database::Pools,
    row::{Row, column},
    statement::{Statement, statement},
};

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

    fn new_grants(&self, grants: &[Grant]) -> Arc<NewGrants> {
        Arc::new(NewGrants {
            identifiers: Arc::clone(&self.identifiers),
            grants: grants.to_vec(),
        })
    }

    /// The permission of a statement that has one row at most and changes something.
    async fn change(&self, statement: Statement) -> Result<Option<Permission>, RepositoryFailure> {
        let rows = self.pools.writer.fetch_all(statement).await?;
        rows.first().map(row::permission).transpose()
    }
}

#[async_trait]
impl PermissionRepository for SqlPermissionRepository {
    async fn of_actor_on(
        &self,
        actor: &Actor,
        paths: &[PermissionPath],
    ) -> Result<Vec<Permission>, RepositoryFailure> {
        let Some(query) = of_actor_on(statements::of_actor_on, actor, paths) else {
            return Ok(Vec::new());
        };
        permissions(&self.pools.reader.fetch_all(query).await?)
    }

    async fn of_actor_on_name(
        &self,
        actor: &Actor,
        paths: &[PermissionPath],
        name: &LookupName,
    ) -> Result<(Vec<Permission>, Option<CredentialName>), RepositoryFailure> {
        let Some(query) = of_actor_on(statements::of_actor_on_name, actor, paths) else {
            return Ok((Vec::new(), None));
        };
        let rows = self
            .pools
            .reader
            .fetch_all(query.bind(name.folded()))
            .await?;
        let stored: Option<String> = match rows.first() {
            Some(row) => column!(row, "credential", "stored_name")?,
            None => None,
        };
        Ok((permissions(&rows)?, stored.map(CredentialName::from_stored)))
    }

    async fn of_actor(&self, actor: &Actor) -> Result<Vec<Permission>, RepositoryFailure> {
        let query = statement(statements::OF_ACTOR).bind(actor.as_str());
        permissions(&self.pools.reader.fetch_all(query).await?)
    }

    async fn grant(&self, grants: &[Grant]) -> Result<(), RepositoryFailure> {
        let grants = self.new_grants(grants);
        let writer = &self.pools.writer;
        let granting =
            writer.transaction(move |transaction| grant_once(transaction, Arc::clone(&grants)));
        granting.await
    }

    async fn grant_uncovered(
        &self,
        grants: &[Grant],
    ) -> Result<Option<Vec<Permission>>, RepositoryFailure> {
        let grants = self.new_grants(grants);
        let writer = &self.pools.writer;
        let granting = writer
            .transaction(move |transaction| grant_uncovered_once(transaction, Arc::clone(&grants)));
        granting.await
    }

    async fn by_id(&self, id: Uuid) -> Result<Option<Permission>, RepositoryFailure> {
        let query = statement(statements::BY_ID).bind(id);
        let rows = self.pools.reader.fetch_all(query).await?;
        rows.first().map(row::permission).transpose()
    }

    async fn on_path(&self, path: &PermissionPath) -> Result<Vec<Permission>, RepositoryFailure> {
        let query = statement(statements::ON_PATH).bind(path.as_str());
        permissions(&self.pools.reader.fetch_all(query).await?)
    }

    async fn add(&self, grant: &Grant) -> Result<Option<Permission>, RepositoryFailure> {
        self.change(insert(statements::ADD, self.identifiers.as_ref(), grant))
            .await
    }

    async fn replace_operations(
        &self,
        id: Uuid,
        operations: Operations,
    ) -> Result<Option<Permission>, RepositoryFailure> {
        let query = statement(statements::REPLACE_OPERATIONS)
            .bind(id)
            .bind(i64::from(operations.bits()));
        self.change(query).await
    }

    async fn delete(&self, id: Uuid) -> Result<Option<Permission>, RepositoryFailure> {
        self.change(statement(statements::DELETE).bind(id)).await
    }

    async fn delete_of_actor_on(
        &self,
        actor: &Actor,
        path: &PermissionPath,
    ) -> Result<Option<Permission>, RepositoryFailure> {
        let query = statement(statements::DELETE_OF_ACTOR_ON)
            .bind(actor.as_str())
            .bind(path.as_str());
        self.change(query).await
    }
}

/// Grants that are made together.
struct NewGrants {
    identifiers: Arc<dyn Identifiers>,
    grants: Vec<Grant>,
}

async fn grant_once(
    mut transaction: Transaction,
    new: Arc<NewGrants>,
) -> Result<Ended<()>, RepositoryFailure> {
    grant_all(&mut transaction, &new).await?;
    transaction.commit(()).await
}

async fn grant_uncovered_once(
    mut transaction: Transaction,
    new: Arc<NewGrants>,
) -> Result<Ended<Option<Vec<Permission>>>, RepositoryFailure> {
    // All are looked at before any is made, so that two for one actor don't stand in each other's way.
    for grant in &new.grants {
        if is_covered(&mut transaction, grant).await? {
            return transaction.conclude(None).await;
        }
    }
    let granted = grant_all(&mut transaction, &new).await?;
    transaction.commit(Some(granted)).await
}

/// Makes all grants within a transaction.
async fn grant_all(
    transaction: &mut Transaction,
    new: &NewGrants,
) -> Result<Vec<Permission>, RepositoryFailure> {
    let mut granted = Vec::with_capacity(new.grants.len());
    for grant in &new.grants {
        let query = insert(statements::GRANT, new.identifiers.as_ref(), grant);
        let row = transaction.fetch_one(query).await?;
        granted.push(row::permission(&row)?);
    }
    Ok(granted)
}

/// Binds a new permission to one of the statements that insert.
fn insert(sql: &'static str, identifiers: &dyn Identifiers, grant: &Grant) -> Statement {
    statement(sql)
        .bind(identifiers.fresh())
        .bind(grant.path.as_str())
        .bind(grant.actor.as_str())
        .bind(i64::from(grant.operations.bits()))
}

/// Asks for the permissions of an actor on any of these paths; nothing when there are no paths.
fn of_actor_on(
    sql: fn(usize) -> String,
    actor: &Actor,
    paths: &[PermissionPath],
) -> Option<Statement> {
    let last = paths.last()?;
    // The text holds nothing but the places of the parameters. There are few texts, so that they stay prepared: the places
    // that are left hold the last path again.
    let places = paths.len().next_power_of_two();
    let sql = AssertSqlSafe(sql(places));
    let query = statement(sql).bind(actor.as_str());
    let query = (0..places)
        .map(|place| paths.get(place).unwrap_or(last))
        .fold(query, |query, path| query.bind(path.as_str()));
    Some(query)
}

/// Whether the actor may do already all that it is to be granted.
async fn is_covered(
    transaction: &mut Transaction,
    grant: &Grant,
) -> Result<bool, RepositoryFailure> {
    let covering = PermissionPath::covering(grant.path.as_str());
    let Some(query) = of_actor_on(statements::of_actor_on, &grant.actor, &covering) else {
        return Ok(false);
    };
    let found = permissions(&transaction.fetch_all(query).await?)?;
    Ok(grant.is_covered_by(found))
}

fn permissions(rows: &[Row]) -> Result<Vec<Permission>, RepositoryFailure> {
    rows.iter().map(row::permission).collect()
}
