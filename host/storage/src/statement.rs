//! SQL statements with their parameters, and the rows of their results, for either engine.

use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};
use keywright_core::ports::RepositoryError;
use rusqlite::{
    ToSql,
    types::{FromSql, ToSqlOutput, Value, ValueRef},
};
use sqlx::{
    AssertSqlSafe, Decode, Postgres, Row as _, Type,
    postgres::{PgArguments, PgRow},
    query::Query,
};
use uuid::Uuid;

/// A statement with its parameters.
#[derive(Clone)]
pub(crate) struct Statement {
    pub(crate) text: Text,
    parameters: Vec<Parameter>,
    is_short: bool,
}

#[derive(Clone)]
pub(crate) enum Text {
    /// A constant text. Connections cache its prepared statement.
    Constant(&'static str),
    /// A text built for one use. Its prepared statement is not cached, because many different texts exist.
    Built(Arc<str>),
}

/// Returns a statement without parameters.
pub(crate) fn statement(sql: &'static str) -> Statement {
    Statement::of(Text::Constant(sql))
}

/// Like [`statement`], for a text that is built for one use. To make SQL injection impossible, it may only contain constants and
/// placeholders.
pub(crate) fn built_statement(sql: String) -> Statement {
    Statement::of(Text::Built(sql.into()))
}

/// A statement that ends with a variable number of parameters of one kind. Their number is rounded up to a power of two, so
/// that few texts exist and connections keep them prepared. Surplus parameters are null, which equals nothing.
pub(crate) struct StatementOfMany {
    /// Builds the text for a number of parameters.
    text: fn(usize) -> String,
    texts: [OnceLock<String>; TEXTS_CACHED_MAX],
}

impl StatementOfMany {
    pub(crate) const fn new(text: fn(usize) -> String) -> Self {
        Self {
            text,
            texts: [const { OnceLock::new() }; TEXTS_CACHED_MAX],
        }
    }

    /// Returns the text for a number of parameters.
    #[cfg(test)]
    pub(crate) fn text(&self, count: usize) -> String {
        (self.text)(count)
    }

    /// Returns the statement with these parameters.
    pub(crate) fn bind<'a>(
        &'static self,
        fixed: impl IntoIterator<Item = Parameter>,
        many: impl ExactSizeIterator<Item = &'a str>,
    ) -> Statement {
        let (mut statement, count) = self.with_placeholders(many.len());
        let nulls = count - many.len();
        let parameters = fixed.into_iter().chain(many.map(Parameter::from));
        let nulls = std::iter::repeat_n(Parameter::Text(None), nulls);
        statement.parameters.extend(parameters.chain(nulls));
        statement
    }

    /// Returns the statement before its parameters are bound, and the number of its placeholders, which is at least `count`.
    pub(crate) fn with_placeholders(&'static self, count: usize) -> (Statement, usize) {
        let count = count.next_power_of_two();
        let cached = self.texts.get(count.trailing_zeros() as usize);
        let statement = match cached {
            Some(text) => statement(text.get_or_init(|| (self.text)(count))),
            None => built_statement((self.text)(count)),
        };
        (statement, count)
    }
}

/// Returns `count` placeholders, numbered from `first`.
pub(crate) fn placeholders(first: usize, count: usize) -> String {
    let placeholders: Vec<String> = (first..first + count)
        .map(|number| format!("${number}"))
        .collect();
    placeholders.join(", ")
}

/// The maximum number of cached texts of a [`StatementOfMany`]: the texts for 1, 2, 4, … 512 parameters.
const TEXTS_CACHED_MAX: usize = 10;

/// A parameter. A null also has a type, because PostgreSQL requires one.
#[derive(Clone)]
pub(crate) enum Parameter {
    Boolean(Option<bool>),
    Bytes(Option<Vec<u8>>),
    Integer(Option<i64>),
    Text(Option<String>),
    Uuid(Option<Uuid>),
}

impl Statement {
    fn of(text: Text) -> Self {
        Self {
            text,
            parameters: Vec::new(),
            is_short: false,
        }
    }

    /// Binds the next parameter.
    pub(crate) fn bind(mut self, parameter: impl Into<Parameter>) -> Self {
        self.parameters.push(parameter.into());
        self
    }

