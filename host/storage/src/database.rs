//! An open database with a current schema, on either engine.

use std::{io, path::PathBuf, sync::Arc};

use keywright_core::ports::Identifiers;

use crate::{
    SqlCheckRepository, SqlCredentialRepository, SqlEncryptionKeyRepository,
    SqlKeyRotationRepository, SqlLeases, SqlPermissionRepository, SqlRetentionClock,
    connections::{Connections, FileWatch, PoolOccupancy, Writer},
    credential::AppendBatches,
    postgres::{self, PostgresOptions},
    sqlite::{self, SqliteOptions},
};

/// An open database with a current schema.
#[derive(Clone)]
pub struct Database {
    pools: Pools,
    identifiers: Arc<dyn Identifiers>,
}

/// The location of a database and how to use it.
#[derive(Clone, Debug)]
pub enum DatabaseOptions {
    /// A database on a PostgreSQL server.
    Postgres(PostgresOptions),
    /// A SQLite file.
    Sqlite(SqliteOptions),
}

/// The current number of connections to a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseOccupancy {
    /// Connections that read.
    pub readers: PoolOccupancy,
    /// Connections that write. SQLite has one.
    pub writer: PoolOccupancy,
}

/// Why a database can't be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseUnusable {
    /// The file is absent, and is not created.
    #[error("there is no database at {}", .path.display())]
    FileAbsent {
        /// The file.
        path: PathBuf,
    },
    /// The file can't be created.
    #[error("the database file {} can't be created", .path.display())]
    FileNotCreated {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file is absent, and the options prohibit its creation.
    #[error(
        "there is no database at {}, and storage.file_creation_enabled is false; restore the database, or enable its \
         creation for the first start",
        .path.display()
    )]
    FileNotToBeCreated {
        /// The file.
        path: PathBuf,
    },
    /// The file is absent or empty, though it was created earlier.
    #[error(
        "the database {} is missing or empty, though a server has used it before; restore it, or delete {} to start with a new, \
         empty one",
        .path.display(),
        .marker.display()
    )]
    FileVanished {
        /// The file.
        path: PathBuf,
        /// The marker of its creation.
        marker: PathBuf,
    },
    /// The file is absent, but its write-ahead log exists.
    #[error(
        "the database {} is missing, though its write-ahead log {} exists; restore the database, or delete the log as well",
        .path.display(),
        .log.display()
    )]
    LogWithoutFile {
        /// The file.
        path: PathBuf,
        /// Its write-ahead log.
        log: PathBuf,
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
    /// The URL disables the verification of the server's certificate, though trusted CAs are configured.
    #[error(
        "the database's URL sets sslmode={0}, which does not verify the server's certificate, though trusted CAs are \
         configured; use verify-full or verify-ca"
    )]
    CertificateNotVerified(&'static str),
    /// The URL contains a password, which would appear in process lists, configurations and logs. Or it has an `@` after the
    /// server's name, which suggests a password with unencoded characters.
    #[error(
        "the database's URL must not contain a password, nor an @ after the server's name; encode the @ as %40"
    )]
    PasswordInUrl,
    /// No server has used the database, and it stays unchanged.
    #[error("the database {database} has no schema: no server has used it")]
    SchemaAbsent {
        /// The file, or the names of the database and its server.
        database: String,
    },
    /// The schema is not the one that this program's migrations create.
    #[error("the schema of the database {database} does not match this program, or is incomplete")]
    SchemaDiffers {
        /// The file, or the names of the database and its server.
        database: String,
    },
    /// A newer program created the schema.
    #[error("the schema of the database {database} is newer than this program")]
    SchemaNewer {
        /// The file, or the names of the database and its server.
        database: String,
    },
    /// The schema can't be read.
    #[error("the schema of the database {database} can't be read")]
    SchemaNotRead {
        /// The file, or the names of the database and its server.
        database: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An older program created the schema, and it stays unchanged.
    #[error(
        "the schema of the database {database} is older than this program; start a server of this version to migrate it"
    )]
    SchemaOlder {
        /// The file, or the names of the database and its server.
        database: String,
    },
    /// The schema can't be migrated, or is too new for this server.
    #[error("the schema of the database {database} can't be migrated")]
    SchemaNotMigrated {
        /// The file, or the names of the database and its server.
        database: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database server is unreachable, or refuses the connection.
    #[error("the database {database} can't be reached")]
    ServerNotReached {
        /// The names of the database and its server.
        database: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The URL is not that of a PostgreSQL database.
    #[error("the database's URL is malformed")]
    UrlMalformed {
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl DatabaseOptions {
    /// Validates the options without connecting.
    ///
    /// # Errors
    /// If the URL is malformed or contains a password.
    pub fn check(&self) -> Result<(), DatabaseUnusable> {
        match self {
            Self::Postgres(options) => postgres::check(options),
            Self::Sqlite(_) => Ok(()),
        }
    }
}

impl Database {
    /// Connects to a database once, without changing it. An absent file that may be created is accepted.
    ///
    /// # Errors
    /// If the database can't be reached or used.
    pub async fn reach(options: &DatabaseOptions) -> Result<(), DatabaseUnusable> {
        match options {
            DatabaseOptions::Postgres(options) => postgres::reach(options).await,
            DatabaseOptions::Sqlite(options) => sqlite::reach(options).await,
        }
    }

    /// Opens the database and migrates its schema. Creates an absent file, which only its owner may read.
    ///
    /// `identifiers` provides the ids of new credentials.
    ///
    /// # Errors
    /// If the database can't be reached or used, or its schema can't be migrated.
    pub async fn open(
        options: &DatabaseOptions,
        identifiers: Arc<dyn Identifiers>,
    ) -> Result<Self, DatabaseUnusable> {
        let pools = match options {
            DatabaseOptions::Postgres(options) => postgres::open(options).await?,
            DatabaseOptions::Sqlite(options) => sqlite::open(options).await?,
        };
        Ok(Self { pools, identifiers })
    }

    /// Opens an existing database read-only, and neither creates nor migrates it.
    ///
    /// `identifiers` is that of [`Database::open`]; it is not used.
    ///
    /// # Errors
    /// If the database is absent, can't be reached or used, or its schema is not that of this program.
    pub async fn open_to_read(
        options: &DatabaseOptions,
        identifiers: Arc<dyn Identifiers>,
    ) -> Result<Self, DatabaseUnusable> {
        let reader = match options {
            DatabaseOptions::Postgres(options) => postgres::open_to_read(options).await?,
            DatabaseOptions::Sqlite(options) => sqlite::open_to_read(options).await?,
        };
        let pools = Pools {
            writer: Writer::read_only(),
            reader,
            append_batches: None,
            watch: None,
        };
        Ok(Self { pools, identifiers })
    }

    /// Returns the repository of all records, for a check.
    #[must_use]
    pub fn check(&self) -> SqlCheckRepository {
        SqlCheckRepository::new(self.pools.reader.clone())
    }

    /// Returns the repository of credentials.
    #[must_use]
    pub fn credentials(&self) -> SqlCredentialRepository {
        SqlCredentialRepository::new(self.pools.clone(), Arc::clone(&self.identifiers))
    }

    /// Returns the repository of encryption-key records.
    #[must_use]
    pub fn encryption_keys(&self) -> SqlEncryptionKeyRepository {
        SqlEncryptionKeyRepository::new(self.pools.clone())
    }

    /// Returns the repository of versions for the rotation of encryption keys.
    #[must_use]
    pub fn key_rotation(&self) -> SqlKeyRotationRepository {
        SqlKeyRotationRepository::new(self.pools.clone())
    }

    /// Returns the leases that assign work to one of several servers.
    #[must_use]
    pub fn leases(&self) -> SqlLeases {
        SqlLeases::new(self.pools.clone())
    }

    /// Returns the repository of permissions.
    #[must_use]
    pub fn permissions(&self) -> SqlPermissionRepository {
        SqlPermissionRepository::new(self.pools.clone(), Arc::clone(&self.identifiers))
    }

    /// Returns retention's record of the clock.
    #[must_use]
    pub fn retention_clock(&self) -> SqlRetentionClock {
        SqlRetentionClock::new(self.pools.clone())
    }

    /// Returns the current number of connections that read and that write.
    #[must_use]
    pub fn occupancy(&self) -> DatabaseOccupancy {
        let writer = self.pools.writer.occupancy();
        let batches = self.pools.append_batches.as_ref();
        let queued = batches.map_or(0, AppendBatches::waiting);
        DatabaseOccupancy {
            readers: self.pools.reader.occupancy(),
            writer: PoolOccupancy {
                waiting: writer.waiting + queued,
                ..writer
            },
        }
    }

    /// Returns whether writes succeed: `false` from a failure of the disk until the next successful write.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        !self.pools.writer.is_failing()
    }

    /// Returns whether the paths of the database's files still name the files that were opened. Always `true` on PostgreSQL.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        let watch = self.pools.watch.as_ref();
        watch.is_none_or(|watch| watch.is_in_place())
    }

    /// Returns how often this server has retried transactions after conflicts. Always 0 on SQLite, which has one writer at a
    /// time.
    #[must_use]
    pub fn transactions_retried(&self) -> u64 {
        let retries = self.pools.reader.retries();
        retries + self.pools.writer.retries()
    }

    #[cfg(test)]
    pub(crate) fn pools(&self) -> &Pools {
        &self.pools
    }

    /// Waits for running statements, and closes the connections.
    pub async fn close(&self) {
        self.pools.reader.close().await;
        self.pools.writer.close().await;
    }
}

/// The writer and the connections that read.
#[derive(Clone)]
pub(crate) struct Pools {
    pub(crate) writer: Writer,
    pub(crate) reader: Connections,
    /// Adds versions in batches. `None` on SQLite, where all writes share commits.
    pub(crate) append_batches: Option<AppendBatches>,
    /// Checks that the path still names the database file. `None` on PostgreSQL.
    pub(crate) watch: Option<Arc<FileWatch>>,
}
