//! The storage engines, with the durability that operators use, and stores of a given size, each with a server.
//!
//! Most credentials are written directly to the database, in a few large statements, as copies of one credential under
//! other names: they are found and counted like any other, but can't be decrypted. Credentials that the measurements
//! read and write are set through the server, in batches between the others, so that they are spread over the tables
//! and indexes.

use std::{fmt, path::Path};

use keywright_harness::{Options, Server};
use keywright_test_postgres::PostgresServer;

use crate::{
    disk::Disk,
    server::{self, Connection, Request, ServerAddress},
    statistics::Outcome,
};

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
    /// Returns the installed engines.
    pub(crate) fn all() -> Vec<Self> {
        Self::with(PostgresServer::start_durable(POSTGRES_SETTINGS, &[]))
    }

    /// Returns the installed engines, with their data on this disk.
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

    /// Creates an empty database.
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
    /// Returns the configuration of a server with this database.
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
                let database = rusqlite::Connection::open(directory.join(FILE_NAME))?;
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

/// A server with a filled store.
pub(crate) struct Store {
    server: Server,
    /// The requested number of credentials; the real number differs slightly.
    size: usize,
    /// The folders, each of which has [`FOLDER_SIZE`] credentials.
    folders: usize,
}

impl Store {
    /// Starts a server, and fills its store.
    pub(crate) async fn fill(engine: &Engine, size: usize) -> Outcome<Self> {
        let database = engine.new_database();
        let server = Server::start_in(server::directory()?, &database.options()).await;
        let folders = (size.saturating_sub(SERVED) / FOLDER_SIZE).max(1);
        let store = Self {
            server,
            size,
            folders,
        };
        let copies = folders * FOLDER_SIZE;
        for batch in 0..BATCHES {
            let mut connection = store.connect().await?;
            for number in (0..SERVED).skip(batch).step_by(BATCHES) {
                let body = server::set_body(&store.served_name(number));
                connection.send(Request::set(&body)).await?;
            }
            let [from, to] = [batch, batch + 1].map(|batch| copies * batch / BATCHES);
            store.copy(&database, &folder_name("n.i", folders), from, to)?;
        }
        for count in FOUND_COUNTS {
            store.copy(
                &database,
                &format!("'/found/{}/'", counted(count)),
                0,
                count,
            )?;
        }
        // PostgreSQL does this itself within a minute.
        if matches!(engine, Engine::Postgres(_)) {
            database.run(store.server.directory(), "vacuum (analyze)")?;
        }
        Ok(store)
    }

    /// Returns the server's process.
    pub(crate) fn process_id(&self) -> u32 {
        self.server.process_id()
    }

    /// Returns the approximate number of credentials.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Opens a connection to the server, with a new token.
    pub(crate) async fn connect(&self) -> Outcome<Connection> {
        let caller = self.server.as_client("developer").await;
        let socket = server::socket(&self.server)?;
        Connection::open(&ServerAddress::new(socket, caller.token())).await
    }

    /// Returns the name of one of the [`SERVED`] readable credentials, which are spread evenly between the folders.
    pub(crate) fn served_name(&self, number: usize) -> String {
        let number = number % SERVED;
        let word = word(number * self.folders / SERVED);
        let (first, rest) = word.split_at(1);
        format!("/director/{first}0{rest}/{number}")
    }

    /// Returns the word that only this folder's name contains.
    pub(crate) fn folder_word(&self, number: usize) -> String {
        word(number.wrapping_mul(FOLDER_STEP) % self.folders)
    }

