//! Opens a database on either engine.

use std::sync::Arc;

use keywright_core::ports::Identifiers;
use uuid::Uuid;

use crate::{
    connections::{ActorSlots, Connections, FileWatch, PoolOccupancy, Writer},
    credential::AppendBatches,
    error::DatabaseOpenError,
    postgres::{self, PostgresOptions},
    sqlite::{self, SqliteOptions},
};

/// An open database with a current schema. It implements all ports of the storage. Clones share the connections.
#[derive(Clone)]
pub struct Database {
    pub(crate) writer: Writer,
    pub(crate) reader: Connections,
    /// Checks that the path still names the database file. `None` on PostgreSQL, and if the database was opened read-only.
    watch: Option<Arc<FileWatch>>,
    /// Adds versions in batches. `None` on SQLite, where all writes share commits.
    pub(crate) append_batches: Option<AppendBatches>,
    /// Each actor adds one long list of permissions at a time. Otherwise, the writes of other actors on SQLite would wait for all
    /// lists of the actor.
    pub(crate) long_lists: ActorSlots,
    /// Generates the ids of new credentials and permissions.
    pub(crate) identifiers: Arc<dyn Identifiers>,
}

/// The identifiers of a database that is opened read-only, which refuses every write.
pub(crate) struct NoIdentifiers;

impl Identifiers for NoIdentifiers {
    fn fresh(&self) -> Uuid {
        Uuid::nil()
    }
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

impl DatabaseOptions {
    /// Validates the options without connecting.
    pub fn check(&self) -> Result<(), DatabaseOpenError> {
        match self {
            Self::Postgres(options) => postgres::check(options),
            Self::Sqlite(_) => Ok(()),
        }
    }
}

impl Database {
    /// Connects to a database once, without changing it. Accepts a missing file that may be created, and refuses the database of
    /// another program.
    pub async fn reach(options: &DatabaseOptions) -> Result<(), DatabaseOpenError> {
        match options {
            DatabaseOptions::Postgres(options) => postgres::reach(options).await,
            DatabaseOptions::Sqlite(options) => sqlite::reach(options).await,
        }
    }

    /// Opens the database and migrates its schema. Creates a missing file, which only its owner may read.
    ///
    /// `identifiers` provides the ids of new credentials.
    pub async fn open(
        options: &DatabaseOptions,
        identifiers: Arc<dyn Identifiers>,
    ) -> Result<Self, DatabaseOpenError> {
        Ok(match options {
            DatabaseOptions::Postgres(options) => {
                let (writer, reader) = postgres::open(options).await?;
                Self {
                    append_batches: Some(AppendBatches::start(&writer, options.wait_max)),
                    ..Self::new(writer, reader, identifiers)
                }
            }
            DatabaseOptions::Sqlite(options) => {
                let (writer, reader, watch) = sqlite::open(options).await?;
                Self {
                    watch: Some(watch),
                    ..Self::new(writer, reader, identifiers)
                }
            }
        })
    }

    /// Opens an existing database read-only, and neither creates nor migrates it.
    pub async fn open_to_read(options: &DatabaseOptions) -> Result<Self, DatabaseOpenError> {
        let reader = match options {
            DatabaseOptions::Postgres(options) => postgres::open_to_read(options).await?,
            DatabaseOptions::Sqlite(options) => sqlite::open_to_read(options).await?,
        };
        Ok(Self::new(
            Writer::read_only(),
            reader,
            Arc::new(NoIdentifiers),
        ))
    }

    fn new(writer: Writer, reader: Connections, identifiers: Arc<dyn Identifiers>) -> Self {
        Self {
            writer,
            reader,
            watch: None,
            append_batches: None,
            long_lists: ActorSlots::new(1),
            identifiers,
        }
    }

    /// Returns the current number of connections that read and that write.
    pub fn occupancy(&self) -> DatabaseOccupancy {
        let writer = self.writer.occupancy();
        let batches = self.append_batches.as_ref();
        let queued = batches.map_or(0, AppendBatches::waiting);
        DatabaseOccupancy {
            readers: self.reader.occupancy(),
            writer: PoolOccupancy {
                waiting: writer.waiting + queued,
                ..writer
            },
        }
    }

    /// Returns whether writes succeed: `false` from a failure of the disk until the next successful write.
    pub fn is_writable(&self) -> bool {
        !self.writer.is_failing()
    }

    /// Returns whether the paths of the database's files still name the files that were opened. Always `true` on PostgreSQL.
    pub fn is_in_place(&self) -> bool {
        let watch = self.watch.as_ref();
        watch.is_none_or(|watch| watch.is_in_place())
    }

    /// Returns how often this server has retried transactions after conflicts. Always 0 on SQLite, which has one writer at a
    /// time.
    pub fn transactions_retried(&self) -> u64 {
        let retries = self.reader.retries();
        retries + self.writer.retries()
    }

    /// Waits for running statements, and closes the connections.
    pub async fn close(&self) {
        if let Some(watch) = &self.watch {
            watch.end();
        }
        self.reader.close().await;
        self.writer.close().await;
    }
}
