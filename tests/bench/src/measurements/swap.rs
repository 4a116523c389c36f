//! Requests at a fixed rate, without and with repeated plugin reloads.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use keywright_harness::{Options, Server, component};
use serde_json::json;
use tempfile::TempDir;
use tokio::{sync::Semaphore, task::JoinSet, time::sleep};

use crate::{
    server::{self, Connection, Request, ServerAddress},
    statistics::{Outcome, Sample, millis, number},
    table::{Table, Threshold, no_goal},
};

/// Measures alternate generate and read requests, at 200 per second. Every reload brings a new component, which the
/// server compiles and tests for randomness while requests continue.
pub(crate) fn measure() -> Outcome<Table> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let files = server::directory()?;
        let cache = server::directory()?;
        let options = |build: &Path| {
            let cache = cache.path().join("plugins").display().to_string();
            configured(build).environment("KEYWRIGHT_PLUGINS__CACHE_DIRECTORY", &cache)
        };
        let first = options(&build(&files, 0)?);
        let server = Server::start_in(server::directory()?, &first).await;
        server::store_read(&server).await;
        let load = Arc::new(Load::connect(&server::address(&server)?).await?);
        load.run(&AtomicBool::new(false), WARMING).await?;
        let never = AtomicBool::new(false);
        let quiet = load.run(&never, MEASURED).await?;
        let swaps_ended = AtomicBool::new(false);
        let swaps = async {
            for number in 1..=SWAPS {
                let reported = server
                    .reload_plugins(&options(&build(&files, number)?))
                    .await;
                if !reported.contains("reloaded the plugins") {
                    return Err(reported.into());
                }
                sleep(BETWEEN_SWAPS).await;
            }
            swaps_ended.store(true, Ordering::Relaxed);
            Outcome::Ok(())
        };
        let (swapping, swaps) = tokio::join!(load.run(&swaps_ended, LONGEST), swaps);
        swaps?;
        Ok(table(&quiet, &swapping?))
    })
}

fn table(quiet: &Measured, swapping: &Measured) -> Table {
    let mut table = Table::new(
        format!(
            "alternating generate and read requests at {REQUESTS_PER_SECOND} per second; {SWAPS} swaps to new components"
        ),
        &["", "quiet", "while swapping", "ratio", "goal"],
    );
    let mut row = |what: String, figures: [f64; 2], threshold: Option<Threshold>| {
        let [quiet, swapping] = figures;
        table.row([
            what,
            format!("{quiet:.1}"),
            format!("{swapping:.1}"),
            if quiet > 0.0 {
                format!("{:.2}", swapping / quiet)
            } else {
                no_goal()
            },
            threshold.map_or_else(no_goal, |threshold| threshold.verdict(swapping)),
        ]);
    };
    let both = |figure: fn(&Measured) -> f64| [figure(quiet), figure(swapping)];
    row("requests".to_owned(), both(Measured::requests), None);
    row(
        "responses per second".to_owned(),
        both(Measured::per_second),
        None,
    );
    row(
        "failed".to_owned(),
        both(Measured::failed),
        Some(Threshold::AtMost(0.0)),
    );
    let times = [
        ("generate", quiet.generated_ms(), swapping.generated_ms()),
        ("get", quiet.read_ms(), swapping.read_ms()),
    ];
    for (what, quiet, swapping) in &times {
        for percent in [50, 99, 100] {
            row(
                if percent == 100 {
                    format!("{what}: longest, ms")
                } else {
                    format!("{what}: p{percent}, ms")
                },
                [quiet, swapping].map(|sample| sample.percentile(percent)),
                None,
            );
        }
    }
    table
}

/// The connections, and the number of requests so far.
struct Load {
    connections: Mutex<Vec<Connection>>,
    /// One permit per connection.
    permits: Arc<Semaphore>,
    address: ServerAddress,
    begun: AtomicUsize,
}

/// The results of requests.
#[derive(Default)]
struct Measured {
    generated_ms: Vec<f64>,
    read_ms: Vec<f64>,
    failed: usize,
    took: Duration,
}

/// The kind, success and time of a request.
struct Responded {
    is_generate: bool,
    is_failed: bool,
    took: Duration,
}

impl Load {
    async fn connect(address: &ServerAddress) -> Outcome<Self> {
        let mut connections = Vec::new();
        for _ in 0..REQUESTS_IN_PROGRESS_MAX {
            connections.push(Connection::open(address).await?);
        }
        Ok(Self {
            connections: Mutex::new(connections),
            permits: Arc::new(Semaphore::new(REQUESTS_IN_PROGRESS_MAX)),
            address: address.clone(),
            begun: AtomicUsize::new(0),
        })
    }

