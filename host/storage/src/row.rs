//! A row, whichever engine it comes from.

use keywright_core::ports::RepositoryFailure;
use sqlx::{Decode, Postgres, Row as _, Sqlite, Type, postgres::PgRow, sqlite::SqliteRow};

/// A row of a result.
pub(crate) enum Row {
    Postgres(PgRow),
    Sqlite(SqliteRow),
}

/// What can be read from a column of either engine. There is one type of whole numbers that both have: `i64`.
pub(crate) trait Column:
    Type<Postgres> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + for<'r> Decode<'r, Sqlite>
{
}

impl<T> Column for T where
    T: Type<Postgres> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + for<'r> Decode<'r, Sqlite>
{
}

impl Row {
    /// The value of a column.
    pub(crate) fn column<T: Column>(&self, name: &str) -> Result<T, sqlx::Error> {
        match self {
            Self::Postgres(row) => row.try_get(name),
            Self::Sqlite(row) => row.try_get(name),
        }
    }
}

/// Reads a column by its name; what can't be read is an inconsistency that names table and column.
macro_rules! column {
    ($row:expr, $table:literal, $name:literal) => {
        $row.column($name).map_err(|_| {
            keywright_core::ports::RepositoryFailure::Inconsistent(concat!($table, ".", $name))
        })
    };
}
pub(crate) use column;

/// A number that is small wherever the schema's rules hold.
pub(crate) fn small(number: i64, place: &'static str) -> Result<u32, RepositoryFailure> {
    u32::try_from(number).map_err(|_| RepositoryFailure::Inconsistent(place))
}

/// What the database counted, which is never below zero.
pub(crate) fn count(counted: i64) -> u64 {
    u64::try_from(counted).unwrap_or_default()
}
