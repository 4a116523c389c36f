//! Rounds of writing, killing and looking, on one store.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use keywright_harness::Caller;
use rand::{RngExt, rngs::ChaCha12Rng};

use super::{
    audit::AuditTrail,
    seed::{self, Seed},
    shared::Shared,
    store::{Engine, Store},
    worker::{Fate, Worker},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_on_sqlite_survives_a_hundred_kills() {
    survive(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_on_postgres_survives_a_hundred_kills() {
    survive(Engine::Postgres).await;
}

async fn survive(engine: Engine) {
    let Some(store) = Store::new(engine) else {
        return;
    };
    let mut run = Run::new(store, Seed::of_this_run());
    let count = seed::rounds(ROUNDS);
    let begun = Instant::now();
    for round in 1..=count {
        let is_crash = engine == Engine::Postgres && round.is_multiple_of(CRASH_INTERVAL);
        run.round(round, is_crash).await;
        if round.is_multiple_of(CHECK_INTERVAL) || round == count {
            run.store.check();
            run.tell(&format!(
                "{engine:?}: {round} kills in {:?}",
                begun.elapsed()
            ));
        }
    }
    run.end().await;
    run.was_telling(count);
}

/// A run, between two rounds.
struct Run {
    store: Store,
    choices: ChaCha12Rng,
    workers: Vec<Worker>,
    shared: Shared,
    trail: AuditTrail,
    /// How many writes were acknowledged.
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

    /// Looks whether everything is as the last round left it, has all workers write, and kills the server, or the database
    /// before it.
    async fn round(&mut self, round: usize, is_crash: bool) {
        let server = self.store.start().await;
        let caller = server.as_client("developer").await;
        self.verify(&caller).await;
        if self.choices.random_ratio(1, 4) {
            self.shared.delete(&caller).await;
        }
        let fate = Arc::new(Fate::default());
        let workers = std::mem::take(&mut self.workers);
        let at_work: Vec<_> = workers
            .into_iter()
            .map(|mut worker| {
                let (caller, fate) = (caller.clone(), Arc::clone(&fate));
                tokio::spawn(async move {
                    worker.work(&caller, &fate).await;
                    worker
                })
            })
            .collect();
        // Each kill comes after writes, on the slowest machine, too.
        while fate.writes() < WRITES_MIN && at_work.iter().all(|worker| !worker.is_finished()) {
            tokio::time::sleep(POLL).await;
        }
        let load_ms = self.choices.random_range(LOAD_MS);
        tokio::time::sleep(Duration::from_millis(load_ms)).await;
        if is_crash {
            fate.take_database();
            self.store.crash_database();
            self.store.start_database();
        }
        fate.kill();
        self.store.kill(server).await;
        for worker in at_work {
            let worker = worker.await;
            self.workers
                .push(worker.unwrap_or_else(|cause| panic!("round {round}: {cause}")));
        }
        self.verify_trail();
    }

    /// Asserts that all is there that must be, and nothing else, in what has changed.
    async fn verify(&mut self, caller: &Caller) {
        let mut writes = Vec::new();
        for worker in &mut self.workers {
            worker.verify_changed(caller).await;
            writes.append(&mut worker.shared);
        }
        self.shared.verify(caller, writes).await;
    }

    /// Asserts that the audit trail tells of what was acknowledged.
    fn verify_trail(&mut self) {
        let workers = self.workers.iter_mut();
        let acknowledged: Vec<String> = workers
            .flat_map(|worker| worker.acknowledged.drain(..))
            .collect();
        self.writes += acknowledged.len();
        self.trail.verify(self.store.directory(), &acknowledged);
    }

    /// Asserts that all is there that must be, and nothing else, in the whole store.
    async fn end(&mut self) {
        let server = self.store.start().await;
        let caller = server.as_client("developer").await;
        self.verify(&caller).await;
        for worker in &mut self.workers {
            worker.verify_everything(&caller).await;
        }
        self.store.kill(server).await;
    }

    /// Asserts that the kills came between writes, and some of them in the middle of one, before and after it was done: a run
    /// in which nothing was written shows nothing.
    fn was_telling(&self, kills: usize) {
        let (done, undone) = self.interrupted();
        assert!(
            self.writes > kills,
            "{} writes in {kills} rounds",
            self.writes
        );
        if kills >= ROUNDS {
            assert!(
                done > 0 && undone > 0,
                "under way and done: {done}, not done: {undone}"
            );
        }
    }

    /// How many writes that were under way at a kill were done, and how many were not.
    fn interrupted(&self) -> (usize, usize) {
        let interrupted = self.workers.iter().map(|worker| worker.interrupted);
        interrupted.fold((0, 0), |(done, undone), of_worker| {
            (done + of_worker.done, undone + of_worker.undone)
        })
    }

    /// Prints what was shown.
    fn tell(&self, kills: &str) {
        let writes = self.writes;
        let (done, undone) = self.interrupted();
        println!("{kills}; acknowledged: {writes}; under way and done: {done}, not done: {undone}");
    }
}

/// How many rounds there are, unless the run is told otherwise.
const ROUNDS: usize = 100;

const WORKERS: usize = 6;

/// How many writes are acknowledged before a kill, at least.
const WRITES_MIN: usize = 2;

const POLL: Duration = Duration::from_millis(1);

/// For how long the workers go on writing then, in milliseconds.
const LOAD_MS: std::ops::Range<u64> = 20..250;

/// After so many rounds each, everything is checked.
const CHECK_INTERVAL: usize = 25;

/// In one of so many rounds, it is the database that ends.
const CRASH_INTERVAL: usize = 10;
