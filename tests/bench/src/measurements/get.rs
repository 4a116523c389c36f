//! Reading by name, beside a bare handler on the same TLS stack that returns the same bytes.

use std::{
    fs,
    time::{Duration, Instant},
};

use crate::{
    Outcome,
    bare_server::BareServer,
    client::{Connection, ServerAddress},
    process::processor_time,
    server,
    statistics::{Sample, micros, number},
    table::{Aim, Table, no_aim},
};

/// Measures throughput, and the processor time of the server for each request: client and server share the processor, so
/// the throughput says less.
pub(crate) fn measure() -> Outcome<Table> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let server = server::start().await?;
        let path = server::store_kibibyte(&server).await;
        let body = server::connect(&server).await?.get(&path).await?;
        let body_file = server.directory().join("body.json");
        fs::write(&body_file, &body)?;
        let bare = BareServer::start(&body_file, server.token())?;
        let keywright = Side {
            address: server::address(&server)?,
            process_id: server.process_id(),
        };
        let bare_side = Side {
            address: bare.address().clone(),
            process_id: bare.process_id(),
        };

        let mut table = Table::new(
            format!(
                "GET by name, {} bytes, HTTP/1.1 over TLS, kept connections",
                body.len()
            ),
            &["", "keywright", "bare axum", "ratio", "aim"],
        );
        for connections in CONNECTIONS {
            compare(&mut table, connections, [&keywright, &bare_side], &path).await?;
        }
        Ok(table)
    })
}

/// One of the two servers.
struct Side {
    address: ServerAddress,
    process_id: u32,
}

/// What a round showed.
struct Round {
    requests_per_second: f64,
    processor_micros: f64,
}

async fn compare(
    table: &mut Table,
    connections: usize,
    sides: [&Side; 2],
    path: &str,
) -> Outcome<()> {
    let mut rounds = [Vec::new(), Vec::new()];
    for number in 0..=ROUNDS {
        for (side, rounds) in sides.into_iter().zip(&mut rounds) {
            let round = round(side, connections, path).await?;
            // The first is for warming up.
            if number > 0 {
                rounds.push(round);
            }
        }
    }
    let medians = |figure: fn(&Round) -> f64| {
        rounds
            .each_ref()
            .map(|rounds| Sample::new(rounds.iter().map(figure).collect()).median())
    };
    let s = if connections == 1 { "" } else { "s" };
    let [keywright, bare] = medians(|round| round.requests_per_second);
    table.row([
        format!("requests/s, {connections} connection{s}"),
        format!("{keywright:.0}"),
        format!("{bare:.0}"),
        format!("{:.2}", keywright / bare),
        Aim::AtLeast(0.5).verdict(keywright / bare),
    ]);
    let [keywright, bare] = medians(|round| round.processor_micros);
    table.row([
        format!("server's processor time/request, µs, {connections} connection{s}"),
        format!("{keywright:.0}"),
        format!("{bare:.0}"),
        format!("{:.2}", keywright / bare),
        no_aim(),
    ]);
    Ok(())
}

/// Reads for a while on all connections at once, as fast as it goes.
async fn round(side: &Side, connections: usize, path: &str) -> Outcome<Round> {
    let mut opened = Vec::new();
    for _ in 0..connections {
        opened.push(Connection::open(&side.address).await?);
    }
    let processor_before = processor_time(side.process_id)?;
    let begun = Instant::now();
    let readers: Vec<_> = opened
        .into_iter()
        .map(|connection| tokio::spawn(read(connection, path.to_owned(), begun + ROUND_TIME)))
        .collect();
    let mut requests = 0;
    for reader in readers {
        requests += reader.await??;
    }
    let taken = begun.elapsed();
    let processor = processor_time(side.process_id)?.saturating_sub(processor_before);
    Ok(Round {
        requests_per_second: number(requests) / taken.as_secs_f64(),
        processor_micros: micros(processor) / number(requests),
    })
}

/// Reads until a time, and returns how often.
async fn read(mut connection: Connection, path: String, end: Instant) -> Outcome<usize> {
    let mut requests = 0;
    while Instant::now() < end {
        connection.get(&path).await?;
        requests += 1;
    }
    Ok(requests)
}

const CONNECTIONS: [usize; 2] = [1, 16];
const ROUNDS: usize = 9;
const ROUND_TIME: Duration = Duration::from_secs(1);
