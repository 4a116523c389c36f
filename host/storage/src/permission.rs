//! Stores permissions.

use std::sync::Arc;

use async_trait::async_trait;
use keywright_core::{
    credential::{CredentialName, LookupName},
    permission::{Actor, Grant, Operations, Permission, PermissionPath},
    ports::{Identifiers, PermissionRepository, Receive, RepositoryError},
};
use uuid::Uuid;

use crate::{
    Database,
    connections::{Connections, Ended, Engine, SqliteConnection, Transaction},
    credential::statements::STORED_NAME,
    statement::{Columns, Decoded, Row, Statement, StatementOfMany, column, column_at, statement},
};

impl Database {
    fn new_grants(&self, grants: &[Grant]) -> Arc<NewGrants> {
        Arc::new(NewGrants {
            identifiers: Arc::clone(&self.identifiers),
            grants: grants.to_vec(),
        })
    }

    /// Runs a statement that changes at most one permission, and returns it.
    async fn change_permission(
        &self,
        statement: Statement,
    ) -> Result<Option<Permission>, RepositoryError> {
        let rows = self.writer.fetch_all(statement).await?;
        rows.first().map(Permission::decode).transpose()
    }
}

#[async_trait]
impl PermissionRepository for Database {
    async fn of_actor_on(
        &self,
        actor: &Actor,
        paths: &[PermissionPath],
    ) -> Result<Vec<Permission>, RepositoryError> {
        let reader = &self.reader;
        let query = of_actor_on(reader.engine(), actor, paths).short();
        reader.decode_all(query).await
    }

    async fn of_actor_on_name(
        &self,
        actor: &Actor,
        paths: &[PermissionPath],
        name: &LookupName,
    ) -> Result<(Vec<Permission>, Option<CredentialName>), RepositoryError> {
        let (found, stored) = match &self.reader {
            Connections::Postgres(connections) => {
                let fixed = [actor.as_str().into(), name.folded().into()];
                let paths = paths.iter().map(PermissionPath::as_str);
                let query = POSTGRES_OF_ACTOR_ON_NAME.bind(fixed, paths).short();
                let rows = connections.fetch_all(query).await?;
                let stored = match rows.first() {
                    Some(row) => column!(row, "credential", "stored_name")?,
                    None => None,
                };
                let found = rows.iter().map(Permission::decode);
                (found.collect::<Result<_, _>>()?, stored)
            }
            Connections::Sqlite(readers) => {
                let query = of_actor_on_and_end(actor, paths);
                let stored_name = statement(STORED_NAME).bind(name.folded());
                let read = |connection: &SqliteConnection| {
                    connection.decode_and_read(&query, |found: Vec<Permission>| {
                        if found.is_empty() {
                            return Ok((found, None));
                        }
                        let stored = connection.fetch_optional(&stored_name)?;
                        Ok((found, stored.map(|row| row.at(0)).transpose()?))
                    })
                };
                readers.in_place(read).await??
            }
        };
        Ok((found, stored.map(CredentialName::from_stored)))
    }

    async fn of_actor(
        &self,
        actor: &Actor,
        receive: Receive<'_, Permission>,
    ) -> Result<(), RepositoryError> {
        let reader = &self.reader;
        // Nearly every actor has few permissions.
        let some = statement(statements::SOME_OF_ACTOR)
            .bind(actor.as_str())
            .bind(IN_PLACE_MAX + 1);
        let some: Vec<Permission> = reader.decode_all(some.short()).await?;
        if i64::try_from(some.len()).is_ok_and(|count| count <= IN_PLACE_MAX) {
            let _ = some.into_iter().try_for_each(receive);
            return Ok(());
        }
        let all = statement(statements::OF_ACTOR).bind(actor.as_str());
        let decode = |row: &Row| Permission::decode(row).map(Some);
        let reader = reader.of_actor(actor);
        reader.decode_each(all, decode, receive).await
    }

