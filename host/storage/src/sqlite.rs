//! Opening a SQLite database.

use std::{
    fs::OpenOptions,
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use sqlx::{
    ConnectOptions, Connection,
    migrate::Migrator,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

use crate::{
    connections::{Connections, Target},
    database::{DatabaseUnusable, Pools},
};

/// Where a SQLite database is, and how it is used.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The file. It is created when it is absent; its folder must exist.
    pub path: PathBuf,
    /// The most connections that read at the same time. Each has a thread and a cache of 2 MiB.
    pub readers_max: u32,
    /// How long a request waits, both for a free connection and for a lock that another process holds.
    pub wait_max: Duration,
}

/// Opens the database, creates it when it is absent, readable by its owner alone, and brings its schema up to date.
pub(crate) async fn open(options: &SqliteOptions) -> Result<Pools, DatabaseUnusable> {
    let path = &options.path;
    create_private(path).map_err(|source| DatabaseUnusable::FileNotCreated {
        path: path.clone(),
        source,
    })?;
    let not_opened = |source: sqlx::Error| DatabaseUnusable::FileNotOpened {
        path: path.clone(),
        source: Box::new(source),
    };
    let connection = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(options.wait_max)
        .pragma("temp_store", "memory")
        .disable_statement_logging();
    let writer = connection
        .clone()
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .pragma("secure_delete", "on")
        .pragma("journal_size_limit", JOURNAL_BYTES_KEPT_MAX.to_string());
    migrate(path, &writer).await?;
    let pool = async |options: SqliteConnectOptions, connections_max, wait_max| {
        Connections::open(Target::Sqlite(Box::new(options)), connections_max, wait_max)
            .await
            .map_err(not_opened)
    };
    Ok(Pools {
        writer: pool(writer, 1, options.wait_max).await?,
        reader: pool(
            connection.read_only(true),
            options.readers_max,
            options.wait_max,
        )
        .await?,
    })
}

/// Reads the file's schema once, if there is a file.
pub(crate) async fn reach(options: &SqliteOptions) -> Result<(), DatabaseUnusable> {
    let path = &options.path;
    if !path.exists() {
        return Ok(());
    }
    let not_opened = |source: sqlx::Error| DatabaseUnusable::FileNotOpened {
        path: path.clone(),
        source: Box::new(source),
    };
    let connection = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .busy_timeout(options.wait_max)
        .disable_statement_logging();
    let mut connection = connection.connect().await.map_err(not_opened)?;
    let read = sqlx::query("pragma schema_version").execute(&mut connection);
    read.await.map_err(not_opened)?;
    connection.close().await.map_err(not_opened)
}

async fn migrate(path: &Path, writer: &SqliteConnectOptions) -> Result<(), DatabaseUnusable> {
    let not_opened = |source: sqlx::Error| DatabaseUnusable::FileNotOpened {
        path: path.to_owned(),
        source: Box::new(source),
    };
    let mut connection = writer.connect().await.map_err(not_opened)?;
    let migrated = MIGRATIONS.run(&mut connection).await;
    migrated.map_err(|source| DatabaseUnusable::SchemaNotMigrated {
        database: path.display().to_string(),
        source: Box::new(source),
    })?;
    connection.close().await.map_err(not_opened)
}

/// Creates the file, if it is absent, with access for its owner alone. SQLite gives its journals the same mode.
fn create_private(path: &Path) -> io::Result<()> {
    match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE_PRIVATE)
        .open(path)
    {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created.map(drop),
    }
}

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/sqlite");

const MODE_PRIVATE: u32 = 0o600;

/// How much of the write-ahead log is kept on disk after a checkpoint, in bytes.
const JOURNAL_BYTES_KEPT_MAX: u32 = 64 * 1024 * 1024;
