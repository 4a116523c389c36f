//! Servers that are killed at random times under a mixed load of writes: every acknowledged write must survive, and no
//! write may be partial.
//!
//! A run uses one store for many rounds. In each round, [`worker`]s write until the server is killed. A worker owns
//! its names, so its expected state is exact: all acknowledged writes, and all or nothing of the request in progress. The
//! expected state of [`shared`] credentials is less exact, but no write may be lost or invented.
//!
//! A failed run prints its seed. With `KEYWRIGHT_TEST_SEED`, a run sends the same requests in the same order, with
//! kills after the same times. `KEYWRIGHT_TEST_ROUNDS` sets the number of rounds.
//!
//! Only processes are killed. The effects of a power failure are not tested.

mod certificates;
mod interrupted;
mod requests;
mod shared;
mod store;
mod worker;

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use keywright_harness::{Caller, until};
use rand::{RngExt, rngs::ChaCha12Rng};
use serde_json::Value;

use shared::Shared;
use store::{Engine, Seed, Store};
use worker::{RoundEvents, Worker};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive_a_hundred_kills_on_sqlite() {
    survive(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive_a_hundred_kills_on_postgres() {
    survive(Engine::Postgres).await;
}

async fn survive(engine: Engine) {
    let Some(store) = Store::new(engine) else {
        return;
    };
    let mut run = Run::new(store, Seed::of_this_run());
    let count = store::rounds(ROUNDS);
    let begun = Instant::now();
    for round in 1..=count {
        let is_crash = engine == Engine::Postgres && round.is_multiple_of(CRASH_INTERVAL);
        run.round(round, is_crash).await;
        if round.is_multiple_of(CHECK_INTERVAL) || round == count {
            run.store.check();
            run.print(&format!(
                "{engine:?}: {round} kills in {:?}",
                begun.elapsed()
            ));
        }
    }
    run.end().await;
    run.assert_meaningful(count);
}

/// A run, between two rounds.
struct Run {
    store: Store,
    choices: ChaCha12Rng,
    workers: Vec<Worker>,
    shared: Shared,
    trail: AuditTrail,
    /// The number of acknowledged writes.
    writes: usize,
}

impl Run {
    fn new(store: Store, seed: Seed) -> Self {
        Self {
            store,
            choices: seed.choices(0),
            workers: (1..=WORKERS)
                .map(|number| Worker::new(number, seed.choices(number)))
                .collect(),
            shared: Shared::default(),
            trail: AuditTrail::default(),
            writes: 0,
        }
    }

    /// Checks the state that the previous round left, lets all workers write, and kills the server. If `is_crash`, kills the database
    /// first.
    async fn round(&mut self, round: usize, is_crash: bool) {
        let server = self.store.start().await;
        let caller = server.as_client("developer").await;
        self.verify(&caller).await;
        if self.choices.random_ratio(1, 4) {
            self.shared.delete(&caller).await;
        }
        let events = Arc::new(RoundEvents::default());
        let workers = std::mem::take(&mut self.workers);
        let tasks: Vec<_> = workers
            .into_iter()
            .map(|mut worker| {
                let (caller, events) = (caller.clone(), Arc::clone(&events));
                tokio::spawn(async move {
                    worker.work(&caller, &events).await;
                    worker
                })
            })
            .collect();
        // Each kill comes after writes, even on the slowest machine.
        let is_over = || tasks.iter().any(tokio::task::JoinHandle::is_finished);
        until("writes", async || {
            events.writes() >= WRITES_MIN || is_over()
        })
        .await;
        let load_ms = self.choices.random_range(LOAD_MS);
        tokio::time::sleep(Duration::from_millis(load_ms)).await;
        if is_crash {
            events.stop_database();
            self.store.crash_database();
            self.store.start_database();
        }
        events.kill();
        self.store.kill(server).await;
        for worker in tasks {
            let worker = worker.await;
            self.workers
                .push(worker.unwrap_or_else(|cause| panic!("round {round}: {cause}")));
        }
        self.verify_trail();
    }

    /// Asserts that the changed locations have exactly the expected records.
    async fn verify(&mut self, caller: &Caller) {
        let mut writes = Vec::new();
        for worker in &mut self.workers {
            worker.verify_changed(caller).await;
            writes.append(&mut worker.shared);
        }
        self.shared.verify(caller, writes).await;
    }

    /// Asserts that the audit trail contains the acknowledged requests.
    fn verify_trail(&mut self) {
        let workers = self.workers.iter_mut();
        let acknowledged: Vec<String> = workers
            .flat_map(|worker| worker.acknowledged.drain(..))
            .collect();
        self.writes += acknowledged.len();
        self.trail.verify(self.store.directory(), &acknowledged);
    }

    /// Asserts that the whole store has exactly the expected records.
    async fn end(&mut self) {
        let server = self.store.start().await;
        let caller = server.as_client("developer").await;
        self.verify(&caller).await;
        for worker in &mut self.workers {
            worker.verify_everything(&caller).await;
        }
        self.store.kill(server).await;
    }

    /// Asserts that kills happened during writes, both before and after their commit: a run without writes proves
    /// nothing.
    fn assert_meaningful(&self, kills: usize) {
        let (done, undone) = self.interrupted();
        assert!(
            self.writes > kills,
            "{} writes in {kills} rounds",
            self.writes
        );
        if kills >= ROUNDS {
            assert!(
                done > 0 && undone > 0,
                "in progress: {done} took effect, {undone} did not"
            );
        }
    }

    /// Returns how many writes in progress at a kill took effect, and how many did not.
    fn interrupted(&self) -> (usize, usize) {
        let interrupted = self.workers.iter().map(|worker| worker.interrupted);
        interrupted.fold((0, 0), |(done, undone), of_worker| {
            (done + of_worker.done, undone + of_worker.undone)
        })
    }

    fn print(&self, kills: &str) {
        let writes = self.writes;
        let (done, undone) = self.interrupted();
        println!(
            "{kills}; acknowledged: {writes}; in progress: {done} took effect, {undone} did not"
        );
    }
}

/// The default number of rounds.
const ROUNDS: usize = 100;

const WORKERS: usize = 6;

/// The minimum number of acknowledged writes before a kill.
const WRITES_MIN: usize = 2;

/// The time between these writes and the kill, in milliseconds.
const LOAD_MS: std::ops::Range<u64> = 20..250;

/// The number of rounds between complete checks.
const CHECK_INTERVAL: usize = 25;

/// The database is killed in one of this many rounds.
const CRASH_INTERVAL: usize = 10;

/// The part of an audit trail that was read so far.
#[derive(Debug, Default)]
struct AuditTrail {
    bytes_read: usize,
}

impl AuditTrail {
    /// Asserts that the lines added since the last call contain all these requests. The last line may be incomplete if
    /// the server was killed while writing it.
    pub(super) fn verify(&mut self, directory: &Path, acknowledged: &[String]) {
        let trail = fs::read(directory.join("audit.log")).unwrap();
        let added = &trail[self.bytes_read..];
        self.bytes_read = trail.len();
        let lines = added.split(|byte| *byte == b'\n');
        let lines: Vec<&[u8]> = lines.filter(|line| !line.is_empty()).collect();
        let mut request_ids = BTreeSet::new();
        for (position, line) in lines.iter().enumerate() {
            match serde_json::from_slice::<Value>(line) {
                Ok(event) => {
                    request_ids.insert(event["request_id"].as_str().unwrap().to_owned());
                }
                Err(cause) => {
                    let line = String::from_utf8_lossy(line);
                    assert_eq!(position + 1, lines.len(), "{cause} in {line}");
                }
            }
        }
        for request_id in acknowledged {
            assert!(
                request_ids.contains(request_id),
                "no event has the id {request_id}"
            );
        }
    }
}
