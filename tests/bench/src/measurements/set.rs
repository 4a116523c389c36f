//! Setting, beside raw commits of one row with the same durability in the same file system, on each engine.

use std::{path::Path, time::Instant};

use hyper::Method;
use keywright_harness::Server;
use rusqlite::{Connection as SqliteConnection, params};

use crate::{
    Outcome,
    client::Connection,
    engine::{Database, Engine},
    server,
    statistics::{Sample, micros, number},
    table::{Table, no_aim},
};

/// Measures the time of each set and of each commit, and how many go through in a second, from one client and from many.
pub(crate) fn measure() -> Outcome<Table> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut table = Table::new(
            format!(
                "{} bytes; raw: one row a commit, each on disk; of PostgreSQL only the mean is known",
                server::VALUE_BYTES
            ),
            &["", "keywright", "raw", "ratio", "aim"],
        );
        for engine in Engine::all() {
            compare(&mut table, &engine).await?;
        }
        Ok(table)
    })
}

async fn compare(table: &mut Table, engine: &Engine) -> Outcome<()> {
    let database = engine.new_database();
    let server = Server::start_in(server::directory()?, &database.options()).await;
    let raw = Raw::open(&database, server.directory())?;
    let mut sequential = Comparison::default();
    let mut new_names = Comparison::default();
    let mut concurrent = Comparison::default();
    let mut single = vec![server::connect(&server).await?];
    let mut many = Vec::new();
    for _ in 0..CLIENTS {
        many.push(server::connect(&server).await?);
    }
    for number in 0..=ROUNDS {
        let is_kept = number > 0;
        sequential.add(
            is_kept,
            set(&mut single, WRITES_A_ROUND, |_, _| "/bench/set".to_owned()).await?,
            raw.commit()?,
        );
        new_names.add(
            is_kept,
            set(&mut single, WRITES_A_ROUND, |_, write| {
                format!("/bench/set/{number}/{write}")
            })
            .await?,
            raw.commit()?,
        );
        concurrent.add(
            is_kept,
            set(&mut many, WRITES_A_ROUND, |client, _| {
                format!("/bench/client/{client}")
            })
            .await?,
            raw.commit()?,
        );
    }
    sequential.rows(table, &format!("{engine}: 1 client, versions of one name"));
    new_names.rows(table, &format!("{engine}: 1 client, new names"));
    concurrent.rows(
        table,
        &format!("{engine}: {CLIENTS} clients, versions of a name each (raw: 1)"),
    );
    Ok(())
}

/// What a round showed.
pub(super) struct Round {
    micros: Vec<f64>,
    per_second: f64,
}

impl Round {
    /// How many writes went through in a second.
    pub(super) fn per_second(&self) -> f64 {
        self.per_second
    }
}

/// Both sides of all rounds.
#[derive(Default)]
struct Comparison {
    keywright: Side,
    raw: Side,
}

#[derive(Default)]
struct Side {
    micros: Vec<f64>,
    per_second: Vec<f64>,
}

impl Comparison {
    fn add(&mut self, is_kept: bool, keywright: Round, raw: Round) {
        if is_kept {
            self.keywright.add(keywright);
            self.raw.add(raw);
        }
    }

    fn rows(self, table: &mut Table, what: &str) {
        let mut row = |figure: &str, keywright: f64, raw: f64| {
            table.row([
                format!("{what}: {figure}"),
                format!("{keywright:.0}"),
                format!("{raw:.0}"),
                format!("{:.2}", keywright / raw),
                no_aim(),
            ]);
        };
        let (keywright, raw) = (
            Sample::new(self.keywright.micros),
            Sample::new(self.raw.micros),
        );
        row("p50, µs", keywright.median(), raw.median());
        row("p99, µs", keywright.percentile(99), raw.percentile(99));
        let rates = [self.keywright.per_second, self.raw.per_second];
        let [keywright, raw] = rates.map(|rates| Sample::new(rates).median());
        row("writes/s", keywright, raw);
    }
}

impl Side {
    fn add(&mut self, round: Round) {
        self.micros.extend(round.micros);
        self.per_second.push(round.per_second);
    }
}

/// Sets so many credentials through all connections at once; `name` gets the numbers of client and write.
pub(super) async fn set(
    connections: &mut Vec<Connection>,
    writes: usize,
    name: impl Fn(usize, usize) -> String,
) -> Outcome<Round> {
    let writes_each = writes / connections.len();
    let begun = Instant::now();
    let clients: Vec<_> = connections
        .drain(..)
        .enumerate()
        .map(|(client, connection)| {
            let names = (0..writes_each).map(|write| name(client, write)).collect();
            tokio::spawn(set_each(connection, names))
        })
        .collect();
    let mut times = Vec::new();
    for client in clients {
        let (connection, micros) = client.await??;
        connections.push(connection);
        times.extend(micros);
    }
    let per_second = number(times.len()) / begun.elapsed().as_secs_f64();
    Ok(Round {
        micros: times,
        per_second,
    })
}

async fn set_each(
    mut connection: Connection,
    names: Vec<String>,
) -> Outcome<(Connection, Vec<f64>)> {
    let mut times = Vec::new();
    for name in names {
        let body = server::set_body(&name);
        let begun = Instant::now();
        connection.send(Method::PUT, &body).await?;
        times.push(micros(begun.elapsed()));
    }
    Ok((connection, times))
}

/// A database with one table and nothing around it.
enum Raw<'d> {
    /// The server's own database has the table, too.
    Postgres(&'d Database<'d>),
    Sqlite(SqliteConnection),
}

impl<'d> Raw<'d> {
    fn open(database: &'d Database<'d>, directory: &Path) -> Outcome<Self> {
        if let Database::Postgres { .. } = database {
            database.run(
                directory,
                "create table raw (sequence bigint generated always as identity primary key, value bytea not null)",
            )?;
            return Ok(Self::Postgres(database));
        }
        let connection = SqliteConnection::open(directory.join("raw.db"))?;
        connection.execute_batch(
            "pragma journal_mode = wal; pragma synchronous = full;
             create table raw (sequence integer primary key, value blob not null)",
        )?;
        Ok(Self::Sqlite(connection))
    }

    /// Commits a round's number of rows, one by one.
    fn commit(&self) -> Outcome<Round> {
        let begun = Instant::now();
        let micros = match self {
            Self::Postgres(database) => {
                let inserts = format!(
                    "do $$ begin for i in 1..{WRITES_A_ROUND} loop
                         insert into raw (value) values (decode(repeat('76', {}), 'hex')); commit;
                     end loop; end $$",
                    server::VALUE_BYTES
                );
                database.run(Path::new(""), &inserts)?;
                let mean = micros(begun.elapsed()) / number(WRITES_A_ROUND);
                vec![mean; WRITES_A_ROUND]
            }
            Self::Sqlite(connection) => commit_to_sqlite(connection)?,
        };
        let per_second = number(micros.len()) / begun.elapsed().as_secs_f64();
        Ok(Round { micros, per_second })
    }
}

fn commit_to_sqlite(connection: &SqliteConnection) -> Outcome<Vec<f64>> {
    let value = vec![b'v'; server::VALUE_BYTES];
    let mut insert = connection.prepare("insert into raw (value) values (?1)")?;
    let mut times = Vec::new();
    for _ in 0..WRITES_A_ROUND {
        let begun = Instant::now();
        insert.execute(params![value])?;
        times.push(micros(begun.elapsed()));
    }
    Ok(times)
}

const CLIENTS: usize = 64;
const ROUNDS: usize = 7;
/// A multiple of [`CLIENTS`].
const WRITES_A_ROUND: usize = 256;