    async fn grant(&self, grants: &[Grant]) -> Result<(), RepositoryError> {
        let grants = self.new_grants(grants);
        let writer = &self.writer;
        let granting =
            writer.transaction(move |transaction| grant_once(transaction, Arc::clone(&grants)));
        granting.await
    }

    async fn grant_uncovered(
        &self,
        caller: &Actor,
        grants: &[Grant],
    ) -> Result<Result<Vec<Permission>, Actor>, RepositoryError> {
        let long_list = (grants.len() > SHORT_LIST_MAX).then(|| self.long_lists.of(caller));
        let _slot = match &long_list {
            Some(slots) => Some(self.writer.wait_for(slots).await?),
            None => None,
        };
        let grants = self.new_grants(grants);
        let writer = &self.writer;
        let granting = writer
            .transaction(move |transaction| grant_uncovered_once(transaction, Arc::clone(&grants)));
        granting.await
    }

    async fn by_id(&self, id: Uuid) -> Result<Option<Permission>, RepositoryError> {
        let query = statement(statements::BY_ID).bind(id).short();
        Ok(self.reader.decode_all(query).await?.pop())
    }

    async fn on_path(
        &self,
        path: &PermissionPath,
        count_max: usize,
    ) -> Result<Vec<Permission>, RepositoryError> {
        let count_max = i64::try_from(count_max).unwrap_or(i64::MAX);
        let query = statement(statements::ON_PATH)
            .bind(path.as_str())
            .bind(count_max);
        self.reader.decode_all(query).await
    }

    async fn on_path_after(
        &self,
        path: &PermissionPath,
        after: Option<&Actor>,
        count_max: usize,
    ) -> Result<Vec<Permission>, RepositoryError> {
        let count_max = i64::try_from(count_max).unwrap_or(i64::MAX);
        // The empty text precedes every actor.
        let query = statement(statements::ON_PATH_AFTER)
            .bind(path.as_str())
            .bind(after.map_or("", Actor::as_str))
            .bind(count_max);
        self.reader.decode_all(query).await
    }

    async fn add(&self, grant: &Grant) -> Result<Option<Permission>, RepositoryError> {
        self.change_permission(insert(statements::ADD, self.identifiers.as_ref(), grant))
            .await
    }

    async fn replace_operations(
        &self,
        id: Uuid,
        operations: Operations,
    ) -> Result<Option<Permission>, RepositoryError> {
        let query = statement(statements::REPLACE_OPERATIONS)
            .bind(id)
            .bind(i64::from(operations.bits()));
        self.change_permission(query).await
    }

    async fn delete(&self, id: Uuid) -> Result<Option<Permission>, RepositoryError> {
        self.change_permission(statement(statements::DELETE).bind(id))
            .await
    }

    async fn delete_of_actor_on(
        &self,
        actor: &Actor,
        path: &PermissionPath,
    ) -> Result<Option<Permission>, RepositoryError> {
        let query = statement(statements::DELETE_OF_ACTOR_ON)
            .bind(actor.as_str())
            .bind(path.as_str());
        self.change_permission(query).await
    }
}

/// Grants that are added in one transaction.
struct NewGrants {
    identifiers: Arc<dyn Identifiers>,
    grants: Vec<Grant>,
}

async fn grant_once(
    mut transaction: Transaction,
    new: Arc<NewGrants>,
) -> Result<Ended<()>, RepositoryError> {
    grant_all(&mut transaction, &new).await?;
    transaction.commit(()).await
}

async fn grant_uncovered_once(
    mut transaction: Transaction,
    new: Arc<NewGrants>,
) -> Result<Ended<Result<Vec<Permission>, Actor>>, RepositoryError> {
    // All grants are checked before the first is added, because an added grant could cover a later one for the same actor.
    for grant in &new.grants {
        if is_covered(&mut transaction, grant).await? {
            let covered = Err(grant.actor.clone());
            return transaction.conclude(covered).await;
        }
    }
    let granted = grant_all(&mut transaction, &new).await?;
    transaction.commit(Ok(granted)).await
}

