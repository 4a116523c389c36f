//! Opening a SQLite database.
//!
//! A file must not silently be created a second time. A marker, `<file>.created`, is next to each database. A server writes it
//! once the file has its schema. If the marker exists without the database, the database was moved or deleted, or its volume is
//! not mounted: creating an empty one would look like a loss of all data.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use sqlx::{
    ConnectOptions, Connection, SqliteConnection,
    error::BoxDynError,
    migrate::Migrator,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

use crate::{
    connections::{Connections, FileWatch, SqliteFile, SqliteReaders, SqliteSettings, Writer},
    error::{DatabaseOpenError, in_words, is_busy},
    migrations::{
        AppliedMigration, SchemaVersionError, check_compatible, files, require_current, statements,
        within_transaction,
    },
    statement::statement,
};

/// The location of a SQLite database, and how to use it.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The file. Its folder must exist.
    pub path: PathBuf,
    /// Whether a missing file is created.
    pub may_create: bool,
    /// The maximum number of connections that read. Each has a cache of up to 16 MiB.
    pub readers_max: u32,
    /// How long a request waits, both for a free connection and for a lock of another process.
    pub wait_max: Duration,
}

/// Opens the database and migrates its schema. Creates a missing file, which only its owner may read.
pub(crate) async fn open(
    options: &SqliteOptions,
) -> Result<(Writer, Connections, Arc<FileWatch>), DatabaseOpenError> {
    let path = &options.path;
    create_if_new(options)?;
    let not_opened = |source: sqlx::Error| not_opened(path, source);
    if is_incomplete(path) {
        roll_back(options).await.map_err(not_opened)?;
    }
    require_own(&SqliteOptions {
        path: path.canonicalize().unwrap_or_else(|_| path.clone()),
        ..options.clone()
    })
    .await?;
    let watch = FileWatch::begin(path).map_err(|error| not_opened(error.into()))?;
    migrate(options).await?;
    let file = SqliteFile::watched(writing(options), &watch);
    let writer = Writer::on_sqlite(file, options.wait_max).await;
    let writer = writer.map_err(not_opened)?;
    let file = SqliteFile::watched(read_only(options), &watch);
    let readers = SqliteReaders::open(file, options.readers_max, options.wait_max).await;
    let reader = readers.map(Connections::Sqlite).map_err(not_opened)?;
    // The first read creates the write-ahead log, which exists as long as the reading connection.
    let read = reader.fetch_all(statement(READ)).await;
    read.map_err(|source| self::not_opened(path, source))?;
    watch
        .watch_side_files()
        .and_then(|()| mark_as_created(path))
        .map_err(|error| not_opened(error.into()))?;
    watch.check().map_err(not_opened)?;
    Ok((writer, reader, watch))
}

/// Returns whether a process was killed while it created the database. The file then has at most one page, and a rollback journal.
/// Connections that only read can't roll it back, so SQLite refuses all their reads.
fn is_incomplete(path: &Path) -> bool {
    let is_new = |file: fs::Metadata| file.len() <= PAGE_BYTES;
    exists(&with_suffix(path, "-journal")) && fs::metadata(path).is_ok_and(is_new)
}

/// Rolls back the incomplete creation of a database.
async fn roll_back(options: &SqliteOptions) -> sqlx::Result<()> {
    let writing = SqliteConnectOptions::new()
        .filename(&options.path)
        .busy_timeout(options.wait_max)
        .disable_statement_logging();
    let mut connection = writing.connect().await?;
    sqlx::query(READ).execute(&mut connection).await?;
    connection.close().await
}

/// Reads the schema of the file once, or checks that a server can create a missing file.
pub(crate) async fn reach(options: &SqliteOptions) -> Result<(), DatabaseOpenError> {
    require_creatable(options)?;
    match require_own(options).await {
        Err(DatabaseOpenError::FileAbsent(_)) => Ok(()),
        Err(_) if is_incomplete(&options.path) => Ok(()),
        checked => checked,
    }
}

