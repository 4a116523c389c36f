//! A database that is open and up to date, whichever engine it has.

use std::{io, path::PathBuf, sync::Arc};

use keywright_core::ports::Identifiers;

use crate::{
    SqlCredentialRepository, SqlEncryptionKeyRepository, SqlPermissionRepository,
    connections::{Connections, PoolOccupancy},
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
    /// The URL holds a password, which would end up where URLs do: in process lists, configurations and logs.
    #[error("the database's URL must not hold a password")]
    PasswordInUrl,
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

    /// The permissions in it.
    #[must_use]
    pub fn permissions(&self) -> SqlPermissionRepository {
        SqlPermissionRepository::new(self.pools.clone(), Arc::clone(&self.identifiers))
    }

    /// How many connections there are at this moment: those that read, and those that write.
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

    /// Waits for what is running, and closes the connections.
    pub async fn close(&self) {
        self.pools.reader.close().await;
        self.pools.writer.close().await;
    }
}

/// The connections that write, and those that read.
#[derive(Clone)]
pub(crate) struct Pools {
    pub(crate) writer: Connections,
    pub(crate) reader: Connections,
}
