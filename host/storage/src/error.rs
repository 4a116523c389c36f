//! Why a database can't be used, and the mapping of database errors to domain errors.

use std::{error::Error, fmt, io, path::PathBuf};

use keywright_core::ports::RepositoryError;
use rustls::CertificateError;
use sqlx::{
    error::{BoxDynError, DatabaseError},
    migrate::MigrateError,
    postgres::PgDatabaseError,
};

/// The reason why a database can't be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum DatabaseOpenError {
    #[error(
        "there is no database at {}; correct storage.file, restore the database, or start a server with \
         storage.file_creation_enabled = true to create it",
        .0.display()
    )]
    FileAbsent(PathBuf),
    #[error("could not create the database file {}", .path.display())]
    FileNotCreated {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "the database {} is missing or empty, though a server has used it before; restore it, or delete {} to start with a new, \
         empty one",
        .path.display(),
        .marker.display()
    )]
    FileVanished {
        path: PathBuf,
        /// The marker file, which exists because a server created the database earlier.
        marker: PathBuf,
    },
    #[error(
        "the database {} is missing, though its write-ahead log {} exists; restore the database, or delete the log as well",
        .path.display(),
        .log.display()
    )]
    LogWithoutFile { path: PathBuf, log: PathBuf },
    #[error("could not open the database file {}", .path.display())]
    FileNotOpened {
        path: PathBuf,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    #[error(
        "storage.url: sslmode={0} does not verify the server's certificate, though trusted CAs are configured; use verify-full \
         or verify-ca"
    )]
    CertificateNotVerified(&'static str),
    /// The URL contains a password, which would appear in process lists, configuration files and logs, or an `@` after the
    /// server's name, which suggests a password with unencoded characters.
    #[error(
        "storage.url: must not contain a password, nor an @ after the host; set storage.password_file or \
         storage.password_environment, and encode @ as %40"
    )]
    PasswordInUrl,
    #[error(
        "the database {0} has no schema: no server has used it; correct the section storage, or start a server to create the schema"
    )]
    SchemaAbsent(String),
    #[error("the schema of the database {database} {difference}")]
    SchemaDiffers {
        /// The file, or the names of the database and its server.
        database: String,
        difference: &'static str,
    },
    #[error("could not read the schema of the database {database}")]
    SchemaNotRead {
        /// The file, or the names of the database and its server.
        database: String,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    #[error("could not migrate the schema of the database {database}")]
    SchemaNotMigrated {
        /// The file, or the names of the database and its server.
        database: String,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    #[error("could not reach the database {database}")]
    ServerNotReached {
        database: String,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    #[error("the database {database} refuses the connection")]
    ConnectionRefused {
        database: String,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    #[error("storage.url: {0}")]
    UrlMalformed(Box<dyn Error + Send + Sync>),
}

impl DatabaseOpenError {
    /// Creates the error for a schema that can't be migrated.
    pub(crate) fn not_migrated(database: &str, cause: BoxDynError) -> Self {
        let database = database.to_owned();
        let cause = match cause.downcast::<MigrateError>().map(|cause| *cause) {
            Ok(MigrateError::VersionMismatch(_) | MigrateError::Dirty(_)) => {
                return Self::SchemaDiffers {
                    database,
                    difference: SCHEMA_DIFFERS,
                };
            }
            Ok(MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _)) => {
                cause.into()
            }
            Ok(cause) => cause.into(),
            Err(cause) => cause,
        };
        let source = in_words(cause);
        let failed = source.downcast_ref::<SqlxError>();
        let failed = failed.and_then(|failed| failed.0.as_database_error());
        let source =
            match failed.filter(|failed| postgres_code(*failed) == Some(POSTGRES_PRIVILEGE)) {
                // The same code reports a policy that hides rows.
                Some(failed) if !failed.message().contains("row-level security") => {
                    format!("{}; grant the role CREATE on the schema", failed.message()).into()
                }
                _ => source,
            };
        Self::SchemaNotMigrated { database, source }
    }
}

/// The difference of a schema that was changed by something other than its migrations.
pub(crate) const SCHEMA_DIFFERS: &str =
    "does not match this program, or is incomplete; restore a backup";

/// An error of sqlx, in words for operators.
#[derive(Debug)]
pub(crate) struct SqlxError(pub(crate) sqlx::Error);

impl fmt::Display for SqlxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            sqlx::Error::Database(cause) => match sqlite_code(cause.as_ref()) {
                _ if postgres_code(cause.as_ref()) == Some(POSTGRES_PASSWORD) => {
                    write!(formatter, "{}; {CHECK_PASSWORD}", cause.message())
                }
                _ if postgres_code(cause.as_ref()) == Some(POSTGRES_LOCK) => formatter.write_str(
                    "another session has locked a table; end that session, or wait until it ends",
                ),
                _ if postgres_code(cause.as_ref()).is_some() => {
                    formatter.write_str(cause.message())
                }
                Some(SQLITE_BUSY | SQLITE_LOCKED) => {
                    formatter.write_str("another process is using it")
                }
                _ if cause.code().as_deref() == Some(SQLITE_READ_ONLY_ROLLBACK) => formatter.write_str(
                    "the journal next to it (-journal) has an incomplete change; start a server if the database is new, or move the journal away if the file is a restored backup",
                ),
                Some(SQLITE_INTERRUPTED) => formatter.write_str(NOT_IN_TIME),
                Some(SQLITE_CORRUPT) => formatter.write_str(
                    "it is damaged, its disk can't be read, or the log next to it (-wal) belongs to another file; move all its files away before you restore a backup",
                ),
                Some(SQLITE_NOT_A_DATABASE) => formatter.write_str("it is not a SQLite database"),
                _ => formatter.write_str(cause.message()),
            },
            sqlx::Error::Io(cause) => match (cause.kind(), cause.get_ref()) {
                (io::ErrorKind::TimedOut, None) => formatter.write_str(NOT_IN_TIME),
                (io::ErrorKind::UnexpectedEof, _) => {
                    formatter.write_str("the database server closed the connection")
                }
                (_, Some(inner)) => write_cause(inner, formatter),
                (_, None) => cause.fmt(formatter),
            },
            sqlx::Error::Tls(cause) => write_cause(cause.as_ref(), formatter),
            // sqlx adds the location in its code to its own messages.
            sqlx::Error::Protocol(cause) if cause.contains("(sqlx_") => {
                formatter.write_str("it does not respond as a PostgreSQL server")
            }
            sqlx::Error::Configuration(cause)
                if cause.to_string().contains("saslprep password") =>
            {
                let what =
                    "the password contains a character that is not allowed, such as a line break";
                write!(formatter, "{what}; {CHECK_PASSWORD}")
            }
            sqlx::Error::Configuration(cause) => cause.fmt(formatter),
            sqlx::Error::PoolTimedOut => formatter.write_str(
                "it did not respond, or no connection was free, within storage.wait_seconds_max",
            ),
            cause => cause.fmt(formatter),
        }
    }
}

