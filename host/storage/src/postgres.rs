//! Opening a database on a PostgreSQL server.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use keywright_core::Secret;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, PgConnection,
    error::BoxDynError,
    migrate::Migrator,
    postgres::{PgConnectOptions, PgSslMode},
};

use crate::{
    connections::{
        self, Connections, PostgresConnections, PostgresTarget, ServerHealth, Writer, milliseconds,
        within,
    },
    error::{DatabaseOpenError, SqlxError},
    migrations::{
        AppliedMigration, SchemaVersionError, begin_with, check_compatible, files, require_current,
        statements, within_transaction,
    },
};

/// The location of a database on a PostgreSQL server, and how to use it.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user@host:port/database`, without a password. `sslmode` has the meaning of libpq. Without it, and unless the
    /// server is on a local socket, the server's certificate must be trusted and valid for its name.
    pub url: String,
    /// The user's password.
    pub password: Option<Secret>,
    /// The PEM certificates of the CAs that are trusted to sign the server's certificate. Defaults to public CAs. With them,
    /// `sslmode=require` means `verify-ca`, as in libpq, and modes without verification are refused.
    pub root_certificate: Option<PathBuf>,
    /// The maximum number of connections that read.
    pub readers_max: u32,
    /// The maximum number of connections that write.
    pub writers_max: u32,
    /// How long a request waits: for a free connection, for a statement, and for retries of a transaction after conflicts.
    pub wait_max: Duration,
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PostgresOptions")
    }
}

/// Opens the database and migrates its schema. Only one of several concurrent servers migrates it.
pub(crate) async fn open(
    options: &PostgresOptions,
) -> Result<(Writer, Connections), DatabaseOpenError> {
    let connection = connect_options(options)?;
    let database = display_name(&connection);
    migrate(&database, &connection, options.wait_max).await?;
    let server_health = ServerHealth::default();
    let pool = async |connections_max| {
        let target = PostgresTarget {
            options: Box::new(connection.clone()),
            wait_max: options.wait_max,
            server_health: server_health.clone(),
        };
        PostgresConnections::open(target, connections_max, options.wait_max)
            .await
            .map_err(|source| not_reached(&database, source))
    };
    let writer = Writer::on_connections(pool(options.writers_max).await?, options.wait_max);
    let reader = pool(options.readers_max).await?.reading();
    Ok((writer, Connections::Postgres(reader)))
}

/// Opens a database with a current schema, without changing it.
pub(crate) async fn open_to_read(
    options: &PostgresOptions,
) -> Result<Connections, DatabaseOpenError> {
    let connection = connect_options(options)?;
    let database = display_name(&connection);
    let target = PostgresTarget {
        options: Box::new(connection),
        wait_max: options.wait_max,
        server_health: ServerHealth::default(),
    };
    let reader = PostgresConnections::open(target, options.readers_max, options.wait_max).await;
    let reader = reader.map_err(|source| not_reached(&database, source))?;
    let reader = Connections::Postgres(reader.reading());
    require_current(&database, &reader, &migrations()).await?;
    Ok(reader)
}

pub(crate) fn check(options: &PostgresOptions) -> Result<(), DatabaseOpenError> {
    connect_options(options).map(drop)
}

/// Connects once, and refuses the schema of another program.
pub(crate) async fn reach(options: &PostgresOptions) -> Result<(), DatabaseOpenError> {
    let connection = connect_options(options)?;
    let database = display_name(&connection);
    let mut connection = connect(&database, &connection, options.wait_max).await?;
    let checked = within(options.wait_max, require_own(&mut connection)).await;
    checked.map_err(|cause| DatabaseOpenError::not_migrated(&database, cause))?;
    let closed = connection.close().await;
    closed.map_err(|source| not_reached(&database, source))
}

/// Refuses the schema of another program, a schema that hides the tables of an earlier start, and a new database whose encoding lacks
/// characters.
async fn require_own(connection: &mut PgConnection) -> Result<(), BoxDynError> {
    let other = sqlx::query_scalar(statements::POSTGRES_OTHER_SCHEMA);
    if let Some(schema) = other.fetch_optional(&mut *connection).await? {
        return Err(SchemaVersionError::OtherSchema(schema).into());
    }
    let encoding = sqlx::query_scalar(statements::POSTGRES_OTHER_ENCODING);
    if let Some(encoding) = encoding.fetch_optional(&mut *connection).await? {
        return Err(SchemaVersionError::OtherEncoding(encoding).into());
    }
    let found = sqlx::query(statements::POSTGRES_OTHER_PROGRAM);
    match found.fetch_optional(connection).await? {
        Some(_) => Err(SchemaVersionError::OtherProgram.into()),
        None => Ok(()),
    }
}

