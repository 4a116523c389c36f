//! Opening a SQLite database.

pub(crate) mod creation;

use std::{
    path::PathBuf,
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
    database::{DatabaseUnusable, Pools},
    failure::is_busy,
    migrations::{AppliedMigration, files, judge, require_current, statements, within_transaction},
    statement::statement,
};

/// The location of a SQLite database, and how to use it.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The file. Its folder must exist.
    pub path: PathBuf,
    /// Whether an absent file is created.
    pub may_create: bool,
    /// The maximum number of connections that read. Each has a cache of up to 16 MiB.
    pub readers_max: u32,
    /// How long a request waits, both for a free connection and for a lock of another process.
    pub wait_max: Duration,
}

/// Opens the database and migrates its schema. Creates an absent file, which only its owner may read.
pub(crate) async fn open(options: &SqliteOptions) -> Result<Pools, DatabaseUnusable> {
    let path = &options.path;
    creation::create_if_new(options)?;
    let not_opened = |source: sqlx::Error| DatabaseUnusable::FileNotOpened {
        path: path.clone(),
        source: Box::new(source),
    };
    let watch = FileWatch::begin(path).map_err(|error| not_opened(error.into()))?;
    migrate(options).await?;
    let readers = SqliteFile::watched(read_only(options), &watch);
    let pools = Pools {
        writer: Writer::on_sqlite(
            SqliteFile::watched(writing(options), &watch),
            options.wait_max,
        )
        .await
        .map_err(not_opened)?,
        reader: SqliteReaders::open(readers, options.readers_max, options.wait_max)
            .map(Connections::Sqlite)
            .map_err(not_opened)?,
        append_batches: None,
        watch: Some(Arc::clone(&watch)),
    };
    // The first read creates the write-ahead log, which exists as long as the reading connection.
    let read = pools.reader.fetch_all(statement(READ)).await;
    read.map_err(|source| DatabaseUnusable::FileNotOpened {
        path: path.clone(),
        source: Box::new(source),
    })?;
    watch
        .watch_side_files()
        .and_then(|()| creation::mark_as_created(path))
        .map_err(|error| not_opened(error.into()))?;
    watch.check().map_err(not_opened)?;
    Ok(pools)
}

/// Reads the schema of the file once, or checks that a server can create an absent file.
pub(crate) async fn reach(options: &SqliteOptions) -> Result<(), DatabaseUnusable> {
    creation::require_creatable(options)?;
    match open_file(options) {
        Ok(reader) => {
            let read = reader.fetch_all(statement(READ)).await;
            reader.close().await;
            read.map(drop)
                .map_err(|source| DatabaseUnusable::FileNotOpened {
                    path: options.path.clone(),
                    source: Box::new(source),
                })
        }
        Err(DatabaseUnusable::FileAbsent { .. }) => Ok(()),
        Err(unusable) => Err(unusable),
    }
}

/// Opens an existing database with a current schema, without changing it.
pub(crate) async fn open_to_read(options: &SqliteOptions) -> Result<Connections, DatabaseUnusable> {
    let reader = open_file(options)?;
    let database = options.path.display().to_string();
    require_current(&database, &reader, &migrations()).await?;
    Ok(reader)
}

/// Opens an existing file with any schema, without changing it.
pub(crate) fn open_file(options: &SqliteOptions) -> Result<Connections, DatabaseUnusable> {
    let path = &options.path;
    let is_there = path.try_exists();
    let is_there = is_there.map_err(|source| DatabaseUnusable::FileNotOpened {
        path: path.clone(),
        source: Box::new(source),
    })?;
    if !is_there {
        return Err(DatabaseUnusable::FileAbsent { path: path.clone() });
    }
    // Callers read the file only once, from beginning to end.
    let settings = SqliteSettings {
        cache_kibibytes_max: PASSING_KIBIBYTES_MAX,
        ..read_only(options)
    };
    let file = SqliteFile::unwatched(settings);
    let reader = SqliteReaders::open(file, options.readers_max, options.wait_max);
    reader
        .map(Connections::Sqlite)
        .map_err(|source| DatabaseUnusable::FileNotOpened {
            path: path.clone(),
            source: Box::new(source),
        })
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
        wait_max: options.wait_max,
        cache_kibibytes_max: CACHE_KIBIBYTES_MAX,
    }
}

async fn migrate(options: &SqliteOptions) -> Result<(), DatabaseUnusable> {
    let path = &options.path;
    let not_opened = |source: sqlx::Error| DatabaseUnusable::FileNotOpened {
        path: path.clone(),
        source: Box::new(source),
    };
    let migrating = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(options.wait_max)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("secure_delete", "on")
        .disable_statement_logging();
    let connection = connect_in_turn(&migrating, options.wait_max).await;
    let mut connection = connection.map_err(not_opened)?;
    let migrated = migrate_in_turn(&mut connection).await;
    migrated.map_err(|source| DatabaseUnusable::SchemaNotMigrated {
        database: path.display().to_string(),
        source,
    })?;
    connection.close().await.map_err(not_opened)
}

/// Connects, and waits while another process does.
///
/// The first connection creates the write-ahead log of a file. If two connections do so at once, SQLite does not wait, to avoid
/// a deadlock, but reports that the file is busy.
async fn connect_in_turn(
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

/// Runs in one transaction, which waits for other writing processes.
async fn migrate_in_turn(connection: &mut SqliteConnection) -> Result<(), BoxDynError> {
    let migrations = migrations();
    let mut transaction = connection.begin_with(BEGIN_MIGRATING).await?;
    migrations.run(&mut *transaction).await?;
    let applied: Vec<AppliedMigration> = sqlx::query_as(statements::APPLIED)
        .fetch_all(&mut *transaction)
        .await?;
    judge(&migrations, &applied)?;
    Ok(transaction.commit().await?)
}

pub(crate) fn migrations() -> Migrator {
    within_transaction(files!("sqlite"))
}

/// A minimal read.
const READ: &str = "pragma schema_version";

const BEGIN_MIGRATING: &str = "begin immediate";

/// The pause before connecting to a busy file is retried.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// The page cache of each connection. It holds the upper levels of all indexes of a store of a million versions.
const CACHE_KIBIBYTES_MAX: u32 = 16_384;

/// The page cache of a connection that reads each page once.
const PASSING_KIBIBYTES_MAX: u32 = 2_048;
