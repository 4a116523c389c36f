//! Compatibility of schemas with servers, so that old and new servers run side by side.
//!
//! A migration may only add objects that older servers can ignore. If it removes an object, its name includes the migration
//! that a server must have to work without the object. For example, if servers with migration 0010 did not use a salt,
//! `0012_drop_salt_needs_0010` would exclude only older servers. The table of migrations contains the names, so an older server can
//! determine from it whether it still works with the schema.

use std::cmp::Ordering;

use keywright_core::ports::RepositoryError;
use sqlx::{
    ColumnIndex, Decode, FromRow, SqlSafeStr, Type,
    migrate::{Migration, MigrationType, Migrator},
};

use crate::{
    connections::Connections,
    error::{DatabaseOpenError, SCHEMA_DIFFERS},
    statement::{Row, column, statement},
};

/// The reason why a server can't use a schema.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SchemaVersionError {
    #[error(
        "another server has been running migrations for {0} seconds and has not finished; check its log"
    )]
    ChangedByOther(u64),
    #[error(
        "migration {migration} of the database ({description}) requires a server with migration {needed}, but this server's last \
         migration is {known}; use a newer version of the server"
    )]
    TooNew {
        /// The migration that removed it.
        migration: i64,
        description: String,
        /// The migration that a server must have to use the schema.
        needed: i64,
        known: i64,
    },
    #[error("it has tables of another program; configure a database for Keywright alone")]
    OtherProgram,
    /// The database has no tables, and its encoding lacks characters.
    #[error(
        "its encoding is {0}, which lacks characters that the names of actors may contain; create the database with the encoding UTF8"
    )]
    OtherEncoding(String),
    /// A later schema of the search path has the tables, so that this server would create them again.
    #[error(
        "its tables are in the schema {0}, which is not the first one of search_path; correct search_path, or remove the schema before it"
    )]
    OtherSchema(String),
    #[error(
        "migration {0} of the database is unknown to this server, although the server has later migrations; use the release that ran it"
    )]
    Unknown(i64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AppliedMigration {
    version: i64,
    description: String,
    is_complete: bool,
    checksum: Vec<u8>,
}

/// Decodes a row of [`statements::APPLIED`] on any database.
impl<'r, R> FromRow<'r, R> for AppliedMigration
where
    R: sqlx::Row,
    usize: ColumnIndex<R>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
    String: Decode<'r, R::Database> + Type<R::Database>,
    bool: Decode<'r, R::Database> + Type<R::Database>,
    Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        Ok(Self {
            version: row.try_get(0)?,
            description: row.try_get(1)?,
            is_complete: row.try_get(2)?,
            checksum: row.try_get(3)?,
        })
    }
}

/// The files of an engine's migrations, compiled in, with their names. A test detects missing files.
///
/// `sqlx::migrate!` does the same, but its crate builds sqlx, all drivers and TLS a second time.
macro_rules! files {
    ($engine:literal) => {
        files!(
            $engine,
            "0001_credentials",
            "0002_certificate_list",
            "0003_issuer_version",
            "0004_leases",
            "0005_wrapped_key",
            "0006_issuer_version_index",
            "0007_certificate_list_order",
            "0008_listing",
            "0009_serial_number",
            "0010_key_usage_and_clock",
            "0011_certificates_of_other_types",
            "0012_value_expiry",
            "0013_version_inputs",
            "0014_authorities",
            "0015_latest_certificate"
        )
    };
    ($engine:literal, $($name:literal),+) => {
        &[$((
            $name,
            include_str!(concat!("../../../migrations/", $engine, "/", $name, ".sql")),
        )),+]
    };
}
pub(crate) use files;

/// Returns a migrator that runs in a transaction of the caller and ignores unknown migrations. It takes no lock: the caller's
/// transaction must exclude other migrators.
///
/// The files must be in the order of their numbers.
pub(crate) fn within_transaction(files: &[(&'static str, &'static str)]) -> Migrator {
    let migrations = files.iter().map(|(name, sql)| {
        let (number, description) = name.split_once('_').unwrap_or_default();
        // A test compares all numbers with the names of the files.
        let number = number.parse().unwrap_or_default();
        let description = description.replace('_', " ").into();
        Migration::new(
            number,
            description,
            MigrationType::Simple,
            sql.into_sql_str(),
            false,
        )
    });
    let mut migrations = Migrator::with_migrations(migrations.collect());
    migrations.set_locking(false).set_ignore_missing(true);
    migrations
}

