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
    table::{Aim, Table, no_aim},
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
            set(&mut single, |_, _| "/bench/set".to_owned()).await?,
            raw.commit()?,
        );
        new_names.add(
            is_kept,
            set(&mut single, |_, write| {
                format!("/bench/set/{number}/{write}")
            })
            .await?,
            raw.commit()?,
        );
        concurrent.add(
            is_kept,
            set(&mut many, |client, _| format!("/bench/client/{client}")).await?,
            raw.commit()?,
        );
    }
    let alone = sequential.rows(table, &format!("{engine}: 1 client, versions of one name"));
    new_names.rows(table, &format!("{engine}: 1 client, new names"));
    let together = concurrent.rows(
        table,
        &format!("{engine}: {CLIENTS} clients, versions of a name each (raw: 1)"),
    );
    let ratio = together / alone;
    table.row([
        format!("{engine}: {CLIENTS} clients beside 1: writes/s"),
        format!("{together:.0}"),
        format!("{alone:.0}"),
        format!("{ratio:.2}"),
        Aim::AtLeast(CONCURRENT_RATIO_MIN).verdict(ratio),
    ]);
    Ok(())
}

/// What a round showed.
struct Round {
    micros: Vec<f64>,
    per_second: f64,
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

    /// Tells how many writes of the server's went through in a second.
    fn rows(self, table: &mut Table, what: &str) -> f64 {
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
        keywright
    }
}

impl Side {
    fn add(&mut self, round: Round) {
        self.micros.extend(round.micros);
        self.per_second.push(round.per_second);
    }
}

/// Sets a round's number of credentials through all connections at once; `name` gets the numbers of client and write.
async fn set(
    connections: &mut Vec<Connection>,
    name: impl Fn(usize, usize) -> String,
) -> Outcome<Round> {
    let writes_each = WRITES_A_ROUND / connections.len();
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

/// How many times as many as one client many clients are to write. Where a flush of the disk takes no longer than the processor
/// works on a write, that is missed: there is little more to be had.
const CONCURRENT_RATIO_MIN: f64 = 4.0;

const CLIENTS: usize = 64;
const ROUNDS: usize = 7;
/// A multiple of [`CLIENTS`].
const WRITES_A_ROUND: usize = 256;
