//! A load of requests at a fixed rate, independent of the responses to earlier requests.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use keywright_harness::{Answer, Server};
use serde_json::{Value, json};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

/// A running load: requests alternate between generating a new credential and reading an earlier one.
pub(super) struct Load {
    server: Arc<Server>,
    has_ended: AtomicBool,
    begun: AtomicUsize,
    generated: Mutex<BTreeMap<String, Generated>>,
    failures: Mutex<Vec<String>>,
}

/// A credential that was generated, and when.
#[derive(Clone)]
pub(super) struct Generated {
    /// The value that later reads must return.
    pub(super) value: Value,
    /// The start of the request.
    pub(super) begun: Instant,
    /// The time of the response.
    pub(super) answered: Instant,
}

/// The result of a load.
pub(super) struct Outcome {
    /// The generated credentials, by name.
    pub(super) generated: BTreeMap<String, Generated>,
    /// The unexpected responses.
    pub(super) failures: Vec<String>,
    /// The number of requests.
    pub(super) requests: usize,
    /// The number of requests that had to wait for the limit of concurrent requests.
    pub(super) held_back: usize,
    /// The time from the start of the first request to the last response.
    pub(super) took: Duration,
}

impl Load {
    /// A load on a server, not yet started.
    pub(super) fn on(server: &Arc<Server>) -> Self {
        Self {
            server: Arc::clone(server),
            has_ended: AtomicBool::new(false),
            begun: AtomicUsize::new(0),
            generated: Mutex::default(),
            failures: Mutex::default(),
        }
    }

    /// Starts a request every [`PERIOD`] until stopped, and waits for the responses. A request due while
    /// [`UNDER_WAY_MAX`] are in progress starts as soon as one of these completes.
    pub(super) async fn run(self: &Arc<Self>) -> Outcome {
        let permits = Arc::new(Semaphore::new(UNDER_WAY_MAX));
        let mut requests = JoinSet::new();
        let mut held_back = 0;
        let mut due = interval(PERIOD);
        due.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let begun = Instant::now();
        while !self.has_ended.load(Ordering::Relaxed) {
            due.tick().await;
            held_back += usize::from(permits.available_permits() == 0);
            let permit = Arc::clone(&permits).acquire_owned().await.unwrap();
            let load = Arc::clone(self);
            let number = self.begun.fetch_add(1, Ordering::Relaxed);
            requests.spawn(async move {
                load.request(number).await;
                drop(permit);
            });
            while let Some(ended) = requests.try_join_next() {
                ended.unwrap();
            }
        }
        requests.join_all().await;
        Outcome {
            generated: held(&self.generated).clone(),
            failures: held(&self.failures).clone(),
            requests: self.begun.load(Ordering::Relaxed),
            held_back,
            took: begun.elapsed(),
        }
    }

    /// Waits until this many more credentials are generated. A failed request fails the test.
    pub(super) async fn generate_more(&self, count: usize) {
        let until = held(&self.generated).len() + count;
        while held(&self.generated).len() < until {
            assert_eq!(*held(&self.failures), Vec::<String>::new());
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Stops starting requests.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Sends a request, and records the generated credential or the fault of the response.
    async fn request(&self, number: usize) {
        let newest = held(&self.generated)
            .last_key_value()
            .map(|(name, generated)| (name.clone(), generated.clone()));
        match newest.filter(|_| number % 2 == 1) {
            Some((name, generated)) => self.read(&name, &generated).await,
            None => self.generate(format!("/load/{number:06}")).await,
        }
    }

    async fn generate(&self, name: String) {
        let begun = Instant::now();
        let answer = self
            .server
            .generate(&name, CREDENTIAL_TYPE, json!({}))
            .await;
        if answer.status != 200 {
            return self.failed(&name, &answer);
        }
        let generated = Generated {
            value: answer.json()["value"].take(),
            begun,
            answered: Instant::now(),
        };
        held(&self.generated).insert(name, generated);
    }

    async fn read(&self, name: &str, generated: &Generated) {
        let path = format!("/api/v1/data?name={name}");
        let answer = self.server.get(&path).await;
        if answer.status != 200 || answer.json()["data"][0]["value"] != generated.value {
            self.failed(name, &answer);
        }
    }

    fn failed(&self, name: &str, answer: &Answer) {
        let reported = format!("{name}: {} {}", answer.status, answer.body);
        held(&self.failures).push(reported);
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The type of the generated credentials.
pub(super) const CREDENTIAL_TYPE: &str = "plain";

/// The time between two requests: 200 per second.
pub(super) const PERIOD: Duration = Duration::from_millis(5);

/// The maximum number of concurrent requests. It is half of the server's limit per actor and of its plugin queue: on a
/// machine too slow for the load, the load waits, and a refused request is a failure there too.
const UNDER_WAY_MAX: usize = 128;