async fn grant_all(
    transaction: &mut Transaction,
    new: &NewGrants,
) -> Result<Vec<Permission>, RepositoryError> {
    let mut granted = Vec::with_capacity(new.grants.len());
    for grant in &new.grants {
        let query = insert(statements::GRANT, new.identifiers.as_ref(), grant);
        let row = transaction.fetch_one(query).await?;
        granted.push(Permission::decode(&row)?);
    }
    Ok(granted)
}

/// Binds a new permission to an insert statement.
fn insert(sql: &'static str, identifiers: &dyn Identifiers, grant: &Grant) -> Statement {
    statement(sql)
        .bind(identifiers.fresh())
        .bind(grant.path.as_str())
        .bind(grant.actor.as_str())
        .bind(i64::from(grant.operations.bits()))
}

/// Returns the query for the permissions of an actor on any of these paths.
pub(crate) fn of_actor_on(engine: Engine, actor: &Actor, paths: &[PermissionPath]) -> Statement {
    let texts = engine.choose(&POSTGRES_OF_ACTOR_ON, &SQLITE_OF_ACTOR_ON);
    let paths = paths.iter().map(PermissionPath::as_str);
    texts.bind([actor.as_str().into()], paths)
}

/// SQLite: like [`of_actor_on`], followed by a row of nulls.
pub(crate) fn of_actor_on_and_end(actor: &Actor, paths: &[PermissionPath]) -> Statement {
    let paths = paths.iter().map(PermissionPath::as_str);
    SQLITE_OF_ACTOR_ON_AND_END.bind([actor.as_str().into()], paths)
}

static POSTGRES_OF_ACTOR_ON: StatementOfMany = StatementOfMany::new(statements::of_actor_on);
static SQLITE_OF_ACTOR_ON: StatementOfMany = StatementOfMany::new(statements::sqlite_of_actor_on);
static SQLITE_OF_ACTOR_ON_AND_END: StatementOfMany =
    StatementOfMany::new(statements::sqlite_of_actor_on_and_end);
static POSTGRES_OF_ACTOR_ON_NAME: StatementOfMany =
    StatementOfMany::new(statements::postgres_of_actor_on_name);

/// The maximum number of permissions in a short list.
const SHORT_LIST_MAX: usize = 8;

/// The maximum number of permissions of an actor that a short statement reads.
const IN_PLACE_MAX: i64 = 64;

/// Returns whether the actor already has all operations of the grant.
async fn is_covered(transaction: &mut Transaction, grant: &Grant) -> Result<bool, RepositoryError> {
    let covering = PermissionPath::covering(grant.path.as_str());
    let query = of_actor_on(transaction.engine(), &grant.actor, &covering);
    let found: Vec<Permission> = transaction.decode_all(query).await?;
    Ok(grant.is_covered_by(found))
}

/// Decodes the columns of `select_permission!` and `returning_permission!`.
impl Decoded for Permission {
    fn decode(row: &impl Columns) -> Result<Self, RepositoryError> {
        let bits: i64 = column_at!(row, 3, "permission", "operations")?;
        Ok(Self {
            id: column_at!(row, 0, "permission", "id")?,
            path: PermissionPath::from_stored(column_at!(row, 1, "permission", "path")?),
            actor: Actor::from_stored(column_at!(row, 2, "permission", "actor")?),
            operations: u8::try_from(bits)
                .ok()
                .and_then(Operations::from_bits)
                .ok_or(RepositoryError::Inconsistent("permission.operations"))?,
        })
    }
}

pub(crate) mod statements {
    //! The SQL of permissions.

    use crate::statement::placeholders;

    macro_rules! select_permission {
        ($($rest:literal),+) => {
            concat!("select p.id, p.path, p.actor, p.operations from permission p ", $($rest),+)
        };
    }

    macro_rules! returning_permission {
        ($($statement:literal),+) => {
            concat!($($statement),+, " returning id, path, actor, operations")
        };
    }

    pub(crate) const OF_ACTOR: &str = select_permission!("where p.actor = $1 order by p.path");

    /// At most `$2` permissions of an actor. SQLite would prepare `limit $2` again for each value, so the limit is an expression.
    pub(crate) const SOME_OF_ACTOR: &str =
        select_permission!("where p.actor = $1 limit cast($2 as bigint)");

