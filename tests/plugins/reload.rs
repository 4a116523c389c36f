//! Plugins are replaced while the server runs: SIGHUP reloads the configuration of plugins, completely or not at all.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use keywright_harness::{Options, Response, Scrape, Server, Text, component};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

#[tokio::test]
async fn call_in_progress_finishes_with_the_old_plugin() {
    // The call must still be in progress when the plugins are replaced. On slower machines, this needs a longer deadline.
    for deadline_ms in [3_000, 30_000, 300_000] {
        if call_outlasts_a_reload(deadline_ms).await {
            return;
        }
    }
    panic!("no call was in flight while the plugins were reloaded");
}

/// Replaces the plugin during a call that runs until its deadline. Returns whether the call was still running after that.
async fn call_outlasts_a_reload(deadline_ms: u32) -> bool {
    let hostile = |settings: &str| {
        Options::default()
            .watched()
            .hostile(&format!("deadline_ms = {deadline_ms}"), settings)
    };
    let server = Server::start_with(&hostile("generate = \"loop\"")).await;
    let body = json!({"name": "/a", "type": "hostile", "parameters": {}});
    let request = server.authorized(Method::POST, "/api/v1/data");
    let started = tokio::spawn(Response::to(request.body(body.to_string())));
    let is_busy = |scrape: &Scrape| {
        let generate = [("lane", "generate")];
        scrape.sum("keywright_plugin_lane_threads_busy", &generate) == Some(1.0)
    };
    server
        .scrape_until(|scrape| is_busy(scrape) || started.is_finished())
        .await;
    assert_loaded(&server.reload_plugins(&hostile("")).await);
    server.generated("/b", "hostile", json!({})).await;
    let was_in_flight = !started.is_finished();
    let error = started.await.unwrap().expect(500).error();
    assert_eq!(
        error,
        format!("the plugin hostile exceeded its deadline of {deadline_ms} ms (deadline_ms)")
    );
    was_in_flight
}

#[tokio::test]
async fn removed_type_stays_readable_and_can_be_added_again() {
    let with = with_wireguard();
    let server = Server::start().await;
    let unknown = server.generate("/a", "wireguard", json!({})).await;
    unknown.expect(400);
    assert_loaded(&server.reload_plugins(&with).await);
    let made = server.generated("/a", "wireguard", json!({})).await;

    assert_loaded(&server.reload_plugins(&Options::default()).await);
    assert!(!types(&server).await.contains("wireguard"));
    let read = server.get("/api/v1/data?name=/a").await.expect(200);
    assert_eq!(read.json()["data"][0]["value"], made["value"]);
    server.regenerate("/a").await.expect(400);

    assert_loaded(&server.reload_plugins(&with).await);
    let again = server.regenerated("/a").await;
    assert_ne!(again["value"], made["value"]);
}

#[tokio::test]
async fn invalid_plugins_are_rejected_as_a_whole() {
    let server = Server::start().await;
    let before = types(&server).await;
    let mistaken = Options::default()
        .generator("absent", "component = \"nowhere.wasm\"")
        .generator(
            "hostile",
            &format!("component = \"{}\"", component("hostile").display()),
        )
        .random_generator("wireguard", &component("wireguard"));
    let expected = server.reload_plugins(&mistaken).await;
    expected.assert_contains("calls use the previous plugins");
    let log = server.log();
    for reason in ["nowhere.wasm", "the plugin hostile"] {
        log.assert_contains(reason);
    }
    assert_eq!(types(&server).await, before);
    server.generated("/a", "password", json!({})).await;

    // The next valid configuration is loaded.
    assert_loaded(&server.reload_plugins(&with_wireguard()).await);
}

#[tokio::test]
async fn unreadable_configuration_changes_nothing() {
    let server = Server::start().await;
    let nonsense = Options::default().extra("[plugin]\nfile = \"hunter2\"");
    let expected = server.reload_plugins(&nonsense).await;
    expected.assert_contains("calls use the previous plugins");
    assert!(!server.log().contains("hunter2"));
    server.generated("/a", "password", json!({})).await;
}

#[tokio::test]
async fn resolver_can_be_removed_and_added() {
    let server = Server::start().await;
    let document = json!({"VCAP_SERVICES": {}});
    let interpolate = "/api/v1/interpolate";
    for (options, status) in [
        (Options::default().without_resolver(), 501),
        (Options::default(), 200),
    ] {
        assert_loaded(&server.reload_plugins(&options).await);
        let response = server.post(interpolate, document.clone()).await;
        response.expect(status);
    }
}

fn with_wireguard() -> Options {
    Options::default().random_generator("wireguard", &component("wireguard"))
}

#[track_caller]
fn assert_loaded(expected: &str) {
    expected.assert_contains("reloaded the plugins");
}