fn connect_options(options: &PostgresOptions) -> Result<PgConnectOptions, DatabaseOpenError> {
    if has_password(&options.url) {
        return Err(DatabaseOpenError::PasswordInUrl);
    }
    let malformed = DatabaseOpenError::UrlMalformed;
    if !has_scheme(&options.url) {
        return Err(malformed("must start with postgres://".into()));
    }
    // The parameters of a fragment would have no effect.
    if options.url.contains('#') {
        return Err(malformed("must not contain #".into()));
    }
    // sqlx would ignore the parameter and log its value, which may be a password.
    if let Some((name, _)) = parameters(&options.url).find(|(name, _)| !is_parameter(name)) {
        return Err(malformed(format!("unknown parameter {name}").into()));
    }
    let is_unknown = |mode: &str| mode.parse::<PgSslMode>().is_err();
    if has_value(&options.url, &SSL_MODE, is_unknown) {
        return Err(malformed(
            "sslmode must be disable, allow, prefer, require, verify-ca or verify-full".into(),
        ));
    }
    let connection =
        PgConnectOptions::from_str(&options.url).map_err(|error| malformed(url_cause(error)))?;
    let mut connection = connection
        .application_name(APPLICATION_NAME)
        // Poolers reject this parameter unless configured otherwise, and no column has a floating-point type.
        .extra_float_digits(None)
        .disable_statement_logging();
    let is_local = connection.get_socket().is_some() || connection.get_host().starts_with('/');
    let mode = if has_parameter(&options.url, &SSL_MODE) {
        let has_trusted_cas = options.root_certificate.is_some()
            || has_parameter(&options.url, &["sslrootcert", "ssl-root-cert", "ssl-ca"]);
        required_mode(connection.get_ssl_mode(), has_trusted_cas)?
    } else if is_local {
        PgSslMode::Disable
    } else {
        PgSslMode::VerifyFull
    };
    connection = connection.ssl_mode(mode);
    if let Some(password) = &options.password {
        connection = connection.password(password.expose());
    }
    if let Some(file) = &options.root_certificate {
        connection = connection.ssl_root_cert(file);
    }
    Ok(connection)
}

/// Returns whether a URL has a scheme of PostgreSQL, which sqlx does not check.
fn has_scheme(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, _)| {
        SCHEMES
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known))
    })
}

/// Returns the cause of a malformed URL, without the errors of sqlx around it.
fn url_cause(error: sqlx::Error) -> BoxDynError {
    match error {
        sqlx::Error::Configuration(cause) => match cause.downcast() {
            Ok(inner) => url_cause(*inner),
            Err(cause) => cause,
        },
        error => Box::new(error),
    }
}

/// Returns the mode to use instead of the URL's, so that configured CAs take effect.
fn required_mode(mode: PgSslMode, has_trusted_cas: bool) -> Result<PgSslMode, DatabaseOpenError> {
    match mode {
        mode if !has_trusted_cas => Ok(mode),
        PgSslMode::Require => Ok(PgSslMode::VerifyCa),
        PgSslMode::VerifyCa | PgSslMode::VerifyFull => Ok(mode),
        PgSslMode::Disable => Err(DatabaseOpenError::CertificateNotVerified("disable")),
        PgSslMode::Allow => Err(DatabaseOpenError::CertificateNotVerified("allow")),
        PgSslMode::Prefer => Err(DatabaseOpenError::CertificateNotVerified("prefer")),
    }
}

/// Returns whether a URL contains a password, in its authority or as a parameter. An unencoded `/`, `?` or `#` in a password
/// ends the authority and leaves an `@` after it.
fn has_password(url: &str) -> bool {
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    user.is_some_and(|user| user.contains(':'))
        || behind.contains('@')
        || has_parameter(url, &["password"])
}

fn has_parameter(url: &str, names: &[&str]) -> bool {
    has_value(url, names, |_| true)
}

/// Returns whether a URL has one of the parameters with a value that the condition accepts.
fn has_value(url: &str, names: &[&str], accepts: impl Fn(&str) -> bool) -> bool {
    parameters(url).any(|(name, value)| names.contains(&name.as_ref()) && accepts(&value))
}

fn parameters(url: &str) -> form_urlencoded::Parse<'_> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    form_urlencoded::parse(query.as_bytes())
}

/// Returns whether sqlx knows a parameter of a URL.
fn is_parameter(name: &str) -> bool {
    PARAMETERS.contains(&name) || (name.starts_with("options[") && name.ends_with(']'))
}

