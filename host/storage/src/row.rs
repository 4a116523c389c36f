//! Rows of query results, on either engine.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use keywright_core::ports::RepositoryError;
use rusqlite::types::{FromSql, Value, ValueRef};
use sqlx::{Decode, Postgres, Row as _, Type, postgres::PgRow};

/// A row of a query result.
pub(crate) enum Row {
    Postgres(PgRow),
    Sqlite(SqliteRow),
}

/// A copy of a row of a SQLite result.
pub(crate) struct SqliteRow {
    values: Vec<Value>,
    /// The names of the columns, shared by all rows of the result.
    names: Arc<[Box<str>]>,
}

/// A type that can be read from a column of either engine. `i64` is the only integer type that both engines support.
pub(crate) trait Column: Type<Postgres> + for<'r> Decode<'r, Postgres> + FromSql {}

impl<T> Column for T where T: Type<Postgres> + for<'r> Decode<'r, Postgres> + FromSql {}

/// Reads the columns of a row by position.
pub(crate) trait Columns {
    /// Returns the value of the column at this position, from 0.
    fn at<T: Column>(&self, position: usize) -> Result<T, sqlx::Error>;
}

/// A value that is decoded from the columns of a row by position. On SQLite, it is decoded from the current row of the running
/// statement, without a copy of the row.
pub(crate) trait Decoded: Sized + Send + 'static {
    fn decode(row: &impl Columns) -> Result<Self, RepositoryError>;
}

impl Row {
    /// Returns the value of the column with this name.
    pub(crate) fn column<T: Column>(&self, name: &str) -> Result<T, sqlx::Error> {
        match self {
            Self::Postgres(row) => row.try_get(name),
            Self::Sqlite(row) => row.at(row.position(name)?),
        }
    }
}

impl Columns for Row {
    fn at<T: Column>(&self, position: usize) -> Result<T, sqlx::Error> {
        match self {
            Self::Postgres(row) => row.try_get(position),
            Self::Sqlite(row) => row.at(position),
        }
    }
}

impl Columns for rusqlite::Row<'_> {
    fn at<T: Column>(&self, position: usize) -> Result<T, sqlx::Error> {
        let value = self.get(position);
        value.map_err(|error| sqlx::Error::Decode(error.into()))
    }
}

impl SqliteRow {
    /// Copies a row, so that it can be used after the statement moves on to the next row.
    pub(crate) fn copy(row: &rusqlite::Row<'_>, names: Arc<[Box<str>]>) -> rusqlite::Result<Self> {
        let values = (0..names.len()).map(|position| row.get::<_, Value>(position));
        Ok(Self {
            values: values.collect::<Result<_, _>>()?,
            names,
        })
    }

    fn position(&self, name: &str) -> Result<usize, sqlx::Error> {
        let mut names = self.names.iter();
        names
            .position(|one| one.as_ref() == name)
            .ok_or_else(|| sqlx::Error::ColumnNotFound(name.to_owned()))
    }

    fn at<T: FromSql>(&self, position: usize) -> Result<T, sqlx::Error> {
        let value = self.values.get(position);
        let value = value.ok_or(sqlx::Error::ColumnIndexOutOfBounds {
            index: position,
            len: self.values.len(),
        })?;
        T::column_result(ValueRef::from(value)).map_err(|error| sqlx::Error::Decode(error.into()))
    }
}

/// Reads a column by name. Fails with `RepositoryError::Inconsistent`, which names the table and column, if the value can't be
/// read.
macro_rules! column {
    ($row:expr, $table:literal, $name:literal) => {
        $row.column($name).map_err(|_| {
            keywright_core::ports::RepositoryError::Inconsistent(concat!($table, ".", $name))
        })
    };
}
pub(crate) use column;

/// Like [`column!`], by position, for statements that run on nearly every request.
macro_rules! column_at {
    ($row:expr, $position:expr, $table:literal, $name:literal) => {
        crate::row::Columns::at($row, $position).map_err(|_| {
            keywright_core::ports::RepositoryError::Inconsistent(concat!($table, ".", $name))
        })
    };
}
pub(crate) use column_at;

/// Converts a number that the schema limits to 32 bits.
pub(crate) fn small(number: i64, column: &'static str) -> Result<u32, RepositoryError> {
    u32::try_from(number).map_err(|_| RepositoryError::Inconsistent(column))
}

/// Converts milliseconds since the Unix epoch to a time.
pub(crate) fn time(
    milliseconds: i64,
    column: &'static str,
) -> Result<DateTime<Utc>, RepositoryError> {
    DateTime::from_timestamp_millis(milliseconds).ok_or(RepositoryError::Inconsistent(column))
}

/// Converts a count, which is never negative.
pub(crate) fn count(counted: i64) -> u64 {
    u64::try_from(counted).unwrap_or_default()
}