impl Error for SqlxError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            sqlx::Error::Io(cause) => cause.source(),
            _ => None,
        }
    }
}

const NOT_IN_TIME: &str = "it did not respond in time (storage.wait_seconds_max)";
const CHECK_PASSWORD: &str = "check storage.password_file or storage.password_environment";

/// Converts the errors of sqlx and of queries to words for operators.
pub(crate) fn in_words(cause: BoxDynError) -> BoxDynError {
    let cause = match cause.downcast::<RepositoryError>().map(|cause| *cause) {
        Err(cause) | Ok(RepositoryError::Query(cause) | RepositoryError::Unavailable(cause)) => {
            cause
        }
        Ok(cause) => cause.into(),
    };
    match cause.downcast::<sqlx::Error>() {
        Ok(cause) => Box::new(SqlxError(*cause)),
        Err(cause) => cause,
    }
}

/// Writes a cause. Explains why a certificate of a database server is not accepted.
fn write_cause(cause: &(dyn Error + 'static), formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(rustls::Error::InvalidCertificate(refused)) = cause.downcast_ref() else {
        return write!(formatter, "{cause}");
    };
    match refused {
        CertificateError::UnknownIssuer => formatter.write_str(
            "its certificate is signed by a CA that is not trusted; set storage.root_certificate to the CA's certificate",
        ),
        CertificateError::NotValidForNameContext { expected, .. } => {
            write!(formatter, "its certificate does not name {}", expected.to_str())
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            formatter.write_str("its certificate has expired")
        }
        refused => write!(formatter, "its certificate is invalid: {refused}"),
    }
}

/// A unique index, as identified in each engine's errors.
pub(crate) struct UniqueIndex {
    /// The name of the index or of its constraint.
    pub(crate) postgres: &'static str,
    /// The table and the column, as `table.column`.
    pub(crate) sqlite: &'static str,
}

/// Converts an error of sqlx: to `Unavailable` if a retry may succeed later, otherwise to `Query`.
pub(crate) fn repository_failure(error: sqlx::Error) -> RepositoryError {
    if is_unavailable(&error) {
        RepositoryError::Unavailable(Box::new(SqlxError(error)))
    } else {
        RepositoryError::Query(Box::new(SqlxError(error)))
    }
}