async fn migrate(
    database: &str,
    options: &PgConnectOptions,
    wait_max: Duration,
) -> Result<(), DatabaseOpenError> {
    let mut connection = connect(database, options, wait_max).await?;
    let not_migrated = |cause| DatabaseOpenError::not_migrated(database, cause);
    // Migrations have no time limit. So a schema that needs none must be recognized without them.
    let is_migrated = within(wait_max, is_migrated(&mut connection)).await;
    if !is_migrated.map_err(not_migrated)? {
        let migrated = migrate_locked(&mut connection, wait_max).await;
        migrated.map_err(not_migrated)?;
    }
    let closed = connection.close().await;
    closed.map_err(|source| not_reached(database, source))
}

/// Returns whether the schema has all migrations of this server.
///
/// # Errors
/// If the schema belongs to another program, or is too new for this server.
async fn is_migrated(connection: &mut PgConnection) -> Result<bool, BoxDynError> {
    require_own(connection).await?;
    let table = sqlx::query(statements::POSTGRES_TABLES);
    if table.fetch_optional(&mut *connection).await?.is_none() {
        return Ok(false);
    }
    let applied: Vec<AppliedMigration> = sqlx::query_as(statements::APPLIED)
        .fetch_all(connection)
        .await?;
    let migrations = migrations();
    check_compatible(&migrations, &applied)?;
    Ok(begin_with(&applied, &migrations))
}

/// Migrates in one transaction, so that the migrations are atomic and the lock ends with it even if the server dies or a pooler
/// assigns connections by transaction.
async fn migrate_locked(
    connection: &mut PgConnection,
    wait_max: Duration,
) -> Result<(), BoxDynError> {
    let migrations = migrations();
    let mut transaction = connection.begin_with(BEGIN_MIGRATING).await?;
    sqlx::raw_sql(TIME_LIMITS)
        .execute(&mut *transaction)
        .await?;
    let locking = sqlx::query(LOCK_SCHEMA).execute(&mut *transaction);
    let locked = tokio::time::timeout(LOCK_WAIT_MAX, locking).await;
    locked.map_err(|_| SchemaVersionError::ChangedByOther(LOCK_WAIT_MAX.as_secs()))??;
    require_own(&mut transaction).await?;
    // The requests of other servers wait behind a migration that waits for a table.
    let limit = format!("set local lock_timeout = {}", milliseconds(wait_max));
    sqlx::raw_sql(AssertSqlSafe(limit))
        .execute(&mut *transaction)
        .await?;
    migrations.run(&mut *transaction).await?;
    let applied: Vec<AppliedMigration> = sqlx::query_as(statements::APPLIED)
        .fetch_all(&mut *transaction)
        .await?;
    check_compatible(&migrations, &applied)?;
    Ok(transaction.commit().await?)
}

async fn connect(
    database: &str,
    options: &PgConnectOptions,
    wait_max: Duration,
) -> Result<PgConnection, DatabaseOpenError> {
    let connected = within(wait_max, connections::connect(options, wait_max)).await;
    connected.map_err(|source| not_reached(database, source))
}

fn not_reached(database: &str, source: sqlx::Error) -> DatabaseOpenError {
    let database = database.to_owned();
    let has_responded = matches!(
        source,
        sqlx::Error::Configuration(_) | sqlx::Error::Database(_)
    );
    let source = Box::new(SqlxError(source));
    if has_responded {
        DatabaseOpenError::ConnectionRefused { database, source }
    } else {
        DatabaseOpenError::ServerNotReached { database, source }
    }
}

/// Returns the names of the database and its server, for messages.
fn display_name(options: &PgConnectOptions) -> String {
    let name = options
        .get_database()
        .unwrap_or_else(|| options.get_username());
    let server = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    format!("{name} on {server}")
}

/// The parameters of a URL that set the TLS mode.
const SSL_MODE: [&str; 2] = ["sslmode", "ssl-mode"];

/// The parameters of a URL that sqlx reads, except `password`, which is refused with another message.
const PARAMETERS: [&str; 17] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "port",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    "ssl-root-cert",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "user",
];

/// The schemes of a URL, as in libpq.
const SCHEMES: [&str; 2] = ["postgres", "postgresql"];

pub(crate) fn migrations() -> Migrator {
    within_transaction(files!("postgres"))
}

/// Statements after the lock see changes that were committed before it.
const BEGIN_MIGRATING: &str = "begin isolation level read committed";

/// Releases the lock of a server that has died: a running server pauses only briefly between statements. Defaults of the role or the
/// database must not limit the wait for the lock, nor a migration.
const TIME_LIMITS: &str = "set local idle_in_transaction_session_timeout = '10s';
    set local lock_timeout = 0; set local statement_timeout = 0";

/// An arbitrary number, the same for all servers.
const LOCK_SCHEMA: &str = "select pg_advisory_xact_lock(4920571836402817)";