    /// Copies the first credential to names that start with `beginning`, an SQL expression, and have the numbers
    /// `from..to`.
    fn copy(
        &self,
        database: &Database<'_>,
        beginning: &str,
        from: usize,
        to: usize,
    ) -> Outcome<()> {
        let (numbers, random) = match database {
            Database::Postgres { .. } => (
                format!("select i from generate_series(cast({from} as bigint), {to} - 1) as i"),
                "gen_random_uuid()",
            ),
            Database::Sqlite => (
                format!(
                    "with recursive n (i) as (
                         select {from} union all select i + 1 from n where i + 1 < {to}
                     ) select i from n where i < {to}"
                ),
                "randomblob(16)",
            ),
        };
        let name = format!("{beginning} || 'copied/' || n.i");
        let sql = format!(
            "begin;
             insert into credential (id, name, name_folded, credential_type, created_at)
             select {random}, {name}, {name}, 'json', 1700000000000 + n.i from ({numbers}) n;
             insert into credential_version (
                 id, credential_sequence, created_at, is_transitional, is_generated, encryption_key_id, nonce, ciphertext
             )
             select {random}, c.sequence, c.created_at, false, false, t.encryption_key_id, t.nonce, t.ciphertext
             from credential c, (
                 select encryption_key_id, nonce, ciphertext from credential_version order by sequence limit 1
             ) t
             where c.newest_sequence is null order by c.sequence;
             update credential set
                 (newest_sequence, newest_created_at, current_sequence, current_created_at) = (
                     select v.sequence, v.created_at, v.sequence, v.created_at
                     from credential_version v where v.credential_sequence = credential.sequence
                 )
             where newest_sequence is null;
             commit;"
        );
        database.run(self.server.directory(), &sql)
    }
}

/// Returns the path with exactly this many credentials below it.
pub(crate) fn found_path(count: usize) -> String {
    format!("/found/{}", counted(count))
}

/// Returns a word in the names of exactly this many credentials.
pub(crate) fn counted(count: usize) -> String {
    format!("x{count}x")
}

/// Returns SQL for the folder at the start of a copied name. The folder's number is the number of the copy modulo the number of
/// folders.
fn folder_name(number: &str, folders: usize) -> String {
    let mixed = format!("((({number}) % {folders} * {WORD_FACTOR}) % {WORDS})");
    let letters = (0..WORD_LENGTH).map(|position| {
        let divisor = LETTERS.len().pow(position);
        let count = LETTERS.len();
        format!("substr('{LETTERS}', cast(1 + {mixed} / {divisor} % {count} as integer), 1)")
    });
    let word = letters.collect::<Vec<_>>().join(" || ");
    format!("'/director/' || {word} || '/'")
}

/// Returns the word of a folder, as in [`folder_name`]. The words of successive folders have little in common.
fn word(folder: usize) -> String {
    let mixed = folder * WORD_FACTOR % WORDS;
    let letters = (0..WORD_LENGTH).map(|position| {
        let letter = mixed / LETTERS.len().pow(position) % LETTERS.len();
        LETTERS
            .as_bytes()
            .get(letter)
            .copied()
            .map_or('b', char::from)
    });
    letters.collect()
}

/// The number of credentials in a folder, without the readable credentials.
pub(crate) const FOLDER_SIZE: usize = 50;

/// The number of readable credentials.
const SERVED: usize = 400;

/// The numbers of credentials that have a common path and word to search for.
pub(crate) const FOUND_COUNTS: [usize; 3] = [10, 100, 1_000];

const BATCHES: usize = 20;

/// A large step, so that successive folders are not close to each other.
const FOLDER_STEP: usize = 7_919;

const LETTERS: &str = "bcdfghjklmnpqrstvwyz";
const WORD_LENGTH: u32 = 4;

/// A prime below the number of possible words, and a factor that it does not divide. So each folder gets a distinct word.
const WORDS: usize = 159_979;
const WORD_FACTOR: usize = 48_271;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_folder_has_a_distinct_word_equal_in_rust_and_sql() {
        let folders = 20_000;
        let words: HashSet<String> = (0..folders).map(word).collect();
        assert_eq!(words.len(), folders);
        let database = rusqlite::Connection::open_in_memory().unwrap();
        for folder in [0, 1, 17, folders - 1] {
            let sql = format!(
                "select {}",
                folder_name(&(folder + folders).to_string(), folders)
            );
            let name: String = database.query_row(&sql, [], |row| row.get(0)).unwrap();
            assert_eq!(name, format!("/director/{}/", word(folder)));
        }
    }
}