/// Refuses the database of another program, without changing it.
async fn require_own(options: &SqliteOptions) -> Result<(), DatabaseOpenError> {
    let path = &options.path;
    let reader = open_file(options).await?;
    let query = statement(statements::SQLITE_OTHER_PROGRAM);
    let found = reader.fetch_optional(query).await;
    reader.close().await;
    match found.map_err(|source| not_opened(path, source))? {
        Some(_) => Err(not_opened(path, SchemaVersionError::OtherProgram)),
        None => Ok(()),
    }
}

/// Opens an existing database with a current schema, without changing it.
pub(crate) async fn open_to_read(
    options: &SqliteOptions,
) -> Result<Connections, DatabaseOpenError> {
    let reader = open_file(options).await?;
    let database = options.path.display().to_string();
    require_current(&database, &reader, &migrations()).await?;
    Ok(reader)
}

/// Opens an existing file with any schema, without changing it. The path must not contain links: another user could change a link
/// before SQLite creates the write-ahead log and its index next to the file.
pub(crate) async fn open_file(options: &SqliteOptions) -> Result<Connections, DatabaseOpenError> {
    let path = &options.path;
    match fs::metadata(path) {
        Ok(found) if found.is_file() => {}
        // Opening a named pipe could block forever.
        Ok(_) => return Err(not_opened(path, "it is not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(DatabaseOpenError::FileAbsent(path.clone()));
        }
        Err(source) => return Err(not_opened(path, source)),
    }
    // Callers read the file only once, from beginning to end.
    let settings = SqliteSettings {
        cache_kibibytes_max: SINGLE_PASS_KIBIBYTES_MAX,
        follows_links: false,
        ..read_only(options)
    };
    let file = SqliteFile::unwatched(settings);
    let reader = SqliteReaders::open(file, options.readers_max, options.wait_max).await;
    reader
        .map(Connections::Sqlite)
        .map_err(|source| not_opened(path, source))
}

fn not_opened(path: &Path, source: impl Into<BoxDynError>) -> DatabaseOpenError {
    DatabaseOpenError::FileNotOpened {
        path: path.to_owned(),
        source: if path.is_dir() {
            "it is a folder".into()
        } else {
            in_words(source.into())
        },
    }
}

/// Returns settings for a file that is only read.
fn read_only(options: &SqliteOptions) -> SqliteSettings {
    SqliteSettings {
        is_read_only: true,
        ..writing(options)
    }
}

fn writing(options: &SqliteOptions) -> SqliteSettings {
    SqliteSettings {
        path: options.path.clone(),
        is_read_only: false,
        follows_links: true,
        wait_max: options.wait_max,
        cache_kibibytes_max: CACHE_KIBIBYTES_MAX,
    }
}

async fn migrate(options: &SqliteOptions) -> Result<(), DatabaseOpenError> {
    let path = &options.path;
    let not_opened = |source: sqlx::Error| not_opened(path, source);
    let migrating = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(options.wait_max)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("secure_delete", "on")
        .disable_statement_logging();
    let connection = connect_when_free(&migrating, options.wait_max).await;
    let mut connection = connection.map_err(not_opened)?;
    let migrated = migrate_locked(&mut connection).await;
    let database = path.display().to_string();
    migrated.map_err(|cause| DatabaseOpenError::not_migrated(&database, cause))?;
    connection.close().await.map_err(not_opened)
}

/// Connects. Retries while another process is connecting.
///
/// The first connection creates the write-ahead log of a file. If two connections create it at once, SQLite reports that the file
/// is busy instead of waiting, to avoid a deadlock.
async fn connect_when_free(
    options: &SqliteConnectOptions,
    wait_max: Duration,
) -> sqlx::Result<SqliteConnection> {
    let begun = Instant::now();
    loop {
        match options.connect().await {
            Err(error) if is_busy(&error) && begun.elapsed() < wait_max => {
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            connected => return connected,
        }
    }
}

/// Migrates in one transaction, which waits for other writing processes.
async fn migrate_locked(connection: &mut SqliteConnection) -> Result<(), BoxDynError> {
    let migrations = migrations();
    let mut transaction = connection.begin_with(BEGIN_MIGRATING).await?;
    migrations.run(&mut *transaction).await?;
    let applied: Vec<AppliedMigration> = sqlx::query_as(statements::APPLIED)
        .fetch_all(&mut *transaction)
        .await?;
    check_compatible(&migrations, &applied)?;
    Ok(transaction.commit().await?)
}

pub(crate) fn migrations() -> Migrator {
    within_transaction(files!("sqlite"))
}

/// Creates the file if it is absent and may be created. Only its owner may access it. SQLite gives its journals the same mode.
fn create_if_new(options: &SqliteOptions) -> Result<(), DatabaseOpenError> {
    require_creatable(options)?;
    let path = &options.path;
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE_PRIVATE)
        .open(path);
    match created {
        Ok(_) => {
            tracing::warn!(storage.file = %path.display(), "created a new and empty database");
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(source) => Err(DatabaseOpenError::FileNotCreated {
            path: path.clone(),
            source,
        }),
    }
}

/// Refuses an absent or empty file that must not be created.
fn require_creatable(options: &SqliteOptions) -> Result<(), DatabaseOpenError> {
    let path = &options.path;
    // Checked before the file: the marker is written last, so an empty file next to a marker has lost its content.
    let marker = marker(path);
    let was_created = exists(&marker);
    let has_content = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata.len() > 0,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let log = with_suffix(path, "-wal");
            if fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
                let path = path.clone();
                return Err(DatabaseOpenError::LogWithoutFile { path, log });
            }
            false
        }
        // Opening the file reports this error.
        Ok(_) | Err(_) => true,
    };
    if has_content {
        return Ok(());
    }
    let path = path.clone();
    if was_created {
        return Err(DatabaseOpenError::FileVanished { path, marker });
    }
    if !options.may_create {
        return Err(DatabaseOpenError::FileAbsent(path));
    }
    Ok(())
}

