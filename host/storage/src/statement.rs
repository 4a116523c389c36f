//! A statement with its parameters, for whichever engine runs it.

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

/// A statement without parameters so far.
pub(crate) fn statement(sql: impl SqlSafeStr) -> Statement {
    Statement {
        sql: sql.into_sql_str(),
        parameters: Vec::new(),
        is_persistent: true,
        has_named_columns: true,
        is_short: false,
    }
}

/// A statement with any number of parameters of one kind, behind the others. Their number is rounded up to a power of two, so
/// that there are few texts, which stay prepared. The parameters that are too many are null, to which nothing is equal.
pub(crate) struct StatementOfMany {
    /// The text for a number of them.
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

    /// The text for a number of parameters.
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

/// How many texts of a statement with any number of parameters are kept: those for 1, 2, 4, … 256 of them.
const TEXTS_KEPT_MAX: usize = 9;

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

    /// It reads at most a few rows, by an index, so that SQLite runs it in place.
    pub(crate) fn short(self) -> Self {
        Self {
            is_short: true,
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

    pub(crate) fn is_short(&self) -> bool {
        self.is_short
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