/// Checks that a server with the migrations `known` can use a database with the migrations `applied`.
pub(crate) fn check_compatible(
    known: &Migrator,
    applied: &[AppliedMigration],
) -> Result<(), SchemaVersionError> {
    let last_known = known.iter().map(|migration| migration.version).max();
    let last_known = last_known.unwrap_or_default();
    let others = applied
        .iter()
        .filter(|applied| !known.version_exists(applied.version));
    for other in others {
        if other.version <= last_known {
            return Err(SchemaVersionError::Unknown(other.version));
        }
        match needed_migration(&other.description) {
            Some(needed) if needed > last_known => {
                return Err(SchemaVersionError::TooNew {
                    migration: other.version,
                    description: other.description.clone(),
                    needed,
                    known: last_known,
                });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the migrations of a database in their order. Empty if no server has used it.
pub(crate) async fn applied(
    reader: &Connections,
) -> Result<Vec<AppliedMigration>, RepositoryError> {
    let tables = reader
        .engine()
        .choose(statements::POSTGRES_TABLES, statements::SQLITE_TABLES);
    if reader.fetch_optional(statement(tables)).await?.is_none() {
        return Ok(Vec::new());
    }
    let rows = reader.fetch_all(statement(statements::APPLIED)).await?;
    rows.iter().map(applied_of).collect()
}

/// Checks that the schema matches this program exactly. A compatible schema is not enough: a command that checks or copies all
/// records must cover the whole schema and, unlike a server, may refuse to run.
pub(crate) async fn require_current(
    database: &str,
    reader: &Connections,
    migrations: &Migrator,
) -> Result<(), DatabaseOpenError> {
    let applied = applied(reader).await;
    let applied = applied.map_err(|source| DatabaseOpenError::SchemaNotRead {
        database: database.to_owned(),
        source: Box::new(source),
    })?;
    if applied.is_empty() {
        return Err(DatabaseOpenError::SchemaAbsent(database.to_owned()));
    }
    let difference = match applied.len().cmp(&migrations.iter().count()) {
        _ if !are_same(&applied, migrations) => SCHEMA_DIFFERS,
        Ordering::Less => {
            "is older than this program; start a server of this version to migrate it"
        }
        Ordering::Equal => return Ok(()),
        Ordering::Greater => {
            "is newer than this program; run the newer version, or restore a backup from before the upgrade"
        }
    };
    Err(DatabaseOpenError::SchemaDiffers {
        database: database.to_owned(),
        difference,
    })
}

/// Returns whether applied migrations are all known migrations, perhaps followed by later ones.
pub(crate) fn begin_with(applied: &[AppliedMigration], known: &Migrator) -> bool {
    applied.len() >= known.iter().count() && are_same(applied, known)
}

/// Compares applied and known migrations. If one list is longer, ignores the rest of it.
fn are_same(applied: &[AppliedMigration], known: &Migrator) -> bool {
    let is_same = |(applied, known): (&AppliedMigration, &Migration)| {
        applied.version == known.version
            && applied.is_complete
            && applied.checksum == known.checksum.as_ref()
    };
    applied.iter().zip(known.iter()).all(is_same)
}

fn applied_of(row: &Row) -> Result<AppliedMigration, RepositoryError> {
    Ok(AppliedMigration {
        version: column!(row, "_sqlx_migrations", "version")?,
        description: column!(row, "_sqlx_migrations", "description")?,
        is_complete: column!(row, "_sqlx_migrations", "success")?,
        checksum: column!(row, "_sqlx_migrations", "checksum")?,
    })
}

/// Returns the migration that a server must have to use a schema with this migration. `None` if every server can use it.
fn needed_migration(description: &str) -> Option<i64> {
    let (before, number) = description.rsplit_once(' ')?;
    let (_, word) = before.rsplit_once(' ')?;
    let is_number =
        number.len() == NUMBER_DIGITS && number.bytes().all(|byte| byte.is_ascii_digit());
    (word == NEEDS && is_number).then(|| number.parse().ok())?
}

/// The word before the number of the required migration in a migration's name.
const NEEDS: &str = "needs";

/// The number of digits in a file name's migration number.
const NUMBER_DIGITS: usize = 4;

pub(crate) mod statements {
    //! The SQL. The table of migrations belongs to sqlx. It has few rows, so reading all of them is fine.

    pub(crate) const APPLIED: &str =
        "select version, description, success, checksum from _sqlx_migrations order by version";

    pub(crate) const POSTGRES_TABLES: &str = "
        select 1 as found from information_schema.tables
        where table_schema = current_schema() and table_name = '_sqlx_migrations'";

    pub(crate) const SQLITE_TABLES: &str =
        "select 1 as found from sqlite_schema where type = 'table' and name = '_sqlx_migrations'";

    /// Returns a row if there are tables, but no table of Keywright.
    pub(crate) const POSTGRES_OTHER_PROGRAM: &str = "
        select 1 as found from information_schema.tables
        where table_schema = current_schema() and table_type = 'BASE TABLE' and not exists (
            select 1 from information_schema.tables
            where table_schema = current_schema() and table_name = 'credential_version'
        ) limit 1";

    /// Returns the encoding if it can't store all characters and there are no tables of Keywright. `SQL_ASCII` stores any bytes.
    pub(crate) const POSTGRES_OTHER_ENCODING: &str = "
        select current_setting('server_encoding')
        where current_setting('server_encoding') not in ('UTF8', 'SQL_ASCII') and to_regclass('credential_version') is null";

    /// Returns the schema of the tables if it is not the one in which tables are created.
    pub(crate) const POSTGRES_OTHER_SCHEMA: &str = "
        select n.nspname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.oid = to_regclass('credential_version') and n.nspname <> current_schema()";

    /// Returns a row if there are tables, but no table of Keywright.
    pub(crate) const SQLITE_OTHER_PROGRAM: &str = "
        select 1 as found from sqlite_schema where type = 'table' and not exists (
            select 1 from sqlite_schema where name = 'credential_version'
        ) limit 1";
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{postgres, sqlite};

    fn applied(migrations: &[(i64, &str)]) -> Vec<AppliedMigration> {
        let migrations = migrations.iter();
        migrations
            .map(|&(version, description)| AppliedMigration {
                version,
                description: description.to_owned(),
                is_complete: true,
                checksum: Vec::new(),
            })
            .collect()
    }

    /// Checks a database with these additional migrations on a server that has only the first three migrations.
    fn checked(later: &[(i64, &str)]) -> Result<(), SchemaVersionError> {
        let mut known = sqlite::migrations();
        known.migrations.to_mut().truncate(3);
        let mut all = applied(&[(1, "one"), (2, "two"), (3, "three")]);
        all.extend(applied(later));
        check_compatible(&known, &all)
    }

    #[test]
    fn later_additions_are_accepted_and_removals_are_not() {
        for (later, is_compatible) in [
            (&[][..], true),
            (&[(4, "leases")], true),
            (&[(4, "leases"), (5, "drop salt needs 0003")], true),
            (&[(4, "leases"), (5, "drop salt needs 0004")], false),
            (&[(4, "drop salt needs 0004"), (5, "leases")], false),
            (&[(4, "what needs 4")], true),
            (&[(4, "needs 0004")], true),
        ] {
            assert_eq!(checked(later).is_ok(), is_compatible, "{later:?}");
        }
    }

    #[test]
    fn a_refusal_names_the_required_migration() {
        let refused = checked(&[(9, "drop salt needs 0007")]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "migration 9 of the database (drop salt needs 0007) requires a server with migration 7, but this server's last \
             migration is 3; use a newer version of the server"
        );
    }

    #[test]
    fn an_unknown_older_migration_is_refused() {
        let known = sqlite::migrations();
        let refused = check_compatible(&known, &applied(&[(0, "other")])).unwrap_err();
        assert!(matches!(refused, SchemaVersionError::Unknown(0)));
    }

    #[tokio::test]
    async fn compiled_migrations_match_the_folders_on_each_engine() {
        for (engine, known) in [
            ("postgres", postgres::migrations()),
            ("sqlite", sqlite::migrations()),
        ] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
            let in_folder = Migrator::new(folder.join(engine)).await.unwrap();
            let all = |migrations: &Migrator| -> Vec<_> {
                let all = migrations.iter();
                all.map(|migration| {
                    let text = migration.sql.as_str().to_owned();
                    let checksum = migration.checksum.to_vec();
                    let description = migration.description.to_string();
                    let kind = (migration.migration_type, migration.no_tx);
                    (migration.version, description, kind, text, checksum)
                })
                .collect()
            };
            assert_eq!(all(&known), all(&in_folder), "{engine}");
        }
    }

    #[test]
    fn migrations_that_remove_something_name_their_requirement() {
        for migrations in [sqlite::migrations(), postgres::migrations()] {
            for migration in migrations.iter() {
                let needed = needed_migration(&migration.description);
                assert!(needed.is_none_or(|needed| needed <= migration.version));
                let is_contracting = is_contracting(migration.sql.as_str());
                assert!(
                    !is_contracting || needed.is_some(),
                    "{}: name it …_needs_NNNN",
                    migration.description
                );
            }
        }
        for (sql, contracts) in [
            (
                "-- drop table is not done\ncreate table a (b integer);",
                false,
            ),
            (
                "create trigger t after delete on a begin delete from b; end",
                false,
            ),
            ("alter table a drop column b", true),
            ("ALTER TABLE a\n rename b to c", true),
            ("drop  table a", true),
            ("alter table a alter b set not null", true),
            ("alter table a drop constraint b", true),
            ("alter table a alter column b type bigint", true),
            ("drop trigger if exists t on a", true),
            ("drop function f", true),
            ("drop view v", true),
            ("drop index i", false),
        ] {
            assert_eq!(is_contracting(sql), contracts, "{sql}");
        }
    }

    /// Returns whether SQL removes something that older servers may use. A heuristic, which catches accidents.
    fn is_contracting(sql: &str) -> bool {
        let lines = sql.lines();
        let code: Vec<&str> = lines
            .map(|line| line.split("--").next().unwrap_or_default())
            .collect();
        let code = code.join(" ").to_lowercase();
        let words: Vec<&str> = code.split_whitespace().collect();
        let code = words.join(" ");
        let marks = [
            "drop table",
            "drop column",
            "drop constraint",
            "drop function",
            "drop trigger",
            "drop view",
            " rename ",
            "set not null",
            " type ",
        ];
        marks.iter().any(|mark| code.contains(mark))
    }
}