    /// Selects the permissions of an actor (the first parameter) on any of `count` paths (the other parameters).
    pub(crate) fn of_actor_on(count: usize) -> String {
        format!(
            select_permission!("where p.actor = $1 and p.path in ({})"),
            placeholders(2, count)
        )
    }

    /// SQLite: as [`of_actor_on`]. With `in`, SQLite would copy the paths into a temporary table first.
    pub(crate) fn sqlite_of_actor_on(count: usize) -> String {
        let paths: Vec<String> = (2..count + 2)
            .map(|number| format!("(${number})"))
            .collect();
        format!(
            "select p.id, p.path, p.actor, p.operations from (values {}) k cross join permission p
             where p.actor = $1 and p.path = k.column1",
            paths.join(", ")
        )
    }

    /// SQLite: as [`of_actor_on`], followed by a row of nulls.
    pub(crate) fn sqlite_of_actor_on_and_end(count: usize) -> String {
        let on_each = sqlite_of_actor_on(count);
        format!("{on_each} union all select null, null, null, null")
    }

    /// PostgreSQL: as [`of_actor_on`], but each row also contains the stored name of the credential whose folded name is the
    /// second parameter. The paths are the parameters from the third on.
    pub(crate) fn postgres_of_actor_on_name(count: usize) -> String {
        format!(
            "select p.id, p.path, p.actor, p.operations,
                 (select c.name from credential c where c.name_folded = $2) as stored_name
             from permission p where p.actor = $1 and p.path in ({})",
            placeholders(3, count)
        )
    }

    pub(crate) const BY_ID: &str = select_permission!("where p.id = $1");

    pub(crate) const ON_PATH: &str =
        select_permission!("where p.path = $1 order by p.sequence limit $2");

    /// In the order of the unique index, so that a page reads no other rows.
    pub(crate) const ON_PATH_AFTER: &str =
        select_permission!("where p.path = $1 and p.actor > $2 order by p.actor limit $3");

    pub(crate) const GRANT: &str = returning_permission!(
        "insert into permission (id, path, actor, operations) values ($1, $2, $3, $4)
        on conflict (path, actor) do update set operations = permission.operations | excluded.operations"
    );

    pub(crate) const ADD: &str = returning_permission!(
        "insert into permission (id, path, actor, operations) values ($1, $2, $3, $4)
        on conflict (path, actor) do nothing"
    );

    pub(crate) const REPLACE_OPERATIONS: &str =
        returning_permission!("update permission set operations = $2 where id = $1");

    pub(crate) const DELETE: &str = returning_permission!("delete from permission where id = $1");

    pub(crate) const DELETE_OF_ACTOR_ON: &str =
        returning_permission!("delete from permission where actor = $1 and path = $2");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use keywright_core::permission::Operation;

    use super::*;
    use crate::{DatabaseOptions, SqliteOptions, database::NoIdentifiers};

    #[tokio::test]
    async fn a_long_list_waits_for_another_one_for_a_limited_time() {
        let folder = tempfile::tempdir().unwrap();
        let options = DatabaseOptions::Sqlite(SqliteOptions {
            path: folder.path().join("permissions.sqlite"),
            may_create: true,
            readers_max: 1,
            wait_max: Duration::from_secs(1),
        });
        let opening = Database::open(&options, Arc::new(NoIdentifiers));
        let database = opening.await.unwrap();
        let actor = Actor::client("a").unwrap();
        let grant = Grant {
            path: PermissionPath::parse("/*").unwrap(),
            actor: actor.clone(),
            operations: Operations::of([Operation::Read]).unwrap(),
        };
        let slots = database.long_lists.of(&actor);
        let _other = slots.acquire().await.unwrap();
        let long = vec![grant; SHORT_LIST_MAX + 1];
        let outcome = database.grant_uncovered(&actor, &long).await;
        assert!(matches!(outcome, Err(RepositoryError::Unavailable(_))));
    }
}
