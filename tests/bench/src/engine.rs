//! The storage engines, with the durability that operators use.

use std::{fmt, path::Path};

use keywright_harness::Options;
use keywright_test_postgres::PostgresServer;
use rusqlite::Connection;

use crate::{Outcome, disk::Disk, server};

/// The storage engine of the measured servers.
pub(crate) enum Engine {
    /// One PostgreSQL server for all, which flushes each commit to the disk.
    Postgres(PostgresServer),
    /// A file in each server's folder.
    Sqlite,
}

/// The database of one server.
pub(crate) enum Database<'e> {
    Postgres {
        server: &'e PostgresServer,
        url: String,
    },
    Sqlite,
}

impl Engine {
    /// The installed engines.
    pub(crate) fn all() -> Vec<Self> {
        Self::with(PostgresServer::start_durable(POSTGRES_SETTINGS, &[]))
    }

    /// The installed engines, with their data on this disk.
    pub(crate) fn all_on(disk: &Disk) -> Vec<Self> {
        let environment = disk.environment();
        Self::with(PostgresServer::start_durable(
            POSTGRES_SETTINGS,
            &environment,
        ))
    }

    fn with(postgres: Option<PostgresServer>) -> Vec<Self> {
        let postgres = postgres.map(Self::Postgres);
        [Self::Sqlite].into_iter().chain(postgres).collect()
    }

    /// An empty database.
    pub(crate) fn new_database(&self) -> Database<'_> {
        match self {
            Self::Postgres(server) => Database::Postgres {
                server,
                url: server.new_database(),
            },
            Self::Sqlite => Database::Sqlite,
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Postgres(_) => "PostgreSQL",
            Self::Sqlite => "SQLite",
        })
    }
}

impl Database<'_> {
    /// The configuration of a server with this database.
    pub(crate) fn options(&self) -> Options {
        server::options().storage(&match self {
            Self::Postgres { url, .. } => format!("url = \"{url}\""),
            Self::Sqlite => format!("file = \"{FILE_NAME}\""),
        })
    }

    /// Runs SQL directly on the database of the server in this folder.
    pub(crate) fn run(&self, directory: &Path, sql: &str) -> Outcome<()> {
        match self {
            Self::Postgres { server, url } => drop(server.run_at(url, sql)),
            Self::Sqlite => {
                let database = Connection::open(directory.join(FILE_NAME))?;
                database.execute_batch(&format!("pragma synchronous = off; {sql}"))?;
            }
        }
        Ok(())
    }
}

const FILE_NAME: &str = "keywright.db";

/// More than PostgreSQL's default of 128 MB, so that a million credentials are in memory. Its manual recommends up to a
/// quarter of the machine's memory.
const POSTGRES_SETTINGS: &str = "shared_buffers = 2GB\n";
