//! The cost of requests in small and large stores, and of searches with few and with many results.

use std::time::Instant;

use serde_json::Value;

use crate::{
    load::{self, Cost},
    server::{self, Connection},
    statistics::{Outcome, micros},
    store::{Engine, FOLDER_SIZE, FOUND_COUNTS, Store, counted, found_path},
    table::{Table, Threshold},
};

/// Measures the same requests on stores of these sizes, alternately, on each engine.
pub(crate) fn measure(sizes: &[usize]) -> Outcome<Table> {
    let sizes = if sizes.is_empty() { SIZES } else { sizes };
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut table = Table::of_costs(format!(
            "requests one after the other; find: {FOLDER_SIZE} results; ratio: p50 divided by the p50 of the smallest store"
        ));
        for engine in Engine::all() {
            let mut stores = Vec::new();
            for &size in sizes {
                stores.push(Store::fill(&engine, size).await?);
            }
            let mut connected = Vec::new();
            for store in stores {
                // Connects only now, because the server closes idle connections.
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
    /// By a word that has little in common with other names.
    FindByName,
    /// By a text most of whose trigrams occur in all names.
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

    /// Sends the request, with another credential or folder for each number.
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
        .send(server::Request::set(&server::set_body(name)))
        .await?;
    Ok(())
}

async fn compare(
    table: &mut Table,
    engine: &Engine,
    request: Request,
    stores: &mut [(Store, Connection)],
) -> Outcome<()> {
    let mut costs: Vec<Cost> = stores.iter().map(|_| Cost::default()).collect();
    for round in 0..=ROUNDS {
        for ((store, connection), cost) in stores.iter_mut().zip(&mut costs) {
            let requests = async {
                let mut times = Vec::new();
                for number in round * REQUESTS_PER_ROUND..(round + 1) * REQUESTS_PER_ROUND {
                    let begun = Instant::now();
                    request.make(store, connection, number).await?;
                    times.push(micros(begun.elapsed()));
                }
                Ok(times)
            };
            let measured = load::measured(store.process_id(), None, requests).await?;
            // The first round is a warm-up.
            if round > 0 {
                cost.add(measured);
            }
        }
    }
    let smallest = costs.first().map_or(f64::NAN, |cost| cost.times().median());
    for ((store, _), cost) in stores.iter().zip(&costs) {
        let ratio = cost.times().median() / smallest;
        table.cost(
            &format!("{engine}: {}, {} credentials", request.name(), store.size()),
            "keywright",
            cost,
            &[format!(
                "ratio {ratio:.2}, {}",
                Threshold::AtMost(RATIO_MAX).verdict(ratio)
            )],
        );
    }
    Ok(())
}

/// The maximum ratio of the time in a large store to the time in the smallest, for results of the same size.
const RATIO_MAX: f64 = 1.5;

const REQUESTS: [Request; 6] = [
    Request::Get,
    Request::SetVersion,
    Request::SetNew,
    Request::FindByPath,
    Request::FindByName,
    Request::FindByLongName,
];

/// The first is the reference for the others.
const SIZES: &[usize] = &[1_000, 100_000];
const ROUNDS: usize = 20;
const REQUESTS_PER_ROUND: usize = 20;

/// Measures searches in a store of the largest of these sizes, alternately, on each engine.
pub(crate) fn measure_find(sizes: &[usize]) -> Outcome<Table> {
    let size = sizes.iter().max().copied().unwrap_or(FIND_SIZE);
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut table = Table::of_costs(format!("{size} credentials"));
        for engine in Engine::all() {
            let store = Store::fill(&engine, size).await?;
            let mut connection = store.connect().await?;
            let paths = FOUND_COUNTS.map(|count| format!("path={}", found_path(count)));
            let texts = FOUND_COUNTS.map(|count| format!("name-like={}", counted(count)));
            for (what, searches) in [("by path", paths), ("by name-like", texts)] {
                let costs = costs(&store, &mut connection, &searches).await?;
                for (count, cost) in FOUND_COUNTS.into_iter().zip(&costs) {
                    let what = format!("{engine}: find {what}, {count} results");
                    table.cost(&what, "keywright", cost, &[]);
                }
            }
        }
        Ok(table)
    })
}

/// Measures the cost of each search.
async fn costs(
    store: &Store,
    connection: &mut Connection,
    searches: &[String],
) -> Outcome<Vec<Cost>> {
    for (search, count) in searches.iter().zip(FOUND_COUNTS) {
        let found = connection.get(&format!("/api/v1/data?{search}")).await?;
        let found: Value = serde_json::from_slice(&found)?;
        let found = found.get("credentials").and_then(Value::as_array);
        if found.map(Vec::len) != Some(count) {
            return Err(format!("{search} does not find {count} credentials").into());
        }
    }
    let mut costs: Vec<Cost> = searches.iter().map(|_| Cost::default()).collect();
    for round in 0..=ROUNDS {
        for (search, cost) in searches.iter().zip(&mut costs) {
            let path = format!("/api/v1/data?{search}");
            let requests = async {
                let mut times = Vec::new();
                for _ in 0..SEARCHES_PER_ROUND {
                    let begun = Instant::now();
                    connection.get(&path).await?;
                    times.push(micros(begun.elapsed()));
                }
                Ok(times)
            };
            let measured = load::measured(store.process_id(), None, requests).await?;
            if round > 0 {
                cost.add(measured);
            }
        }
    }
    Ok(costs)
}

const FIND_SIZE: usize = 100_000;

const SEARCHES_PER_ROUND: usize = 5;
