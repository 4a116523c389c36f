//! What a search costs for few results and for many.

use std::time::Instant;

use serde_json::Value;

use crate::{
    Outcome,
    client::Connection,
    engine::Engine,
    statistics::{Sample, micros, number},
    store::{FOUND_COUNTS, Store, counted, found_path},
    table::{Table, no_aim},
};

/// Measures searches in a store of the largest of these sizes, in turns, on each engine.
pub(crate) fn measure(sizes: &[usize]) -> Outcome<Table> {
    let size = sizes.iter().max().copied().unwrap_or(SIZE);
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut table = Table::new(
            format!("{size} credentials"),
            &["", "results", "p50, µs", "p50/result, µs", "aim"],
        );
        for engine in Engine::all() {
            let store = Store::fill(&engine, size).await?;
            let mut connection = store.connect().await?;
            let paths = FOUND_COUNTS.map(|count| format!("path={}", found_path(count)));
            let texts = FOUND_COUNTS.map(|count| format!("name-like={}", counted(count)));
            for (what, searches) in [("by path", paths), ("by name-like", texts)] {
                let times = times(&mut connection, &searches).await?;
                for (count, times) in FOUND_COUNTS.into_iter().zip(times) {
                    let median = Sample::new(times).median();
                    table.row([
                        format!("{engine}: find {what}"),
                        count.to_string(),
                        format!("{median:.0}"),
                        format!("{:.2}", median / number(count)),
                        no_aim(),
                    ]);
                }
            }
        }
        Ok(table)
    })
}

/// The times of each search.
async fn times(connection: &mut Connection, searches: &[String]) -> Outcome<Vec<Vec<f64>>> {
    let mut times = vec![Vec::new(); searches.len()];
    for (search, count) in searches.iter().zip(FOUND_COUNTS) {
        let found = connection.get(&format!("/api/v1/data?{search}")).await?;
        let found: Value = serde_json::from_slice(&found)?;
        let found = found.get("credentials").and_then(Value::as_array);
        if found.map(Vec::len) != Some(count) {
            return Err(format!("{search} does not find {count} credentials").into());
        }
    }
    for round in 0..=ROUNDS {
        for (search, times) in searches.iter().zip(&mut times) {
            let begun = Instant::now();
            connection.get(&format!("/api/v1/data?{search}")).await?;
            if round > 0 {
                times.push(micros(begun.elapsed()));
            }
        }
    }
    Ok(times)
}

const SIZE: usize = 100_000;
const ROUNDS: usize = 100;
