//! Sends requests to a server and measures their cost: time, processor time, context switches and flushes.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{
    disk::Disk,
    process::{ThreadUsages, Usage},
    server::{Connection, Request, ServerAddress},
    statistics::{Outcome, Sample, micros, number},
};

/// A server under measurement.
pub(crate) struct Side {
    pub(crate) name: &'static str,
    pub(crate) address: ServerAddress,
    pub(crate) process_id: u32,
}

/// Returns a request, given the numbers of the client and of the request.
pub(crate) type MakeRequest = fn(usize, usize) -> Request;

/// The pace of requests.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    /// This many concurrent clients, each with its own connection and one request at a time.
    Clients(usize),
    /// One connection, at this rate.
    PerSecond(u32),
}

/// The cost of one round of requests.
struct Round {
    /// The time of each request, in microseconds.
    micros: Vec<f64>,
    duration: Duration,
    usage: Usage,
    flushes: u64,
}

/// The cost of requests in several rounds. Every figure except the times is the median of the rounds.
#[derive(Default)]
pub(crate) struct Cost(Vec<Round>);

impl Cost {
    /// Responses per second.
    pub(crate) fn per_second(&self) -> f64 {
        self.median(|round| number(round.micros.len()) / round.duration.as_secs_f64())
    }

    /// Returns the server's processor time per request, in microseconds.
    pub(crate) fn processor_micros(&self) -> f64 {
        self.median(|round| micros(round.usage.processor) / number(round.micros.len()))
    }

    /// Returns the server's voluntary context switches per request.
    pub(crate) fn switches(&self) -> f64 {
        self.median(|round| float(round.usage.switches) / number(round.micros.len()))
    }

    /// Returns disk flushes per request; 0 if they were not counted.
    pub(crate) fn flushes(&self) -> f64 {
        self.median(|round| float(round.flushes) / number(round.micros.len()))
    }

    /// Returns the times of all requests, in microseconds.
    pub(crate) fn times(&self) -> Sample {
        let rounds = self.0.iter().flat_map(|round| &round.micros);
        Sample::new(rounds.copied().collect())
    }

    fn median(&self, figure: impl Fn(&Round) -> f64) -> f64 {
        Sample::new(self.0.iter().map(figure).collect()).median()
    }

    /// Adds a round of requests.
    pub(crate) fn add(&mut self, round: Measured) {
        self.0.push(round.0);
    }
}

/// A measured round, which the caller adds to a [`Cost`] or discards as warm-up.
pub(crate) struct Measured(Round);

/// Measures a process while requests run. The future returns the time of each request in microseconds.
pub(crate) async fn measured(
    process_id: u32,
    disk: Option<&Disk>,
    requests: impl Future<Output = Outcome<Vec<f64>>>,
) -> Outcome<Measured> {
    let flushes = || disk.map_or(Ok(0), Disk::flushes);
    let (usages, flushes_before, start) =
        (ThreadUsages::of(process_id)?, flushes()?, Instant::now());
    let micros = requests.await?;
    let duration = start.elapsed();
    Ok(Measured(Round {
        micros,
        duration,
        usage: ThreadUsages::of(process_id)?.since(&usages),
        flushes: flushes()? - flushes_before,
    }))
}

/// Sends and measures one round of requests on new connections.
pub(crate) async fn round(
    side: &Side,
    disk: &Disk,
    pace: Pace,
    request: MakeRequest,
) -> Outcome<Measured> {
    match pace {
        Pace::Clients(clients) => {
            let mut connections = Vec::new();
            for _ in 0..clients {
                connections.push(Connection::open(&side.address).await?);
            }
            let requests = send_concurrently(connections, request);
            measured(side.process_id, Some(disk), requests).await
        }
        Pace::PerSecond(per_second) => thread::scope(|scope| {
            let paced = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                runtime.block_on(async {
                    let connection = Connection::open(&side.address).await?;
                    let requests = send_at_rate(connection, per_second, request);
                    measured(side.process_id, Some(disk), requests).await
                })
            });
            paced.join().map_err(|_| "the client panicked")?
        }),
    }
}

async fn send_concurrently(
    connections: Vec<Connection>,
    request: MakeRequest,
) -> Outcome<Vec<f64>> {
    let end = Instant::now() + ROUND_DURATION;
    let clients = connections
        .into_iter()
        .enumerate()
        .map(|(client, mut connection)| {
            tokio::spawn(async move {
                let mut times = Vec::new();
                while Instant::now() < end {
                    let request = request(client, times.len());
                    let start = Instant::now();
                    connection.send(request).await?;
                    times.push(micros(start.elapsed()));
                }
                Outcome::Ok(times)
            })
        });
    let mut times = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        times.extend(client.await??);
    }
    Ok(times)
}

/// Sends requests at a fixed rate and blocks the thread in between. If the previous response arrives after a request is due, the
/// request's time starts when it was due; otherwise it starts when the request is sent, so a late wake-up does not count.
async fn send_at_rate(
    mut connection: Connection,
    per_second: u32,
    request: MakeRequest,
) -> Outcome<Vec<f64>> {
    let mut times = Vec::new();
    let mut due = Instant::now();
    for number in 0..REQUESTS_AT_RATE {
        due += Duration::from_secs(1) / per_second;
        let wait = due.saturating_duration_since(Instant::now());
        thread::sleep(wait);
        let start = if wait.is_zero() { due } else { Instant::now() };
        connection.send(request(0, number)).await?;
        times.push(micros(start.elapsed()));
    }
    Ok(times)
}

fn float(count: u64) -> f64 {
    number(usize::try_from(count).unwrap_or(usize::MAX))
}

const ROUND_DURATION: Duration = Duration::from_secs(1);
const REQUESTS_AT_RATE: usize = 500;
