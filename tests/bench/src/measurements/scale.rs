//! What a request costs in small stores and in large ones.

use std::time::Instant;

use hyper::Method;

use crate::{
    Outcome,
    client::Connection,
    engine::Engine,
    server,
    statistics::{Sample, micros},
    store::{FOLDER_SIZE, Store},
    table::{Aim, Table},
};

/// Measures the same requests on stores of these sizes, in turns, on each engine.
pub(crate) fn measure(sizes: &[usize]) -> Outcome<Table> {
    let sizes = if sizes.is_empty() { SIZES } else { sizes };
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut table = Table::new(
            format!("requests one after the other; find: {FOLDER_SIZE} results"),
            &["", "credentials", "p50, µs", "p99, µs", "ratio", "aim"],
        );
        for engine in Engine::all() {
            let mut stores = Vec::new();
            for &size in sizes {
                stores.push(Store::fill(&engine, size).await?);
            }
            let mut connected = Vec::new();
            for store in stores {
                // Not before: a connection that is idle for long is ended.
                let connection = store.connect().await?;
                connected.push((store, connection));
            }
            for request in REQUESTS {
                compare(&mut table, &engine, request, &mut connected).await?;
            }
        }
        Ok(table)
    })
}

/// A kind of request.
#[derive(Clone, Copy)]
enum Request {
    Get,
    SetVersion,
    SetNew,
    FindByPath,
    /// By a word that has little in common with what else is there.
    FindByName,
    /// By a text of which most parts are everywhere.
    FindByLongName,
}

impl Request {
    fn name(self) -> &'static str {
        match self {
            Self::Get => "get by name",
            Self::SetVersion => "set, new version",
            Self::SetNew => "set, new name",
            Self::FindByPath => "find by path",
            Self::FindByName => "find by name-like",
            Self::FindByLongName => "find by name-like, common parts",
        }
    }

    /// Makes the request, with another credential or folder for each number.
    async fn make(self, store: &Store, connection: &mut Connection, number: usize) -> Outcome<()> {
        let read = match self {
            Self::Get => format!("name={}&current=true", store.served_name(number)),
            Self::SetVersion => return set(connection, &store.served_name(number)).await,
            Self::SetNew => {
                let name = format!("{}/new-{number}", store.served_name(number));
                return set(connection, &name).await;
            }
            Self::FindByPath => format!("path=/director/{}", store.folder_word(number)),
            Self::FindByName => format!("name-like={}", store.folder_word(number)),
            Self::FindByLongName => {
                format!("name-like=director/{}/copied", store.folder_word(number))
            }
        };
        connection.get(&format!("/api/v1/data?{read}")).await?;
        Ok(())
    }
}

async fn set(connection: &mut Connection, name: &str) -> Outcome<()> {
    connection
        .send(Method::PUT, &server::set_body(name))
        .await?;
    Ok(())
}

async fn compare(
    table: &mut Table,
    engine: &Engine,
    request: Request,
    stores: &mut [(Store, Connection)],
) -> Outcome<()> {
    let mut times = vec![Vec::new(); stores.len()];
    for round in 0..=ROUNDS {
        for ((store, connection), times) in stores.iter_mut().zip(&mut times) {
            for turn in 0..TURNS {
                let number = round * TURNS + turn;
                let begun = Instant::now();
                request.make(store, connection, number).await?;
                // The first round is for warming up.
                if round > 0 {
                    times.push(micros(begun.elapsed()));
                }
            }
        }
    }
    let mut smallest = None;
    for ((store, _), times) in stores.iter().zip(times) {
        let times = Sample::new(times);
        let ratio = times.median() / *smallest.get_or_insert(times.median());
        table.row([
            format!("{engine}: {}", request.name()),
            store.size().to_string(),
            format!("{:.0}", times.median()),
            format!("{:.0}", times.percentile(99)),
            format!("{ratio:.2}"),
            Aim::AtMost(RATIO_MAX).verdict(ratio),
        ]);
    }
    Ok(())
}

/// How many times as long a request may take in a store that is a thousand times as large, with the same result.
const RATIO_MAX: f64 = 1.5;

const REQUESTS: [Request; 6] = [
    Request::Get,
    Request::SetVersion,
    Request::SetNew,
    Request::FindByPath,
    Request::FindByName,
    Request::FindByLongName,
];

/// The first is what the others are compared with.
const SIZES: &[usize] = &[1_000, 100_000];
const ROUNDS: usize = 20;
const TURNS: usize = 20;