    /// Marks a point read: a statement that reads only a few rows, by an index. On SQLite, it runs in place, on the caller's
    /// thread. All other reads are long reads, which use only a part of the connections.
    pub(crate) fn short(self) -> Self {
        Self {
            is_short: true,
            ..self
        }
    }

    pub(crate) fn is_short(&self) -> bool {
        self.is_short
    }

    /// Returns the statement as a query of sqlx for PostgreSQL. Texts with U+0000 are bound as null, because PostgreSQL can't
    /// store them: null equals no stored value either, and a not-null column rejects it.
    pub(crate) fn query(&self) -> Query<'_, Postgres, PgArguments> {
        let query = match &self.text {
            Text::Constant(sql) => sqlx::query(*sql),
            Text::Built(sql) => sqlx::query(AssertSqlSafe(Arc::clone(sql))).persistent(false),
        };
        let parameters = self.parameters.iter();
        parameters.fold(query, |query, parameter| match parameter {
            Parameter::Boolean(value) => query.bind(value),
            Parameter::Bytes(value) => query.bind(value.as_deref()),
            Parameter::Integer(value) => query.bind(value),
            Parameter::Text(value) => {
                query.bind(value.as_deref().filter(|text| !text.contains('\0')))
            }
            Parameter::Uuid(value) => query.bind(value),
        })
    }

    /// Binds the parameters to a SQLite statement that was prepared from the [`numbered`] text.
    pub(crate) fn bind_to(&self, prepared: &mut rusqlite::Statement<'_>) -> rusqlite::Result<()> {
        let (given, expected) = (self.parameters.len(), prepared.parameter_count());
        if given != expected {
            return Err(rusqlite::Error::InvalidParameterCount(given, expected));
        }
        let mut numbered = (1..).zip(&self.parameters);
        numbered.try_for_each(|(number, parameter)| prepared.raw_bind_parameter(number, parameter))
    }
}

/// Returns the text for SQLite, with `?2` instead of `$2`. SQLite treats `$2` as a name: it searches all names for it, and
/// numbers names by their first use. `?2` is the second parameter. The texts contain no other dollar signs.
pub(crate) fn numbered(sql: &str) -> String {
    sql.replace('$', "?")
}

impl ToSql for Parameter {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Self::Boolean(Some(value)) => ValueRef::Integer(i64::from(*value)),
            Self::Bytes(Some(value)) => ValueRef::Blob(value),
            Self::Integer(Some(value)) => ValueRef::Integer(*value),
            Self::Text(Some(value)) => ValueRef::Text(value.as_bytes()),
            Self::Uuid(Some(value)) => ValueRef::Blob(value.as_bytes()),
            Self::Boolean(None)
            | Self::Bytes(None)
            | Self::Integer(None)
            | Self::Text(None)
            | Self::Uuid(None) => ValueRef::Null,
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

/// Converts a value, optional or not, to a parameter.
macro_rules! parameter_from {
    ($($kind:ident($($type:ty),+)),+ $(,)?) => {$($(
        impl From<Option<$type>> for Parameter {
            fn from(value: Option<$type>) -> Self {
                Self::$kind(value.map(Into::into))
            }
        }

        impl From<$type> for Parameter {
            fn from(value: $type) -> Self {
                Self::$kind(Some(value.into()))
            }
        }
    )+)+};
}

parameter_from!(
    Boolean(bool),
    Bytes(Vec<u8>, &[u8]),
    Integer(i64),
    Text(String, &str),
    Uuid(Uuid),
);

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
    /// Copies a row, so that it can be used after the statement moves on to the next row. Replaces malformed UTF-8 by characters that
    /// no credential's name contains, so that a damaged row does not fail a whole list.
    pub(crate) fn copy(row: &rusqlite::Row<'_>, names: Arc<[Box<str>]>) -> rusqlite::Result<Self> {
        let values = (0..names.len()).map(|position| match row.get_ref(position)? {
            ValueRef::Text(text) => Ok(String::from_utf8_lossy(text).into_owned().into()),
            value => Ok(value.try_into()?),
        });
        Ok(Self {
            values: values.collect::<rusqlite::Result<_>>()?,
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
        crate::statement::Columns::at($row, $position).map_err(|_| {
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