    /// Starts requests at fixed intervals, without waiting for responses, until `longest` has passed or `has_ended` is set.
    /// Then waits for all responses. Response times include delays by previous requests and waits for a connection, but not
    /// the delay of a late timer.
    async fn run(self: &Arc<Self>, has_ended: &AtomicBool, longest: Duration) -> Outcome<Measured> {
        let mut requests: JoinSet<Outcome<Responded>> = JoinSet::new();
        let mut measured = Measured::default();
        let begun = Instant::now();
        let mut due = begun;
        while !has_ended.load(Ordering::Relaxed) && begun.elapsed() < longest {
            due += Duration::from_secs(1) / REQUESTS_PER_SECOND;
            let wait = due.saturating_duration_since(Instant::now());
            sleep(wait).await;
            let counts_from = if wait.is_zero() { due } else { Instant::now() };
            let permit = Arc::clone(&self.permits).acquire_owned().await?;
            let load = Arc::clone(self);
            requests.spawn(async move {
                let responded = load.request(counts_from).await;
                drop(permit);
                responded
            });
            while let Some(responded) = requests.try_join_next() {
                measured.add(&responded??);
            }
        }
        while let Some(responded) = requests.join_next().await {
            measured.add(&responded??);
        }
        measured.took = begun.elapsed();
        Ok(measured)
    }

    async fn request(&self, counts_from: Instant) -> Outcome<Responded> {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        // A server closes idle connections.
        let idle = self.idle_connections().pop().filter(Connection::is_open);
        let mut connection = match idle {
            Some(connection) => connection,
            None => Connection::open(&self.address).await?,
        };
        let is_generate = number.is_multiple_of(2);
        let outcome = if is_generate {
            let body = json!({
                "name": format!("/bench/swap/{number}"),
                "type": TYPE,
            });
            connection.send(Request::generate(&body)).await
        } else {
            connection.get(server::READ).await
        };
        let took = counts_from.elapsed();
        match &outcome {
            Ok(_) => self.idle_connections().push(connection),
            Err(cause) => eprintln!("swap: {cause}"),
        }
        Ok(Responded {
            is_generate,
            is_failed: outcome.is_err(),
            took,
        })
    }

    fn idle_connections(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Measured {
    fn add(&mut self, responded: &Responded) {
        self.failed += usize::from(responded.is_failed);
        let times = if responded.is_generate {
            &mut self.generated_ms
        } else {
            &mut self.read_ms
        };
        times.push(millis(responded.took));
    }

    fn requests(&self) -> f64 {
        number(self.generated_ms.len() + self.read_ms.len())
    }

    fn per_second(&self) -> f64 {
        self.requests() / self.took.as_secs_f64()
    }

    fn failed(&self) -> f64 {
        number(self.failed)
    }

    fn generated_ms(&self) -> Sample {
        Sample::new(self.generated_ms.clone())
    }

    fn read_ms(&self) -> Sample {
        Sample::new(self.read_ms.clone())
    }
}

/// Returns options of a server with this build as its plugin of [`TYPE`].
fn configured(build: &Path) -> Options {
    let section = format!("component = \"{}\"\ngrants = [\"random\"]", build.display());
    server::options().generator(TYPE, &section)
}

/// Returns the shipped plugin with a custom section of this number, which WebAssembly ignores: a component with another digest.
fn build(files: &TempDir, number: u8) -> Outcome<PathBuf> {
    let mut bytes = fs::read(component(TYPE))?;
    // A custom section: the id 0, the size of its content, 2, the length of its name, 1, and the name.
    bytes.extend([0, 2, 1, b'a' + number]);
    let path = files.path().join(format!("{number}.wasm"));
    fs::write(&path, bytes)?;
    Ok(path)
}

/// The type whose plugin is swapped; the cost of its calls is mostly the sandbox's.
const TYPE: &str = "password";
const REQUESTS_PER_SECOND: u32 = 200;
const WARMING: Duration = Duration::from_secs(2);
const MEASURED: Duration = Duration::from_secs(15);
const SWAPS: u8 = 10;
const BETWEEN_SWAPS: Duration = Duration::from_secs(1);
/// Longer than all swaps take.
const LONGEST: Duration = Duration::from_mins(5);
/// The maximum number of concurrent requests: half of a server's limit per actor, and of its plugin queue.
const REQUESTS_IN_PROGRESS_MAX: usize = 128;
