//! Opening a SQLite database.

use std::{
    fs::OpenOptions,
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use keywright_core::ports::Identifiers;
use sqlx::{
    ConnectOptions,
    migrate::Migrator,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

use crate::{
    SqliteCredentialRepository, SqliteEncryptionKeyRepository, SqlitePermissionRepository,
    connections::{Connections, PoolOccupancy},
};

/// A SQLite database that is open and up to date.
#[derive(Clone)]
pub struct SqliteDatabase {
    pools: Pools,
    identifiers: Arc<dyn Identifiers>,
}

/// Where a database is, and how it is used.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The file. It is created when it is absent; its folder must exist.
    pub path: PathBuf,
    /// The most connections that read at the same time. Each has a thread and a cache of 2 MiB.
    pub readers_max: u32,
    /// How long a request waits, both for a free connection and for a lock that another process holds.
    pub wait_max: Duration,
}

/// How many connections to a database there are at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseOccupancy {
    /// Those that read.
    pub readers: PoolOccupancy,
    /// The one that writes.
    pub writer: PoolOccupancy,
}

/// Why a database can't be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseUnusable {
    /// The file can't be created.
    #[error("the database file {} can't be created", .path.display())]
    FileNotCreated {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file can't be opened as a database.
    #[error("the database file {} can't be opened", .path.display())]
    FileNotOpened {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The schema can't be brought up to date, or is newer than this server.
    #[error("the schema of the database {} can't be brought up to date", .path.display())]
    SchemaNotMigrated {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl SqliteDatabase {
    /// Opens the database, creates it when it is absent, readable by its owner alone, and brings its schema up to date.
    ///
    /// `identifiers` gives new credentials their ids.
    ///
    /// # Errors
    /// When the file can't be used, or its schema can't be brought up to date.
    pub async fn open(
        options: &SqliteOptions,
        identifiers: Arc<dyn Identifiers>,
    ) -> Result<Self, DatabaseUnusable> {
        let path = &options.path;
        create_private(path).map_err(|source| DatabaseUnusable::FileNotCreated {
            path: path.clone(),
            source,
        })?;
        let pools =
            Pools::open(options)
                .await
                .map_err(|source| DatabaseUnusable::FileNotOpened {
                    path: path.clone(),
                    source: Box::new(source),
                })?;
        migrate(&pools.writer)
            .await
            .map_err(|source| DatabaseUnusable::SchemaNotMigrated {
                path: path.clone(),
                source,
            })?;
        Ok(Self { pools, identifiers })
    }

    /// The credentials in it.
    #[must_use]
    pub fn credentials(&self) -> SqliteCredentialRepository {
        SqliteCredentialRepository::new(self.pools.clone(), Arc::clone(&self.identifiers))
    }

    /// The records of its encryption keys.
    #[must_use]
    pub fn encryption_keys(&self) -> SqliteEncryptionKeyRepository {
        SqliteEncryptionKeyRepository::new(self.pools.clone())
    }

    /// The permissions in it.
    #[must_use]
    pub fn permissions(&self) -> SqlitePermissionRepository {
        SqlitePermissionRepository::new(self.pools.clone(), Arc::clone(&self.identifiers))
    }

    /// How many connections there are at this moment: those that read, and the one that writes.
    #[must_use]
    pub fn occupancy(&self) -> DatabaseOccupancy {
        DatabaseOccupancy {
            readers: self.pools.reader.occupancy(),
            writer: self.pools.writer.occupancy(),
        }
    }

    #[cfg(test)]
    pub(crate) fn pools(&self) -> &Pools {
        &self.pools
    }

    /// Waits for what is running, and closes the file.
    pub async fn close(&self) {
        self.pools.reader.close().await;
        self.pools.writer.close().await;
    }
}

/// The one connection that writes, and those that read.
#[derive(Clone)]
pub(crate) struct Pools {
    pub(crate) writer: Connections,
    pub(crate) reader: Connections,
}

impl Pools {
    async fn open(options: &SqliteOptions) -> Result<Self, sqlx::Error> {
        let connection = SqliteConnectOptions::new()
            .filename(&options.path)
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
        Ok(Self {
            writer: Connections::open(writer, 1, options.wait_max).await?,
            reader: Connections::open(
                connection.read_only(true),
                options.readers_max,
                options.wait_max,
            )
            .await?,
        })
    }
}

async fn migrate(writer: &Connections) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut connection = writer.lend().await?;
    let migrated = MIGRATIONS.run(connection.unsettled()).await;
    connection.settled(Ok(()))?;
    Ok(migrated?)
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
