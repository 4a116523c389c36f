//! A statement with its parameters, for whichever engine runs it.

use rusqlite::{
    ToSql,
    types::{ToSqlOutput, ValueRef},
};
use sqlx::{Postgres, SqlSafeStr, SqlStr, postgres::PgArguments, query::Query};
use uuid::Uuid;

/// A statement with its parameters.
#[derive(Clone)]
pub(crate) struct Statement {
    sql: SqlStr,
    parameters: Vec<Parameter>,
    is_persistent: bool,
    has_named_columns: bool,
}

/// A statement without parameters so far.
pub(crate) fn statement(sql: impl SqlSafeStr) -> Statement {
    Statement {
        sql: sql.into_sql_str(),
        parameters: Vec::new(),
        is_persistent: true,
        has_named_columns: true,
    }
}

/// A parameter. One that is null has a type, too: PostgreSQL asks for it.
#[derive(Clone)]
pub(crate) enum Parameter {
    Boolean(Option<bool>),
    Bytes(Option<Vec<u8>>),
    Integer(Option<i64>),
    Text(Option<String>),
    Uuid(Option<Uuid>),
}

impl Statement {
    /// The value of the next parameter.
    pub(crate) fn bind(mut self, parameter: impl Into<Parameter>) -> Self {
        self.parameters.push(parameter.into());
        self
    }

    /// Keeps it out of the cache of prepared statements.
    pub(crate) fn not_persistent(self) -> Self {
        Self {
            is_persistent: false,
            ..self
        }
    }

    /// Its columns are read by position alone.
    pub(crate) fn by_position(self) -> Self {
        Self {
            has_named_columns: false,
            ..self
        }
    }

    pub(crate) fn sql(&self) -> &str {
        self.sql.as_str()
    }

    pub(crate) fn is_persistent(&self) -> bool {
        self.is_persistent
    }

    pub(crate) fn has_named_columns(&self) -> bool {
        self.has_named_columns
    }

    /// The same in the words of sqlx, for PostgreSQL, of whose texts none has the character U+0000. No row can be found by such
    /// a text: it becomes null, to which nothing is equal, and which a column that must not be null refuses.
    pub(crate) fn into_query(self) -> Query<'static, Postgres, PgArguments> {
        let query = sqlx::query(self.sql).persistent(self.is_persistent);
        let parameters = self.parameters.into_iter();
        parameters.fold(query, |query, parameter| match parameter {
            Parameter::Boolean(value) => query.bind(value),
            Parameter::Bytes(value) => query.bind(value),
            Parameter::Integer(value) => query.bind(value),
            Parameter::Text(value) => query.bind(value.filter(|text| !text.contains('\0'))),
            Parameter::Uuid(value) => query.bind(value),
        })
    }

    /// Binds the parameters for SQLite. It numbers `$2` and `$1` in the order in which they first appear, so each is bound by the
    /// number in its name.
    pub(crate) fn bind_to(&self, prepared: &mut rusqlite::Statement<'_>) -> rusqlite::Result<()> {
        for index in 1..=prepared.parameter_count() {
            let name = prepared.parameter_name(index).unwrap_or_default();
            let number = name
                .strip_prefix('$')
                .and_then(|number| number.parse().ok());
            let place = number.and_then(|number: usize| number.checked_sub(1));
            let parameter = place.and_then(|place| self.parameters.get(place));
            let parameter =
                parameter.ok_or_else(|| rusqlite::Error::InvalidParameterName(name.to_owned()))?;
            prepared.raw_bind_parameter(index, parameter)?;
        }
        Ok(())
    }
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

/// A parameter from a value that may be null, and from one that is not.
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
