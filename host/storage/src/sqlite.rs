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

/// Where a SQLite database is, and how it is used.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The file. Its folder must exist.
    pub path: PathBuf,
    /// Whether the file is created when it is absent.
    pub may_create: bool,
    /// The most connections that read at the same time. Each has a cache that grows to 16 MiB.
    pub readers_max: u32,
    /// How long a request waits, both for a free connection and for a lock that another process holds.
    pub wait_max: Duration,
}

/// Opens the database, creates it when it is absent, readable by its owner alone, and brings its schema up to date.
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
    // With the first read the write-ahead log is there, and stays while the reading connection does.
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

/// Reads the file's schema once, if there is a file. Where there is none, a server must be able to create one.
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

/// Opens a database that is there and up to date, and changes nothing.
pub(crate) async fn open_to_read(options: &SqliteOptions) -> Result<Connections, DatabaseUnusable> {
    let reader = open_file(options)?;
    let database = options.path.display().to_string();
    require_current(&database, &reader, &migrations()).await?;
    Ok(reader)
}

/// Opens a file that is there, whatever schema it has, and changes nothing.
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
    // Whoever opens it so reads it once, from its beginning to its end.
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

/// How a file is opened that is only read.
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
/// The first connection gives a file its write-ahead log. SQLite does not wait by itself for another one that does the same
/// at that moment, as each would wait for the other: it says at once that the file is busy.
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

/// In one transaction, which waits for other processes that write.
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

/// Reads the least that there is to read.
const READ: &str = "pragma schema_version";

const BEGIN_MIGRATING: &str = "begin immediate";

/// How long it is until a busy file is tried again.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// How much of the file each connection keeps in memory: of a store of a million, the upper levels of all indexes.
const CACHE_KIBIBYTES_MAX: u32 = 16_384;

/// How much of it a connection keeps in memory that reads it once.
const PASSING_KIBIBYTES_MAX: u32 = 2_048;
