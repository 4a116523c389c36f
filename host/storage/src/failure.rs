//! What the database's errors mean to the domain.

use keywright_core::ports::RepositoryFailure;

/// The result codes of SQLite after which it may answer later: busy, locked, out of memory, read-only, I/O error, disk full,
/// can't open, locking protocol.
const SQLITE_UNAVAILABLE: [i32; 8] = [5, 6, 7, 8, 10, 13, 14, 15];

/// An extended result code of SQLite has the primary one in its lowest byte.
const SQLITE_PRIMARY_CODE_MASK: i32 = 0xff;

/// Translates an error of sqlx.
pub(crate) fn repository_failure(error: sqlx::Error) -> RepositoryFailure {
    if is_unavailable(&error) {
        RepositoryFailure::Unavailable(Box::new(error))
    } else {
        RepositoryFailure::Query(Box::new(error))
    }
}

fn is_unavailable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::PoolClosed
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => error
            .code()
            .and_then(|code| code.parse::<i32>().ok())
            .is_some_and(|code| SQLITE_UNAVAILABLE.contains(&(code & SQLITE_PRIMARY_CODE_MASK))),
        _ => false,
    }
}

/// Reads a column by its name; what can't be read is an inconsistency that names table and column.
macro_rules! column {
    ($row:expr, $table:literal, $name:literal) => {
        sqlx::Row::try_get($row, $name).map_err(|_| {
            keywright_core::ports::RepositoryFailure::Inconsistent(concat!($table, ".", $name))
        })
    };
}
pub(crate) use column;

/// What the database counted, which is never below zero.
pub(crate) fn count(counted: i64) -> u64 {
    u64::try_from(counted).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_that_times_out_may_answer_later_and_a_wrong_query_never_will() {
        assert!(matches!(
            repository_failure(sqlx::Error::PoolTimedOut),
            RepositoryFailure::Unavailable(_)
        ));
        assert!(matches!(
            repository_failure(sqlx::Error::ColumnNotFound("a".to_owned())),
            RepositoryFailure::Query(_)
        ));
    }
}