/// Writes the marker, unless it exists.
fn mark_as_created(path: &Path) -> io::Result<()> {
    let marker = marker(path);
    let mut marker_options = OpenOptions::new();
    marker_options.write(true).create_new(true);
    let mut file = match marker_options.mode(MODE_PRIVATE).open(&marker) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        opened => opened?,
    };
    file.write_all(MARKER.as_bytes())?;
    file.sync_all()?;
    sync_folder_of(&marker)
}

/// Flushes the folder of a file to disk. Otherwise, a new or renamed file may be missing after a power failure.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    let path = path.canonicalize()?;
    File::open(path.parent().unwrap_or(&path))?.sync_all()
}

pub(crate) fn marker(path: &Path) -> PathBuf {
    with_suffix(path, MARKER_SUFFIX)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Returns whether a file exists. Returns `true` if this can't be determined, so that no file is created by mistake.
fn exists(path: &Path) -> bool {
    path.try_exists().unwrap_or(true)
}

/// A minimal read.
const READ: &str = "pragma schema_version";

const BEGIN_MIGRATING: &str = "begin immediate";

/// The pause before a retry of connecting to a busy file.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// The size of a new database's pages, SQLite's default.
const PAGE_BYTES: u64 = 4_096;

/// The page cache of each connection. It holds the upper levels of all indexes of a store of a million versions.
const CACHE_KIBIBYTES_MAX: u32 = 16_384;

/// The page cache of a connection that reads each page once.
const SINGLE_PASS_KIBIBYTES_MAX: u32 = 2_048;

const MODE_PRIVATE: u32 = 0o600;

/// The suffix of a marker's name, after the name of the database.
pub(crate) const MARKER_SUFFIX: &str = ".created";

const MARKER: &str = "\
Keywright created the database next to this file.
While this file exists, a server refuses to start if the database is missing or empty.
To start with a new, empty database, delete this file.
";
