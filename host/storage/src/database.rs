//! A database that is open and up to date, whichever engine it has.

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

/// A database that is open and up to date.
#[derive(Clone)]
pub struct Database {
    pools: Pools,
    identifiers: Arc<dyn Identifiers>,
}

/// Where a database is, and how it is used.
#[derive(Clone, Debug)]
pub enum DatabaseOptions {
    /// On a server of PostgreSQL.
    Postgres(PostgresOptions),
    /// In a file.
    Sqlite(SqliteOptions),
}

/// How many connections to a database there are at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseOccupancy {
    /// Those that read.
    pub readers: PoolOccupancy,
    /// Those that write; one to SQLite.
    pub writer: PoolOccupancy,
}

/// Why a database can't be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseUnusable {
    /// There is no file, and none is made.
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
    /// The file is absent, and the options say not to create it.
    #[error(
        "there is no database at {}, and storage.file_creation_enabled is false: put the database in place, or enable the \
         creation for the first start",
        .path.display()
    )]
    FileNotToBeCreated {
        /// The file.
        path: PathBuf,
    },
    /// The file is absent or empty, though it was created before.
    #[error(
        "the database {} is missing or empty, though a server has used it before: put the database in place; to begin with a \
         new, empty one, delete {}",
        .path.display(),
        .marker.display()
    )]
    FileVanished {
        /// The file.
        path: PathBuf,
        /// The file that says so.
        marker: PathBuf,
    },
    /// The file is absent, and its write-ahead log is not.
    #[error(
        "the database {} is missing, though its write-ahead log {} is there: put the database in place, or delete the log as well",
        .path.display(),
        .log.display()
    )]
    LogWithoutFile {
        /// The file.
        path: PathBuf,
        /// Its log.
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
    /// The URL asks for less than that the server's certificate is verified, beside authorities to verify it by.
    #[error(
        "the database's URL asks for sslmode={0}, by which the server's certificate is not verified, though authorities are \
         configured to verify it by: ask for verify-full or verify-ca"
    )]
    CertificateNotVerified(&'static str),
    /// The URL holds a password, which would end up where URLs do: in process lists, configurations and logs. Or it has an `@`
    /// behind the server's name, as one has with a password in which a character is not encoded.
    #[error(
        "the database's URL must not hold a password, nor an @ behind the server's name, which is written %40"
    )]
    PasswordInUrl,
    /// No server has used the database, and it is not changed.
    #[error("the database {database} has no schema: no server has used it")]
    SchemaAbsent {
        /// The file, or the name of the database and its server.
        database: String,
    },
    /// The schema is not the one that this program's migrations make.
    #[error("the schema of the database {database} is not one of this program, or is not complete")]
    SchemaDiffers {
        /// The file, or the name of the database and its server.
        database: String,
    },
    /// The schema is that of a newer program.
    #[error("the schema of the database {database} is newer than this program")]
    SchemaNewer {
        /// The file, or the name of the database and its server.
        database: String,
    },
    /// The schema can't be read.
    #[error("the schema of the database {database} can't be read")]
    SchemaNotRead {
        /// The file, or the name of the database and its server.
        database: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The schema is that of an older program, and it is not changed.
    #[error(
        "the schema of the database {database} is older than this program: a server of this version brings it up to date \
         when it starts"
    )]
    SchemaOlder {
        /// The file, or the name of the database and its server.
        database: String,
    },
    /// The schema can't be brought up to date, or is newer than this server.
    #[error("the schema of the database {database} can't be brought up to date")]
    SchemaNotMigrated {
        /// The file, or the name of the database and its server.
        database: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server of the database does not answer, or refuses.
    #[error("the database {database} can't be reached")]
    ServerNotReached {
        /// The name of the database and its server.
        database: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The URL is none of a database of PostgreSQL.
    #[error("the database's URL is not understood")]
    UrlMalformed {
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl DatabaseOptions {
    /// Whether they could be those of a database. None is connected to.
    ///
    /// # Errors
    /// When the URL is none, or holds a password.
    pub fn check(&self) -> Result<(), DatabaseUnusable> {
        match self {
            Self::Postgres(options) => postgres::check(options),
            Self::Sqlite(_) => Ok(()),
        }
    }
}

impl Database {
    /// Connects to a database once, and changes nothing there. A file that is not there is one that will be made.
    ///
    /// # Errors
    /// When it can't be reached or used.
    pub async fn reach(options: &DatabaseOptions) -> Result<(), DatabaseUnusable> {
        match options {
            DatabaseOptions::Postgres(options) => postgres::reach(options).await,
            DatabaseOptions::Sqlite(options) => sqlite::reach(options).await,
        }
    }

    /// Opens the database and brings its schema up to date. A file is created when it is absent, readable by its owner
    /// alone.
    ///
    /// `identifiers` gives new credentials their ids.
    ///
    /// # Errors
    /// When the database can't be reached or used, or its schema can't be brought up to date.
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

    /// Opens the database as it is, to read it: it is neither made nor brought up to date, and nothing can be written.
    ///
    /// `identifiers` are those of [`Database::open`]; none is asked for.
    ///
    /// # Errors
    /// When the database is not there, can't be reached or used, or its schema is not that of this program.
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

    /// Everything in it, for a check.
    #[must_use]
    pub fn check(&self) -> SqlCheckRepository {
        SqlCheckRepository::new(self.pools.reader.clone())
    }

    /// The credentials in it.
    #[must_use]
    pub fn credentials(&self) -> SqlCredentialRepository {
        SqlCredentialRepository::new(self.pools.clone(), Arc::clone(&self.identifiers))
    }

    /// The records of its encryption keys.
    #[must_use]
    pub fn encryption_keys(&self) -> SqlEncryptionKeyRepository {
        SqlEncryptionKeyRepository::new(self.pools.clone())
    }

    /// Its versions, for the rotation of encryption keys.
    #[must_use]
    pub fn key_rotation(&self) -> SqlKeyRotationRepository {
        SqlKeyRotationRepository::new(self.pools.clone())
    }

    /// The leases in it, by which servers agree on who does what.
    #[must_use]
    pub fn leases(&self) -> SqlLeases {
        SqlLeases::new(self.pools.clone())
    }

    /// The permissions in it.
    #[must_use]
    pub fn permissions(&self) -> SqlPermissionRepository {
        SqlPermissionRepository::new(self.pools.clone(), Arc::clone(&self.identifiers))
    }

    /// What retention has written down about the clock.
    #[must_use]
    pub fn retention_clock(&self) -> SqlRetentionClock {
        SqlRetentionClock::new(self.pools.clone())
    }

    /// How many connections there are at this moment: those that read, and those that write.
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

    /// Whether the last write that a disk refused was followed by one that it took. `true` where none was refused.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        !self.pools.writer.is_failing()
    }

    /// Whether the paths of the database's files still name those that were opened. Always so for PostgreSQL.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        let watch = self.pools.watch.as_ref();
        watch.is_none_or(|watch| watch.is_in_place())
    }

    /// How many transactions of this server were done again so far because others stood in their way, each as often as it
    /// was. SQLite has one writer at a time, of which none stands in another's way.
    #[must_use]
    pub fn transactions_retried(&self) -> u64 {
        let retries = self.pools.reader.retries();
        retries + self.pools.writer.retries()
    }

    #[cfg(test)]
    pub(crate) fn pools(&self) -> &Pools {
        &self.pools
    }

    /// Waits for what is running, and closes the connections.
    pub async fn close(&self) {
        self.pools.reader.close().await;
        self.pools.writer.close().await;
    }
}

/// What writes, and the connections that read.
#[derive(Clone)]
pub(crate) struct Pools {
    pub(crate) writer: Writer,
    pub(crate) reader: Connections,
    /// What adds versions together. SQLite has none: there all writes share commits.
    pub(crate) append_batches: Option<AppendBatches>,
    /// What looks whether the database's file is in its place. PostgreSQL has none.
    pub(crate) watch: Option<Arc<FileWatch>>,
}