/// Returns whether a retry may succeed later.
pub(crate) fn is_unavailable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::BeginFailed
        | sqlx::Error::Io(_)
        | sqlx::Error::PoolClosed
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::Protocol(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => match postgres_code(error.as_ref()) {
            Some(code) => is_unavailable_code(code),
            None => {
                sqlite_code(error.as_ref()).is_some_and(|code| SQLITE_UNAVAILABLE.contains(&code))
            }
        },
        _ => false,
    }
}

/// Returns whether a retry may succeed later, after an error of PostgreSQL with this code.
fn is_unavailable_code(code: &str) -> bool {
    POSTGRES_UNAVAILABLE
        .iter()
        .any(|unavailable| code.starts_with(unavailable))
}

/// Returns whether another connection holds a lock on a SQLite file.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    let error = error.as_database_error();
    error.and_then(sqlite_code) == Some(SQLITE_BUSY)
}

/// Returns whether a read was interrupted, at its time limit or because the client disconnected.
pub(crate) fn is_interrupted(error: &sqlx::Error) -> bool {
    let error = error.as_database_error();
    error.and_then(sqlite_code) == Some(SQLITE_INTERRUPTED)
}

/// Returns whether a write failed because the disk is full, read-only or broken.
pub(crate) fn is_storage_medium_failure(failure: &RepositoryError) -> bool {
    let (RepositoryError::Query(cause) | RepositoryError::Unavailable(cause)) = failure else {
        return false;
    };
    let mut cause: Option<&(dyn Error + 'static)> = Some(cause.as_ref());
    while let Some(error) = cause {
        let database = error.downcast_ref::<SqlxError>();
        if let Some(error) = database.and_then(|error| error.0.as_database_error()) {
            return match postgres_code(error) {
                Some(code) => POSTGRES_MEDIUM
                    .iter()
                    .any(|medium| code.starts_with(medium)),
                None => sqlite_code(error).is_some_and(|code| SQLITE_MEDIUM.contains(&code)),
            };
        }
        cause = error.source();
    }
    false
}

/// Returns whether PostgreSQL refused a write because the server or the connection is read-only.
pub(crate) fn is_read_only(error: &sqlx::Error) -> bool {
    let error = error.as_database_error();
    let code = error.and_then(postgres_code);
    code.is_some_and(|code| code == POSTGRES_READ_ONLY || code == POSTGRES_UNSUPPORTED)
}

/// Returns whether a transaction failed because it conflicted with another one. The whole transaction must then be retried.
pub(crate) fn is_conflict(failure: &RepositoryError) -> bool {
    let is_behind =
        matches!(failure, RepositoryError::Unavailable(cause) if cause.is::<SequenceError>());
    is_behind
        || database_error(failure).is_some_and(|error| {
            postgres_code(error).is_some_and(|code| POSTGRES_CONFLICTS.contains(&code))
                || is_refused_by(error, &CREDENTIAL_NAME)
                || is_refused_by(error, &TRANSITIONAL_VERSION)
        })
}

/// Returns whether a statement of PostgreSQL waited too long for a lock.
pub(crate) fn is_lock_timeout(failure: &RepositoryError) -> bool {
    database_error(failure).and_then(postgres_code) == Some(POSTGRES_LOCK)
}

/// Returns whether a row violated a unique index.
pub(crate) fn is_refused(failure: &RepositoryError, index: &UniqueIndex) -> bool {
    database_error(failure).is_some_and(|error| is_refused_by(error, index))
}

/// Returns the error for a new version whose sequence number is not greater than the numbers of its credential's other versions.
/// A retry gets another number and may succeed.
pub(crate) fn sequence_behind() -> RepositoryError {
    RepositoryError::Unavailable(Box::new(SequenceError))
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the database assigned a new version a sequence number that is not greater than the numbers of earlier versions; disable \
     the caching of sequence numbers per connection"
)]
struct SequenceError;

/// The index of folded names. A violation means that another writer inserted the name first, which can only happen on
/// PostgreSQL: SQLite has one writer at a time.
const CREDENTIAL_NAME: UniqueIndex = UniqueIndex {
    postgres: "credential_name_folded_key",
    sqlite: "credential.name_folded",
};

/// The index of transitional versions. A violation means that another writer added a transitional version or moved the
/// transitional flag first. Adding a second transitional version is refused; moving the flag is retried.
pub(crate) const TRANSITIONAL_VERSION: UniqueIndex = UniqueIndex {
    postgres: "credential_version_transitional",
    sqlite: "credential_version.credential_sequence",
};

