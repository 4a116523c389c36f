//! A statement with its parameters, for either engine.

use std::sync::OnceLock;

use rusqlite::{
    ToSql,
    types::{ToSqlOutput, ValueRef},
};
use sqlx::{AssertSqlSafe, Postgres, SqlSafeStr, SqlStr, postgres::PgArguments, query::Query};
use uuid::Uuid;

/// A statement with its parameters.
#[derive(Clone)]
pub(crate) struct Statement {
    sql: SqlStr,
    parameters: Vec<Parameter>,
    is_persistent: bool,
    has_named_columns: bool,
    is_short: bool,
}

/// Returns a statement without parameters.
pub(crate) fn statement(sql: impl SqlSafeStr) -> Statement {
    Statement {
        sql: sql.into_sql_str(),
        parameters: Vec::new(),
        is_persistent: true,
        has_named_columns: true,
        is_short: false,
    }
}

/// A statement with a variable number of parameters of one kind, after the others. Their number is rounded up to a power of
/// two, so that few texts exist and stay prepared. Surplus parameters are null, which equals nothing.
pub(crate) struct StatementOfMany {
    /// Returns the text for a number of parameters.
    text: fn(usize) -> String,
    texts: [OnceLock<String>; TEXTS_KEPT_MAX],
}

impl StatementOfMany {
    pub(crate) const fn new(text: fn(usize) -> String) -> Self {
        Self {
            text,
            texts: [const { OnceLock::new() }; TEXTS_KEPT_MAX],
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
        let places = many.len().next_power_of_two();
        let nulls = places - many.len();
        let kept = self.texts.get(places.trailing_zeros() as usize);
        let statement = match kept {
            Some(text) => statement(text.get_or_init(|| (self.text)(places)).as_str()),
            None => statement(AssertSqlSafe((self.text)(places))).not_persistent(),
        };
        let parameters = fixed.into_iter().chain(many.map(Parameter::from));
        let nulls = std::iter::repeat_n(Parameter::Text(None), nulls);
        Statement {
            parameters: parameters.chain(nulls).collect(),
            ..statement
        }
    }
}

/// The number of cached texts of a statement with a variable number of parameters: those for 1, 2, 4, … 256.
const TEXTS_KEPT_MAX: usize = 9;

/// A parameter. A null has a type too, because PostgreSQL requires one.
#[derive(Clone)]
pub(crate) enum Parameter {
    Boolean(Option<bool>),
    Bytes(Option<Vec<u8>>),
    Integer(Option<i64>),
    Text(Option<String>),
    Uuid(Option<Uuid>),
}

impl Statement {
    /// Binds the next parameter.
    pub(crate) fn bind(mut self, parameter: impl Into<Parameter>) -> Self {
        self.parameters.push(parameter.into());
        self
    }

    /// Keeps the statement out of the cache of prepared statements.
    pub(crate) fn not_persistent(self) -> Self {
        Self {
            is_persistent: false,
            ..self
        }
    }

    /// Marks a point read: a statement that reads only a few rows, by an index. SQLite runs it in place. Other reads are long
    /// and use only a part of the connections.
    pub(crate) fn short(self) -> Self {
        Self {
            is_short: true,
            ..self
        }
    }

    /// Marks a statement whose columns are read only by position.
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

    pub(crate) fn is_short(&self) -> bool {
        self.is_short
    }

    pub(crate) fn has_named_columns(&self) -> bool {
        self.has_named_columns
    }

    /// Returns the statement as a query of sqlx, for PostgreSQL, whose texts can't contain U+0000. No stored value equals such
    /// a text, so it becomes null: it equals nothing, and a not-null column rejects it.
    pub(crate) fn query(&self) -> Query<'_, Postgres, PgArguments> {
        let query = sqlx::query(self.sql.clone()).persistent(self.is_persistent);
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

    /// Binds the parameters for SQLite, by the number in their name: SQLite itself numbers `$2` and `$1` in the order of their
    /// first use.
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
