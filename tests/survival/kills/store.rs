//! The store of a run's servers.

use std::{path::Path, time::Duration};

use keywright_harness::{Options, Server, run_command};
use keywright_test_postgres::PostgresServer;
use tempfile::TempDir;

/// A store and its contents, between two servers.
pub(super) struct Store {
    directory: TempDir,
    options: Options,
    database: Option<Database>,
}

struct Database {
    server: PostgresServer,
    url: String,
}

/// The database engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// SQLite.
    Sqlite,
    /// PostgreSQL, with a server for the run only.
    Postgres,
}

impl Store {
    /// Creates an empty store; `None` if the engine is not installed, which is printed.
    pub(super) fn new(engine: Engine) -> Option<Self> {
        let database = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(Database::start()?),
        };
        let options = Options::default()
            .extra("\n[certificates]\nconcatenate_cas = true")
            .environment("KEYWRIGHT_LOG", "info");
        let mut store = Self {
            directory: TempDir::new().unwrap(),
            options,
            database,
        };
        store.empty();
        Some(store)
    }

    /// Recreates the store.
    pub(super) fn empty(&mut self) {
        self.directory = TempDir::new().unwrap();
        let section = match &mut self.database {
            None => "file = \"keywright.db\"".to_owned(),
            Some(database) => {
                database.url = database.server.new_database();
                format!("url = \"{}\"", database.url)
            }
        };
        self.options = self.options.clone().storage(&section);
    }

    /// Returns the servers' folder.
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Starts a server.
    pub(super) async fn start(&mut self) -> Server {
        let directory = std::mem::replace(&mut self.directory, TempDir::new().unwrap());
        Server::start_in(directory, &self.options).await
    }

    /// Starts a server that is killed after this time, ready or not.
    pub(super) async fn kill_while_it_starts(&mut self, after: Duration) {
        let directory = std::mem::replace(&mut self.directory, TempDir::new().unwrap());
        self.directory = Server::kill_while_it_starts(directory, &self.options, after);
        self.settle().await;
    }

    /// Kills a server.
    pub(super) async fn kill(&mut self, server: Server) {
        self.directory = server.kill();
        self.settle().await;
    }

    /// Kills the database like a crash of its processes.
    pub(super) fn crash_database(&self) {
        self.database.as_ref().unwrap().server.crash();
    }

    /// Restarts the database.
    pub(super) fn start_database(&self) {
        self.database.as_ref().unwrap().server.start_again();
    }

    /// Asserts that `keywright check` has no findings.
    pub(super) fn check(&self) {
        run_command(self.directory(), &["check"]).expect(0);
    }

    /// Waits until the database has noticed that the server is gone: its last commands may still run.
    async fn settle(&self) {
        let Some(database) = &self.database else {
            return;
        };
        while database.server.run_at(&database.url, OTHER_CONNECTIONS) != "0" {
            tokio::task::yield_now().await;
        }
    }
}

impl Database {
    fn start() -> Option<Self> {
        let server = PostgresServer::start()?;
        Some(Self {
            server,
            url: String::new(),
        })
    }
}

/// Counts the other connections to a database.
const OTHER_CONNECTIONS: &str = "select count(*) from pg_stat_activity \
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'";