/// The codes of PostgreSQL, or classes of codes, after which a retry may succeed.
const POSTGRES_UNAVAILABLE: [&str; 11] = [
    "08", // connection exception
    POSTGRES_UNSUPPORTED,
    POSTGRES_READ_ONLY,
    "25P03", // idle-in-transaction timeout
    "25P04", // transaction timeout
    "28",    // invalid authorization: the password may be changing
    "40",    // transaction rollback
    "53",    // insufficient resources
    POSTGRES_LOCK,
    "57", // server starting or shutting down, statement timeout
    "58", // system error
];

/// The server became a standby.
const POSTGRES_READ_ONLY: &str = "25006";

/// Feature not supported: a standby refuses serializable transactions with it.
const POSTGRES_UNSUPPORTED: &str = "0A000";

/// Lock not available in time.
const POSTGRES_LOCK: &str = "55P03";

const POSTGRES_PASSWORD: &str = "28P01";

const POSTGRES_PRIVILEGE: &str = "42501";

/// The codes of PostgreSQL for conflicts: serialization failure, deadlock, lock not available in time.
const POSTGRES_CONFLICTS: [&str; 3] = ["40001", "40P01", POSTGRES_LOCK];

/// The result codes of SQLite after which a retry may succeed: busy, locked, out of memory, read-only, interrupted, I/O error, disk
/// full, can't open, locking protocol.
const SQLITE_UNAVAILABLE: [i32; 9] = [
    SQLITE_BUSY,
    SQLITE_LOCKED,
    7,
    8,
    SQLITE_INTERRUPTED,
    10,
    13,
    14,
    15,
];

const SQLITE_BUSY: i32 = 5;
const SQLITE_LOCKED: i32 = 6;
/// A read exceeded its time limit.
const SQLITE_INTERRUPTED: i32 = 9;
const SQLITE_READ_ONLY_ROLLBACK: &str = "776";
const SQLITE_CORRUPT: i32 = 11;
const SQLITE_NOT_A_DATABASE: i32 = 26;

/// The result codes of SQLite for a failing disk: read-only, I/O error, disk full, can't open.
const SQLITE_MEDIUM: [i32; 4] = [8, 10, 13, 14];

/// The codes of PostgreSQL for a failing disk: disk full, and the class of system errors.
const POSTGRES_MEDIUM: [&str; 2] = ["53100", "58"];

/// The lowest byte of an extended result code of SQLite is the primary code.
const SQLITE_PRIMARY_CODE_MASK: i32 = 0xff;

fn database_error(failure: &RepositoryError) -> Option<&dyn DatabaseError> {
    match failure {
        RepositoryError::Query(cause) | RepositoryError::Unavailable(cause) => {
            cause.downcast_ref::<SqlxError>()?.0.as_database_error()
        }
        RepositoryError::Inconsistent(_) | RepositoryError::KeyRecordMalformed(_) => None,
    }
}

fn is_refused_by(error: &dyn DatabaseError, index: &UniqueIndex) -> bool {
    error.is_unique_violation()
        && match error.try_downcast_ref::<PgDatabaseError>() {
            Some(error) => error.constraint() == Some(index.postgres),
            None => error.message().ends_with(index.sqlite),
        }
}

fn postgres_code(error: &dyn DatabaseError) -> Option<&str> {
    let error = error.try_downcast_ref::<PgDatabaseError>()?;
    Some(error.code())
}

fn sqlite_code(error: &dyn DatabaseError) -> Option<i32> {
    let code: i32 = error.code()?.parse().ok()?;
    Some(code & SQLITE_PRIMARY_CODE_MASK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postgresql_codes_show_whether_a_retry_may_succeed() {
        for code in [
            "08006", "25006", "25P03", "25P04", "28P01", "40001", "40P01", "53300", "55P03",
            "57014", "57P01", "57P03", "57P05", "58030",
        ] {
            assert!(is_unavailable_code(code), "{code}");
        }
        for code in [
            "22P02", "23505", "25001", "25P02", "42601", "42P01", "55000", "XX001",
        ] {
            assert!(!is_unavailable_code(code), "{code}");
        }
    }

    #[test]
    fn pool_timeouts_are_retryable_and_wrong_queries_are_not() {
        assert!(matches!(
            repository_failure(sqlx::Error::PoolTimedOut),
            RepositoryError::Unavailable(_)
        ));
        assert!(matches!(
            repository_failure(sqlx::Error::ColumnNotFound("a".to_owned())),
            RepositoryError::Query(_)
        ));
    }
}
