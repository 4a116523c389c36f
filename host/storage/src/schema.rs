//! What the schema of a database is to this program, without changing it.

use keywright_core::ports::RepositoryFailure;
use sqlx::migrate::Migrator;

use crate::{
    connections::{Connections, Engine},
    database::DatabaseUnusable,
    row::{Row, column},
    statement::statement,
};

/// A migration that a database has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    version: i64,
    is_complete: bool,
    checksum: Vec<u8>,
}

/// The migrations that a database has, in their order; none at all in one that no server has used.
pub(crate) async fn applied(reader: &Connections) -> Result<Vec<Applied>, RepositoryFailure> {
    let tables = match reader.engine() {
        Engine::Postgres => statements::POSTGRES_TABLES,
        Engine::Sqlite => statements::SQLITE_TABLES,
    };
    if reader.fetch_optional(statement(tables)).await?.is_none() {
        return Ok(Vec::new());
    }
    let rows = reader.fetch_all(statement(statements::APPLIED)).await?;
    rows.iter().map(applied_of).collect()
}

/// Sees whether the schema is exactly that of this program.
pub(crate) async fn require_current(
    database: &str,
    reader: &Connections,
    migrations: &Migrator,
) -> Result<(), DatabaseUnusable> {
    let applied = applied(reader).await;
    let applied = applied.map_err(|source| DatabaseUnusable::SchemaNotRead {
        database: database.to_owned(),
        source: Box::new(source),
    })?;
    let database = || database.to_owned();
    let known: Vec<_> = migrations.iter().collect();
    if applied.is_empty() {
        return Err(DatabaseUnusable::SchemaAbsent {
            database: database(),
        });
    }
    let is_same = |(applied, known): (&Applied, &&sqlx::migrate::Migration)| {
        applied.version == known.version
            && applied.is_complete
            && applied.checksum == known.checksum.as_ref()
    };
    if !applied.iter().zip(&known).all(is_same) {
        return Err(DatabaseUnusable::SchemaDiffers {
            database: database(),
        });
    }
    match applied.len().cmp(&known.len()) {
        std::cmp::Ordering::Less => Err(DatabaseUnusable::SchemaOlder {
            database: database(),
        }),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(DatabaseUnusable::SchemaNewer {
            database: database(),
        }),
    }
}

fn applied_of(row: &Row) -> Result<Applied, RepositoryFailure> {
    Ok(Applied {
        version: column!(row, "_sqlx_migrations", "version")?,
        is_complete: column!(row, "_sqlx_migrations", "success")?,
        checksum: column!(row, "_sqlx_migrations", "checksum")?,
    })
}

pub(crate) mod statements {
    //! The SQL. The table of migrations is sqlx's; it has few rows, and reading them all is meant.

    pub(crate) const APPLIED: &str =
        "select version, success, checksum from _sqlx_migrations order by version";

    pub(crate) const POSTGRES_TABLES: &str = "
        select 1 as found from information_schema.tables
        where table_schema = current_schema() and table_name = '_sqlx_migrations'";

    pub(crate) const SQLITE_TABLES: &str =
        "select 1 as found from sqlite_schema where type = 'table' and name = '_sqlx_migrations'";
}
