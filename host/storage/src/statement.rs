//! A statement with its parameters, for whichever engine runs it.

use sqlx::{Database, Encode, SqlSafeStr, SqlStr, Type, database::HasStatementCache, query::Query};
use uuid::Uuid;

/// A statement with its parameters.
#[derive(Clone)]
pub(crate) struct Statement {
    sql: SqlStr,
    parameters: Vec<Parameter>,
    is_persistent: bool,
}

/// A statement without parameters so far.
pub(crate) fn statement(sql: impl SqlSafeStr) -> Statement {
    Statement {
        sql: sql.into_sql_str(),
        parameters: Vec::new(),
        is_persistent: true,
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

    /// The same for PostgreSQL, of whose texts none has the character U+0000. No row can be found by such a text: it becomes
    /// null, to which nothing is equal, and which a column that must not be null refuses.
    pub(crate) fn for_postgres(mut self) -> Self {
        for parameter in &mut self.parameters {
            if matches!(parameter, Parameter::Text(Some(text)) if text.contains('\0')) {
                *parameter = Parameter::Text(None);
            }
        }
        self
    }

    /// The same in the words of sqlx.
    pub(crate) fn into_query<E>(self) -> Query<'static, E, E::Arguments>
    where
        E: Database + HasStatementCache,
        bool: for<'q> Encode<'q, E> + Type<E>,
        i64: for<'q> Encode<'q, E> + Type<E>,
        String: for<'q> Encode<'q, E> + Type<E>,
        Uuid: for<'q> Encode<'q, E> + Type<E>,
        Vec<u8>: for<'q> Encode<'q, E> + Type<E>,
        Option<bool>: for<'q> Encode<'q, E>,
        Option<i64>: for<'q> Encode<'q, E>,
        Option<String>: for<'q> Encode<'q, E>,
        Option<Uuid>: for<'q> Encode<'q, E>,
        Option<Vec<u8>>: for<'q> Encode<'q, E>,
        E::Arguments: sqlx::IntoArguments<E>,
    {
        let query = sqlx::query(self.sql).persistent(self.is_persistent);
        let parameters = self.parameters.into_iter();
        parameters.fold(query, |query, parameter| match parameter {
            Parameter::Boolean(value) => query.bind(value),
            Parameter::Bytes(value) => query.bind(value),
            Parameter::Integer(value) => query.bind(value),
            Parameter::Text(value) => query.bind(value),
            Parameter::Uuid(value) => query.bind(value),
        })
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
