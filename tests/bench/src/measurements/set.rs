//! Setting, beside raw SQLite commits of one row with the same durability in the same file system.

use std::{path::Path, time::Instant};

use hyper::Method;
use rusqlite::{Connection as Database, params};

use crate::{
    Outcome,
    client::Connection,
    server,
    statistics::{Sample, micros, number},
    table::{Table, no_aim},
};

/// Measures the time of each set and of each commit, and how many go through in a second, from one client and from many.
pub(crate) fn measure() -> Outcome<Table> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let server = server::start().await?;
        let raw = RawSqlite::open(server.directory())?;
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

        let mut table = Table::new(
            format!(
                "{} bytes; SQLite: one row a commit, WAL, synchronous=FULL",
                server::VALUE_BYTES
            ),
            &["", "keywright", "raw SQLite", "ratio", "aim"],
        );
        sequential.rows(&mut table, "1 client, versions of one name");
        new_names.rows(&mut table, "1 client, new names");
        concurrent.rows(
            &mut table,
            &format!("{CLIENTS} clients, versions of a name each (raw: 1)"),
        );
        Ok(table)
    })
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
struct RawSqlite(Database);

impl RawSqlite {
    fn open(directory: &Path) -> Outcome<Self> {
        let database = Database::open(directory.join("raw.db"))?;
        database.execute_batch(
            "pragma journal_mode = wal; pragma synchronous = full;
             create table raw (sequence integer primary key, value blob not null)",
        )?;
        Ok(Self(database))
    }

    /// Commits a round's number of rows, one by one.
    fn commit(&self) -> Outcome<Round> {
        let value = vec![b'v'; server::VALUE_BYTES];
        let mut insert = self.0.prepare("insert into raw (value) values (?1)")?;
        let mut times = Vec::new();
        let begun = Instant::now();
        for _ in 0..WRITES_A_ROUND {
            let begun = Instant::now();
            insert.execute(params![value])?;
            times.push(micros(begun.elapsed()));
        }
        let per_second = number(times.len()) / begun.elapsed().as_secs_f64();
        Ok(Round {
            micros: times,
            per_second,
        })
    }
}

const CLIENTS: usize = 64;
const ROUNDS: usize = 7;
/// A multiple of [`CLIENTS`].
const WRITES_A_ROUND: usize = 256;
