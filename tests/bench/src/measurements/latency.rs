//! The latency of reads, alone and while RSA-4096 keys are made.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use hyper::Method;
use keywright_harness::Server;
use serde_json::json;
use tokio::task::JoinSet;

use crate::{
    Outcome,
    client::Connection,
    process::processor_time,
    server,
    statistics::{Sample, micros},
    table::{Aim, Table, no_aim},
};

/// Measures reads at a fixed rate, in turns without and with a storm of key generations.
pub(crate) fn measure() -> Outcome<Table> {
    let runtime = tokio::runtime::Runtime::new()?;
    let server = runtime.block_on(server::start())?;
    let path = runtime.block_on(server::store_kibibyte(&server));
    let mut reader = Reader::connect(&server, path)?;
    reader.read(WARMING_READS)?;
    let keys = Arc::new(AtomicUsize::new(0));
    let mut alone = Vec::new();
    let mut in_storm = Vec::new();
    for _ in 0..ROUNDS {
        wait_until_idle(&server)?;
        alone.extend(reader.read(READS_A_ROUND)?);
        let mut storm = runtime.block_on(begin_storm(&server, &keys))?;
        in_storm.extend(reader.read(READS_A_ROUND)?);
        if let Some(ended) = storm.try_join_next() {
            ended??;
        }
    }
    let mut table = Table::new(
        format!(
            "GET by name at {READS_PER_SECOND}/s, {} reads each, µs; the storm: {CALLERS} callers, {} RSA-4096 keys",
            alone.len(),
            keys.load(Ordering::Relaxed)
        ),
        &["", "alone", "in the storm", "ratio", "aim"],
    );
    let (alone, in_storm) = (Sample::new(alone), Sample::new(in_storm));
    for (percent, aim) in [(50, None), (99, Some(Aim::AtMost(3.0))), (100, None)] {
        let (alone, in_storm) = (alone.percentile(percent), in_storm.percentile(percent));
        table.row([
            if percent == 100 {
                "longest".to_owned()
            } else {
                format!("p{percent}")
            },
            format!("{alone:.0}"),
            format!("{in_storm:.0}"),
            format!("{:.2}", in_storm / alone),
            aim.map_or_else(no_aim, |aim: Aim| aim.verdict(in_storm / alone)),
        ]);
    }
    Ok(table)
}

/// Reads on one connection at a fixed rate, on the thread that asks for it alone.
struct Reader {
    runtime: tokio::runtime::Runtime,
    connection: Connection,
    path: String,
}

impl Reader {
    fn connect(server: &Server, path: String) -> Outcome<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let connection = runtime.block_on(server::connect(server))?;
        Ok(Self {
            runtime,
            connection,
            path,
        })
    }

    /// The time of each read. A read that was due before the last one was answered counts from when it was due; for any
    /// other it does not count how late this thread woke up.
    fn read(&mut self, reads: usize) -> Outcome<Vec<f64>> {
        let mut times = Vec::new();
        let mut due = Instant::now();
        for _ in 0..reads {
            due += Duration::from_secs(1) / READS_PER_SECOND;
            let wait = due.saturating_duration_since(Instant::now());
            thread::sleep(wait);
            let begun = if wait.is_zero() { due } else { Instant::now() };
            self.runtime.block_on(self.connection.get(&self.path))?;
            times.push(micros(begun.elapsed()));
        }
        Ok(times)
    }
}

/// Begins with callers that have RSA-4096 keys made, each one after the other, until the set is dropped.
async fn begin_storm(server: &Server, keys: &Arc<AtomicUsize>) -> Outcome<JoinSet<Outcome<()>>> {
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let connection = server::connect(server).await?;
        callers.spawn(generate(
            connection,
            format!("/bench/storm/{caller}"),
            Arc::clone(keys),
        ));
    }
    tokio::time::sleep(STORM_BEGINS).await;
    Ok(callers)
}

async fn generate(mut connection: Connection, name: String, keys: Arc<AtomicUsize>) -> Outcome<()> {
    let body = json!({
        "name": name,
        "type": "rsa",
        "mode": "overwrite",
        "parameters": {"key_length": 4096},
    });
    loop {
        connection.send(Method::POST, &body).await?;
        keys.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits until the server computes no more.
fn wait_until_idle(server: &Server) -> Outcome<()> {
    loop {
        let before = processor_time(server.process_id())?;
        thread::sleep(IDLE_WATCHED);
        if processor_time(server.process_id())?.saturating_sub(before) * 20 < IDLE_WATCHED {
            return Ok(());
        }
    }
}

const ROUNDS: usize = 5;
const READS_A_ROUND: usize = 500;
const READS_PER_SECOND: u32 = 200;
const WARMING_READS: usize = 200;
const CALLERS: usize = 16;
const STORM_BEGINS: Duration = Duration::from_millis(500);
const IDLE_WATCHED: Duration = Duration::from_millis(500);
