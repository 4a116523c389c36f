//! Compares the schema of a database with the schema that the migrations create.
//!
//! SQLite stores the text of each table, index and trigger, so the migrations are run again, in memory, and the texts are
//! compared. PostgreSQL does not: `postgres_schema.txt` contains a description of a new database, from its catalogs, and a test
//! compares it with the result of the migrations.

use std::collections::{BTreeMap, BTreeSet};

use keywright_core::ports::RepositoryError;
use sqlx::{ConnectOptions, Connection as _, Row as _, sqlite::SqliteConnectOptions};

use crate::{
    connections::Connections,
    error::repository_failure,
    sqlite,
    statement::{Row, column, statement},
};

/// A table, an index or a trigger of SQLite: its type and its name.
type SqliteObject = (String, String);

/// Returns the objects of a SQLite file that are missing, or differ from the objects that the migrations create.
pub(super) async fn sqlite_differences(
    reader: &Connections,
) -> Result<Vec<String>, RepositoryError> {
    let expected = made_by_migrations().await.map_err(repository_failure)?;
    let rows = reader.fetch_all(statement(statements::SQLITE_OBJECTS));
    let found = rows
        .await?
        .iter()
        .map(object_of)
        .collect::<Result<_, _>>()?;
    Ok(sqlite_compared(&expected, &found))
}

pub(super) async fn postgres_differences(
    reader: &Connections,
) -> Result<Vec<String>, RepositoryError> {
    let found = postgres_lines(reader).await?;
    let expected: BTreeSet<&str> = POSTGRES_SCHEMA.lines().collect();
    let missing = expected.iter().filter(|line| !found.contains(**line));
    let missing = missing.map(|line| format!("missing or changed: {line}"));
    let unexpected = found
        .iter()
        .filter(|line| line.starts_with(POSTGRES_TRIGGER) && !expected.contains(line.as_str()));
    let unexpected = unexpected.map(|line| format!("not created by a migration: {line}"));
    Ok(missing.chain(unexpected).collect())
}

/// Describes the schema from the catalogs, in a line for each column, index, constraint, trigger and function.
async fn postgres_lines(reader: &Connections) -> Result<BTreeSet<String>, RepositoryError> {
    let rows = reader.fetch_all(statement(statements::POSTGRES_OBJECTS));
    let line = |row: &Row| column!(row, "pg_catalog", "line");
    rows.await?.iter().map(line).collect()
}

async fn made_by_migrations() -> Result<BTreeMap<SqliteObject, String>, sqlx::Error> {
    let options = SqliteConnectOptions::new().in_memory(true);
    let mut connection = options.disable_statement_logging().connect().await?;
    for migration in sqlite::migrations().iter() {
        sqlx::raw_sql(migration.sql.clone())
            .execute(&mut connection)
            .await?;
    }
    let rows = sqlx::query(statements::SQLITE_OBJECTS)
        .fetch_all(&mut connection)
        .await?;
    connection.close().await?;
    rows.iter()
        .map(|row| Ok(((row.try_get(0)?, row.try_get(1)?), row.try_get(2)?)))
        .collect()
}

fn object_of(row: &Row) -> Result<(SqliteObject, String), RepositoryError> {
    let kind = column!(row, "sqlite_schema", "kind")?;
    let name = column!(row, "sqlite_schema", "name")?;
    Ok(((kind, name), column!(row, "sqlite_schema", "text")?))
}

fn sqlite_compared(
    expected: &BTreeMap<SqliteObject, String>,
    found: &BTreeMap<SqliteObject, String>,
) -> Vec<String> {
    let mut differences = Vec::new();
    for (object, text) in expected {
        let (kind, name) = object;
        match found.get(object) {
            None => differences.push(format!("the {kind} {name} is missing")),
            Some(found) if !is_shadow_table(text) && words(found) != words(text) => {
                differences.push(format!(
                    "the {kind} {name} differs from its definition in the migrations"
                ));
            }
            Some(_) => {}
        }
    }
    // Additional tables and indexes do not change stored data. Triggers may.
    let unexpected = found.keys().filter(|object| !expected.contains_key(object));
    let unexpected = unexpected.filter(|(kind, _)| kind == TRIGGER);
    differences.extend(
        unexpected.map(|(kind, name)| format!("the {kind} {name} is not created by a migration")),
    );
    differences
}

/// Returns whether a table belongs to a full-text index. Its text differs between releases of SQLite.
fn is_shadow_table(text: &str) -> bool {
    text.starts_with(SHADOW_TABLE)
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

const TRIGGER: &str = "trigger";

/// The beginning of the text of a shadow table.
const SHADOW_TABLE: &str = "CREATE TABLE 'credential_name_";

const POSTGRES_TRIGGER: &str = "trigger ";
const POSTGRES_SCHEMA: &str = include_str!("postgres_schema.txt");

mod statements {
    //! The SQL. It reads the whole schema on purpose.

    /// Excludes the objects that SQLite creates itself: its own tables, and indexes of constraints.
    pub(super) const SQLITE_OBJECTS: &str = "
        select type as kind, name, sql as text from sqlite_schema where sql is not null and name not like 'sqlite\\_%' escape '\\'";

    /// Excludes texts that differ between releases of PostgreSQL: check constraints, and `not null` as a constraint.
    pub(super) const POSTGRES_OBJECTS: &str = "
        select concat('column ', table_name, '.', column_name, ' ', data_type,
            case is_nullable when 'NO' then ' not null' end, ' collate ' || collation_name) as line
        from information_schema.columns where table_schema = current_schema()
        union all
        select concat('index ', replace(pg_get_indexdef(i.indexrelid), concat(' ON ', quote_ident(current_schema()), '.'), ' ON '))
        from pg_index i join pg_class c on c.oid = i.indexrelid
        where c.relnamespace = current_schema()::regnamespace and i.indisvalid
        union all
        select concat('constraint ', k.conname, ' on ', c.relname,
            case k.contype when 'f' then ' ' || pg_get_constraintdef(k.oid, true) end)
        from pg_constraint k join pg_class c on c.oid = k.conrelid
        where c.relnamespace = current_schema()::regnamespace and k.contype in ('c', 'f') and k.convalidated
        union all
        select concat('trigger ', pg_get_triggerdef(t.oid, true), ' ', t.tgenabled)
        from pg_trigger t join pg_class c on c.oid = t.tgrelid
        where c.relnamespace = current_schema()::regnamespace and not t.tgisinternal
        union all
        select concat('function ', p.proname, ' ', md5(p.prosrc))
        from pg_proc p where p.pronamespace = current_schema()::regnamespace";
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{PostgresOptions, postgres};

    #[tokio::test]
    async fn the_recorded_schema_of_postgresql_is_current() {
        let Some(server) = keywright_test_postgres::shared() else {
            return;
        };
        let options = PostgresOptions {
            url: server.new_database(),
            password: None,
            root_certificate: None,
            readers_max: 1,
            writers_max: 1,
            wait_max: std::time::Duration::from_mins(10),
        };
        let (_writer, reader) = postgres::open(&options).await.unwrap();
        let lines = postgres_lines(&reader).await.unwrap();
        let mut text = String::new();
        for line in &lines {
            text.push_str(line);
            text.push('\n');
        }
        if std::env::var_os("KEYWRIGHT_REFRESH_GOLDEN_FILES").is_some() {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/check/postgres_schema.txt");
            std::fs::write(file, text).unwrap();
        } else {
            assert_eq!(
                text, POSTGRES_SCHEMA,
                "refresh it with KEYWRIGHT_REFRESH_GOLDEN_FILES=1"
            );
        }
    }
}