/// How long to wait while another server migrates the schema.
const LOCK_WAIT_MAX: Duration = Duration::from_mins(5);

/// The name of the connections in PostgreSQL's views and logs.
const APPLICATION_NAME: &str = "keywright";

#[cfg(test)]
mod tests {
    use super::*;

    fn options(url: &str) -> PostgresOptions {
        PostgresOptions {
            url: url.to_owned(),
            password: Some(Secret::new("hunter2".to_owned())),
            root_certificate: None,
            readers_max: 1,
            writers_max: 1,
            wait_max: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_url_with_a_password_is_refused_without_repeating_it() {
        for url in [
            "postgres://keywright:hunter3@db/keywright",
            "postgres://keywright:@db",
            "postgres://db/keywright?user=a&password=hunter3",
            "postgres://db/keywright?pass%77ord=hunter3",
            "postgres://keywright:12/hunter3@db/keywright",
            "postgres://keywright:12?hunter3@db/keywright",
            "postgres://keywright:12#hunter3@db/keywright",
            "postgres://keywright@db/keywright?sslmode=disable#hunter3@db",
        ] {
            let refused = connect_options(&options(url)).unwrap_err();
            assert!(matches!(refused, DatabaseOpenError::PasswordInUrl), "{url}");
            assert!(!format!("{refused:?} {refused}").contains("hunter"));
        }
    }

    #[test]
    fn certificates_are_verified_unless_the_url_disables_it() {
        for (url, mode) in [
            ("postgres://keywright@db:5433/keywright", "VerifyFull"),
            ("postgres://db/keywright?application_name=x", "VerifyFull"),
            ("postgres://db/keywright?sslmode=verify-ca", "VerifyCa"),
            ("postgres://db/keywright?sslmode=disable", "Disable"),
            ("postgres:///keywright?host=/run/postgresql", "Disable"),
            ("postgres://%2Frun%2Fpostgresql/keywright", "Disable"),
        ] {
            let connection = connect_options(&options(url)).unwrap();
            assert_eq!(format!("{:?}", connection.get_ssl_mode()), mode, "{url}");
        }
    }

    #[test]
    fn with_trusted_cas_a_url_without_verification_is_refused() {
        for (parameters, mode) in [
            ("", Some("VerifyFull")),
            ("?sslmode=verify-full", Some("VerifyFull")),
            ("?sslmode=verify-ca", Some("VerifyCa")),
            ("?sslmode=require", Some("VerifyCa")),
            ("?ssl-mode=require", Some("VerifyCa")),
            ("?ssl%6dode=prefer", None),
            ("?sslmode=allow", None),
            ("?sslmode=disable", None),
        ] {
            let url = format!("postgres://db/keywright{parameters}");
            let by_option = PostgresOptions {
                root_certificate: Some(PathBuf::from("ca.pem")),
                ..options(&url)
            };
            let separator = if parameters.is_empty() { '?' } else { '&' };
            let by_url = options(&format!("{url}{separator}sslrootcert=ca.pem"));
            for options in [by_option, by_url] {
                let outcome = connect_options(&options);
                let found = outcome.as_ref().ok();
                let found = found.map(|connection| format!("{:?}", connection.get_ssl_mode()));
                assert_eq!(found.as_deref(), mode, "{}", options.url);
                let is_refused =
                    matches!(outcome, Err(DatabaseOpenError::CertificateNotVerified(_)));
                assert_eq!(is_refused, mode.is_none(), "{}", options.url);
            }
        }
        let local = PostgresOptions {
            root_certificate: Some(PathBuf::from("ca.pem")),
            ..options("postgres:///keywright?host=/run/postgresql")
        };
        assert!(connect_options(&local).is_ok());
    }

    #[test]
    fn options_never_show_the_password() {
        let shown = format!("{:?}", options("postgres://keywright@db"));
        assert!(!shown.contains("hunter2"));
    }

    #[test]
    fn a_url_of_another_kind_is_refused() {
        for (url, cause) in [
            ("not a url", "must start with postgres://"),
            ("mysql://db/keywright", "must start with postgres://"),
            ("postgres://db:port/keywright", "invalid port number"),
            (
                "postgres://db?sslmode=no",
                "sslmode must be disable, allow, prefer, require, verify-ca or verify-full",
            ),
            ("postgres://db?passwd=hunter2", "unknown parameter passwd"),
            (
                "postgres://db?options[search_path=a",
                "unknown parameter options[search_path",
            ),
        ] {
            let refused = connect_options(&options(url)).unwrap_err();
            let DatabaseOpenError::UrlMalformed(source) = refused else {
                panic!("{url}: {refused}");
            };
            assert_eq!(source.to_string(), cause, "{url}");
        }
    }
}
