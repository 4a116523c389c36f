//! The cost of searches with few and with many results.

use std::time::Instant;

use serde_json::Value;

use crate::{
    Outcome,
    client::Connection,
    engine::Engine,
    load::{self, Cost},
    statistics::micros,
    store::{FOUND_COUNTS, Store, counted, found_path},
    table::Table,
};

/// Measures searches in a store of the largest of these sizes, alternately, on each engine.
pub(crate) fn measure(sizes: &[usize]) -> Outcome<Table> {
    let size = sizes.iter().max().copied().unwrap_or(SIZE);
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
            let turns = async {
                let mut times = Vec::new();
                for _ in 0..TURNS {
                    let begun = Instant::now();
                    connection.get(&path).await?;
                    times.push(micros(begun.elapsed()));
                }
                Ok(times)
            };
            let measured = load::measured(store.process_id(), None, turns).await?;
            if round > 0 {
                cost.add(measured);
            }
        }
    }
    Ok(costs)
}

const SIZE: usize = 100_000;
const ROUNDS: usize = 20;
const TURNS: usize = 5;
