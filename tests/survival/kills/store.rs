//! The store of a run's servers, and the seed of its random choices.

use std::{fmt::Display, path::Path, str::FromStr, time::Duration};

use keywright_harness::{Options, Server, run_command, until};
use keywright_test_postgres::PostgresServer;
use rand::{Rng, SeedableRng, rngs::ChaCha12Rng};
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Sqlite,
    /// PostgreSQL, with a server for the run only.
    Postgres,
}

impl Store {
    /// Creates an empty store. Returns `None` and prints a message if the engine is not installed.
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
        run_command(self.directory(), "check").expect(0);
    }

    /// Waits until the database has closed the connections of the killed server, whose last commands may still run.
    async fn settle(&self) {
        let Some(database) = &self.database else {
            return;
        };
        let others = || database.server.run_at(&database.url, OTHER_CONNECTIONS);
        until("closed connections", async || others() == "0").await;
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

/// The source of a run's random choices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed(u64);

impl Seed {
    /// Uses `KEYWRIGHT_TEST_SEED`, or a new seed. Prints the seed, which the test harness shows if the test fails.
    pub(super) fn of_this_run() -> Self {
        let seed = variable("KEYWRIGHT_TEST_SEED").unwrap_or_else(|| rand::rng().next_u64());
        println!("KEYWRIGHT_TEST_SEED={seed}");
        Self(seed)
    }

    /// Returns the random choices of one worker.
    pub(super) fn choices(self, number: usize) -> ChaCha12Rng {
        let mut choices = ChaCha12Rng::seed_from_u64(self.0);
        choices.set_stream(number.try_into().unwrap());
        choices
    }
}

/// Returns the number of rounds of a run.
pub(super) fn rounds(default: usize) -> usize {
    variable("KEYWRIGHT_TEST_ROUNDS").unwrap_or(default)
}

fn variable<T: FromStr<Err: Display>>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    let number = text
        .parse()
        .map_err(|cause: T::Err| format!("{name}: {cause}"));
    Some(number.unwrap())
}
