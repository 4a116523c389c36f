//! Measures whether the times of reads and writes depend on a credential's number of versions.

use std::time::Instant;

use keywright_harness::Server;
use serde_json::{Value, json};

use crate::{
    server::{self, Connection},
    statistics::{Outcome, Sample, micros},
    store::Engine,
    table::{Table, Threshold},
};

/// Alternates between requests about a credential with many versions and the same requests about a credential that starts
/// with one version, on each engine.
pub(crate) fn measure() -> Outcome<Table> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut table = Table::new(
            format!(
                "a credential with {VERSIONS} versions compared with a credential with one version, {REQUESTS} requests each, alternating, medians in µs"
            ),
            &["", "1", &VERSIONS.to_string(), "ratio", "goal"],
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
    let mut connection = server::connect(&server).await?;
    for (name, versions) in [(ONE, 1), (MANY, VERSIONS)] {
        for _ in 0..versions {
            let body = server::set_body(name);
            connection.send(server::Request::set(&body)).await?;
        }
    }
    for request in requests(&server).await? {
        let [one, many] = request.times(&mut connection).await?;
        let [one, many] = [one.median(), many.median()];
        table.row([
            format!("{engine}: {}", request.what),
            format!("{one:.0}"),
            format!("{many:.0}"),
            format!("{:.3}", many / one),
            Threshold::AtMost(1.1).verdict(many / one),
        ]);
    }
    Ok(())
}

/// The same request about each of the two credentials.
struct Request {
    what: &'static str,
    about: [Operation; 2],
}

/// The kind of request.
enum Operation {
    Get(String),
    Put(Value),
}

impl Request {
    /// Returns the response times for the two credentials. The order alternates, so that neither always comes first.
    async fn times(&self, connection: &mut Connection) -> Outcome<[Sample; 2]> {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..WARMING_REQUESTS + REQUESTS {
            let mut sides: Vec<_> = self.about.iter().zip(&mut times).collect();
            if round % 2 == 1 {
                sides.reverse();
            }
            for (operation, times) in sides {
                let begun = Instant::now();
                match operation {
                    Operation::Get(path) => connection.get(path).await?,
                    Operation::Put(body) => connection.send(server::Request::set(body)).await?,
                };
                if round >= WARMING_REQUESTS {
                    times.push(micros(begun.elapsed()));
                }
            }
        }
        Ok(times.map(Sample::new))
    }
}

/// Reads by name and by id, a search, and a write. The write is last, because it adds versions to both credentials.
async fn requests(server: &Server) -> Outcome<Vec<Request>> {
    let data = |query: &str| [ONE, MANY].map(|name| format!("/api/v1/data?{query}={name}"));
    let current = data("name").map(|path| format!("{path}&current=true"));
    let newest = data("name").map(|path| format!("{path}&versions=1"));
    let mut by_id = Vec::new();
    for path in &newest {
        let found: Value = server.get(path).await.expect(200).json();
        let id = found.pointer("/data/0/id").and_then(Value::as_str);
        by_id.push(format!("/api/v1/data/{}", id.ok_or("a version has no id")?));
    }
    let by_id = <[String; 2]>::try_from(by_id).map_err(|_| "expected two versions")?;
    let reading = |what, paths: [String; 2]| Request {
        what,
        about: paths.map(Operation::Get),
    };
    Ok(vec![
        reading("GET by name, current=true", current),
        reading("GET by name, versions=1", newest),
        reading("GET by id", by_id),
        reading("find by name-like", data("name-like")),
        Request {
            what: "set",
            about: [ONE, MANY]
                .map(|name| json!({"name": name, "type": "json", "value": {"text": "v"}}))
                .map(Operation::Put),
        },
    ])
}

const ONE: &str = "/bench/versions/one-";
const MANY: &str = "/bench/versions/many";
const VERSIONS: usize = if cfg!(debug_assertions) { 100 } else { 10_000 };
const REQUESTS: usize = if cfg!(debug_assertions) { 50 } else { 2_000 };
const WARMING_REQUESTS: usize = if cfg!(debug_assertions) { 10 } else { 200 };