/// Returns the types that can be generated.
async fn types(server: &Server) -> BTreeSet<String> {
    let response = server.get_json("/api/v1/types").await;
    let types = response["types"].as_array().unwrap().iter();
    types
        .map(|listed| listed["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The load is paced, not measured: a slow machine handles fewer requests per second, but the assertions stay the same.
#[tokio::test(flavor = "multi_thread")]
async fn reloads_under_load_fail_no_request_and_record_each_digest() {
    let files = TempDir::new().unwrap();
    let builds = MARKS.map(|mark| build(&files, mark));
    let server = Arc::new(Server::start_with(&options(&builds[0])).await);
    let load = Arc::new(Load::on(&server));
    let before = Instant::now();
    let swaps = async {
        let mut deployments = vec![Deployment::begin(before, &server).await];
        for number in 1..=SWAPS {
            load.generate_more(GENERATED_PER_DEPLOYMENT).await;
            let signalled_at = Instant::now();
            let build = options(&builds[number % builds.len()]);
            assert_loaded(&server.reload_plugins(&build).await);
            deployments.last_mut().unwrap().ended = Instant::now();
            deployments.push(Deployment::begin(signalled_at, &server).await);
        }
        load.generate_more(GENERATED_PER_DEPLOYMENT).await;
        load.end();
        deployments.last_mut().unwrap().ended = Instant::now() + LONGER_THAN_THE_TEST;
        deployments
    };
    let (outcome, deployments) = tokio::join!(load.run(), swaps);
    print(&outcome, &deployments);

    assert_eq!(outcome.failures, Vec::<String>::new());
    let mut found = 0;
    for (mark, build) in MARKS.iter().zip(&builds) {
        let digest = keywright_harness::digest(&fs::read(build).unwrap()).replace("sha256:", "");
        let names = names(&server, &digest).await;
        assert!(!names.is_empty(), "{mark}");
        for name in names {
            found += 1;
            let generated = &outcome.generated[&name];
            let marks = MARKS
                .iter()
                .filter(|mark| generated.value.get(mark).is_some());
            let marks: Vec<_> = marks.collect();
            assert_eq!(marks, [mark], "the server reports {digest} for {name}");
            let own = |deployment: &&Deployment| deployment.digest == digest;
            assert!(
                deployments
                    .iter()
                    .filter(own)
                    .any(|deployment| deployment.may_have_generated(generated)),
                "{name} was not generated while {digest} was configured"
            );
        }
    }
    assert_eq!(found, outcome.generated.len());
}

/// The period in which a component was configured.
struct Deployment {
    digest: String,
    /// A time before the server loaded it.
    began: Instant,
    /// A time after the server loaded the next one.
    ended: Instant,
}

impl Deployment {
    /// Starts the deployment of the configured component at this time.
    async fn begin(began: Instant, server: &Server) -> Self {
        Self {
            digest: server.plugin_digest(CREDENTIAL_TYPE).await,
            began,
            ended: began,
        }
    }

    /// Returns whether the component may have been configured at some time during this request.
    fn may_have_generated(&self, generated: &Generated) -> bool {
        generated.responded >= self.began && generated.begun <= self.ended
    }
}

fn print(outcome: &Outcome, deployments: &[Deployment]) {
    let per_second = |count: usize, time: Duration| {
        f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / time.as_secs_f64()
    };
    println!(
        "{} requests, {} swaps: offered {:.0} per second, completed {:.0} per second, {} were delayed",
        outcome.requests,
        deployments.len() - 1,
        per_second(1, PERIOD),
        per_second(outcome.requests, outcome.took),
        outcome.delayed,
    );
}

/// Builds the same plugin with one field of its values renamed to a mark, so that each value shows the build that generated
/// it.
fn build(files: &TempDir, mark: &str) -> PathBuf {
    let mut bytes = fs::read(component(CREDENTIAL_TYPE)).unwrap();
    let (field, marked) = (MARKED.as_bytes(), format!("\"{mark}\""));
    let mut positions = 0;
    for position in 0..bytes.len() - field.len() {
        if bytes[position..].starts_with(field) {
            bytes[position..position + field.len()].copy_from_slice(marked.as_bytes());
            positions += 1;
        }
    }
    assert_eq!(positions, 2);
    let path = files.path().join(mark);
    fs::write(&path, bytes).unwrap();
    path
}

/// Returns options of a server with such a build, and timeouts for slow machines.
fn options(build: &Path) -> Options {
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\"]\nlimits = {{ deadline_ms = 600000 }}",
        build.display()
    );
    Options::default()
        .generator(CREDENTIAL_TYPE, &section)
        .environment("KEYWRIGHT_LOG", "info")
        .environment("KEYWRIGHT_STORAGE__WAIT_SECONDS_MAX", "600")
}

/// Returns the names of the credentials that a component generated.
async fn names(server: &Server, digest: &str) -> BTreeSet<String> {
    let query = format!("/api/v1/data?generated_by={digest}");
    let found = server.get_json(&query).await;
    let found: &Vec<Value> = found["credentials"].as_array().unwrap();
    let names = found.iter().map(|found| found["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

/// The marks of the builds that alternate.
const MARKS: [&str; 3] = ["1st", "2nd", "3rd"];

/// The name of the field that each build replaces with its mark.
const MARKED: &str = "\"now\"";

const SWAPS: usize = 6;

/// The minimum number of credentials generated between two swaps: more than the concurrent requests.
const GENERATED_PER_DEPLOYMENT: usize = 100;

const LONGER_THAN_THE_TEST: Duration = Duration::from_hours(24);

/// A running load: requests alternate between generating a new credential and reading an earlier one.
struct Load {
    server: Arc<Server>,
    has_ended: AtomicBool,
    begun: AtomicUsize,
    generated: Mutex<BTreeMap<String, Generated>>,
    failures: Mutex<Vec<String>>,
}

/// A generated credential, and the time of its request.
#[derive(Clone)]
struct Generated {
    /// The value that later reads must return.
    pub(super) value: Value,
    /// The start of the request.
    pub(super) begun: Instant,
    /// The time of the response.
    pub(super) responded: Instant,
}

/// The result of a load.
struct Outcome {
    /// The generated credentials, by name.
    pub(super) generated: BTreeMap<String, Generated>,
    /// The unexpected responses.
    pub(super) failures: Vec<String>,
    pub(super) requests: usize,
    /// The number of requests that had to wait for the limit of concurrent requests.
    pub(super) delayed: usize,
    /// The time from the start of the first request to the last response.
    pub(super) took: Duration,
}

impl Load {
    /// Returns a load on a server, not yet started.
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
    /// [`REQUESTS_IN_PROGRESS_MAX`] are in progress starts as soon as one of these completes.
    pub(super) async fn run(self: &Arc<Self>) -> Outcome {
        let permits = Arc::new(Semaphore::new(REQUESTS_IN_PROGRESS_MAX));
        let mut requests = JoinSet::new();
        let mut delayed = 0;
        let mut due = interval(PERIOD);
        due.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let begun = Instant::now();
        while !self.has_ended.load(Ordering::Relaxed) {
            due.tick().await;
            delayed += usize::from(permits.available_permits() == 0);
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
            generated: lock(&self.generated).clone(),
            failures: lock(&self.failures).clone(),
            requests: self.begun.load(Ordering::Relaxed),
            delayed,
            took: begun.elapsed(),
        }
    }

    /// Waits until this many more credentials are generated. A failed request fails the test.
    pub(super) async fn generate_more(&self, count: usize) {
        let until = lock(&self.generated).len() + count;
        while lock(&self.generated).len() < until {
            assert_eq!(*lock(&self.failures), Vec::<String>::new());
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Stops starting requests.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Sends a request, and records the generated credential or the fault of the response.
    async fn request(&self, number: usize) {
        let newest = lock(&self.generated)
            .last_key_value()
            .map(|(name, generated)| (name.clone(), generated.clone()));
        match newest.filter(|_| number % 2 == 1) {
            Some((name, generated)) => self.read(&name, &generated).await,
            None => self.generate(format!("/load/{number:06}")).await,
        }
    }

    async fn generate(&self, name: String) {
        let begun = Instant::now();
        let response = self
            .server
            .generate(&name, CREDENTIAL_TYPE, json!({}))
            .await;
        if response.status != 200 {
            return self.failed(&name, &response);
        }
        let generated = Generated {
            value: response.json()["value"].take(),
            begun,
            responded: Instant::now(),
        };
        lock(&self.generated).insert(name, generated);
    }

    async fn read(&self, name: &str, generated: &Generated) {
        let path = format!("/api/v1/data?name={name}");
        let response = self.server.get(&path).await;
        if response.status != 200 || response.json()["data"][0]["value"] != generated.value {
            self.failed(name, &response);
        }
    }

    fn failed(&self, name: &str, response: &Response) {
        let reported = format!("{name}: {} {}", response.status, response.body);
        lock(&self.failures).push(reported);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const CREDENTIAL_TYPE: &str = "plain";

/// The time between two requests: 200 per second.
const PERIOD: Duration = Duration::from_millis(5);

/// The maximum number of concurrent requests. It is half of the server's limit per actor and of its plugin queue, so that
/// the server refuses no request: on a slow machine, the load waits instead.
const REQUESTS_IN_PROGRESS_MAX: usize = 128;
