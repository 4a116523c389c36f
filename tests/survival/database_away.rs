//! PostgreSQL is stopped and started under load: no acknowledged write is lost, and the server recovers by itself.

use std::{
    collections::HashMap,
    io::Write,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use keywright_harness::{Options, Response, Server, until};
use keywright_test_postgres::PostgresServer;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

/// Terminates all connections of servers to a database.
const CUT: &str = "select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'keywright' and datname = current_database()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_write_is_lost_when_the_database_stops_or_crashes() {
    let Some(postgres) = PostgresServer::start() else {
        return;
    };
    let load = Load::start(&postgres.new_database()).await;
    for end in [PostgresServer::stop, PostgresServer::crash] {
        load.wait_for_writes_at_each_server().await;
        end(&postgres);
        load.wait_until_each_server_refuses().await;
        load.wait_for_health("DOWN").await;
        postgres.start_again();
        load.wait_for_writes_at_each_server().await;
        load.wait_for_health("UP").await;
    }
    load.end().await.assert_nothing_is_lost().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terminated_connections_are_reopened() {
    let Some(postgres) = PostgresServer::start() else {
        return;
    };
    let url = postgres.new_database();
    let load = Load::start(&url).await;
    for _ in 0..5 {
        load.wait_for_writes_at_each_server().await;
        postgres.run_at(&url, CUT);
    }
    load.wait_for_writes_at_each_server().await;
    load.wait_for_health("UP").await;
    load.end().await.assert_nothing_is_lost().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_temporarily_read_only_database_still_serves_reads() {
    let Some(postgres) = PostgresServer::start() else {
        return;
    };
    let url = postgres.new_database();
    let name = postgres.run_at(&url, "select current_database()");
    let elsewhere = postgres.new_database();
    let set = |rest: &str| postgres.run_at(&elsewhere, &format!("alter database {name} {rest}"));
    let load = Load::start(&url).await;
    load.wait_for_writes_at_each_server().await;
    set("set default_transaction_read_only = on");
    // As after a failover: each new connection reaches a read-only database.
    postgres.run_at(&url, CUT);
    load.wait_until_each_server_refuses().await;
    load.assert_reads_continue().await;
    load.wait_for_health("UP").await;
    // The open connections are still read-only, so the servers must not use them again.
    set("reset default_transaction_read_only");
    load.wait_for_writes_at_each_server().await;
    load.end().await.assert_nothing_is_lost().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_time_out_while_the_database_hangs() {
    let Some(postgres) = PostgresServer::start() else {
        return;
    };
    let load = Load::start(&postgres.new_database()).await;
    load.wait_for_writes_at_each_server().await;
    postgres.freeze();
    load.wait_until_each_server_refuses().await;
    load.wait_for_health("DOWN").await;
    postgres.thaw();
    load.wait_for_writes_at_each_server().await;
    load.wait_for_health("UP").await;
    load.end().await.assert_nothing_is_lost().await;
}

const SERVERS: usize = 3;
const CLIENTS_PER_SERVER: usize = 4;
/// The servers' maximum wait for the database.
const WAIT_SECONDS_MAX: u64 = 2;
/// The maximum time for a response on a busy machine. It detects a server that waits forever.
const RESPONSE_MAX: Duration = Duration::from_mins(2);
/// The number of responses of each server that a test waits for.
const RESPONSES_AWAITED: u64 = 12;
/// The number of reads to wait for, and the maximum number of failed reads per server: a slow machine may delay one per
/// client.
const READS_AWAITED: u64 = 100;
const READS_REFUSED_MAX: u64 = CLIENTS_PER_SERVER as u64;
/// The number of restarts of a server that finds the database too slow within its wait of two seconds.
const STARTS_MAX: usize = 30;
/// The number of writes of a client to one name before it uses the next name.
const WRITES_PER_NAME: usize = 3;

/// Three servers on one database, with active clients.
struct Load {
    servers: Vec<Arc<Server>>,
    counts: Arc<[Counts; SERVERS]>,
    is_ending: Arc<AtomicBool>,
    clients: JoinSet<Responses>,
}

/// The responses of one server.
#[derive(Default)]
struct Counts {
    written: AtomicU64,
    read: AtomicU64,
    refused: AtomicU64,
    /// The failed reads.
    reads_refused: AtomicU64,
    /// Responses that must never occur.
    wrong: Mutex<Vec<String>>,
    slowest: Mutex<Duration>,
}

/// The responses to clients.
#[derive(Default)]
struct Responses {
    /// The id and the value of each acknowledged version.
    acknowledged: HashMap<String, Value>,
    /// The values per name that may have been written without an acknowledgement.
    in_doubt: HashMap<String, Vec<Value>>,
    /// The acknowledged versions per name, oldest first.
    names: HashMap<String, Vec<String>>,
}

/// The expected state after the load.
struct Ended {
    servers: Vec<Arc<Server>>,
    responses: Responses,
}

impl Load {
    pub(super) async fn start(url: &str) -> Self {
        let storage = format!("url = \"{url}\"\nwait_seconds_max = {WAIT_SECONDS_MAX}");
        let options = Options::default().storage(&storage);
        let first = async || Server::try_start_in(TempDir::new().unwrap(), &options).await;
        let first = repeatedly(first).await;
        let another = || repeatedly(async || first.try_start_another().await);
        let (second, third) = tokio::join!(another(), another());
        let servers: Vec<_> = [first, second, third].map(Arc::new).into();
        let counts: Arc<[Counts; SERVERS]> = Arc::default();
        let is_ending = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for (number, server) in servers.iter().enumerate() {
            for client in 0..CLIENTS_PER_SERVER {
                let client = Client {
                    server: Arc::clone(server),
                    number,
                    folder: format!("/{number}/{client}"),
                    counts: Arc::clone(&counts),
                    newest: None,
                    responses: Responses::default(),
                };
                clients.spawn(client.work(Arc::clone(&is_ending)));
            }
        }
        Self {
            servers,
            counts,
            is_ending,
            clients,
        }
    }

    /// Waits until each server has acknowledged writes started from now on, and served reads.
    pub(super) async fn wait_for_writes_at_each_server(&self) {
        let begun = Instant::now();
        self.wait_for("writes", |counts| &counts.written).await;
        self.wait_for("reads", |counts| &counts.read).await;
        let _ = writeln!(
            std::io::stderr(),
            "all servers write again after {:?}",
            begun.elapsed()
        );
    }

    /// Waits until each server has rejected requests from now on.
    pub(super) async fn wait_until_each_server_refuses(&self) {
        self.wait_for("refusals", |counts| &counts.refused).await;
    }

    /// Waits until each server has served reads from now on, with almost no errors.
    pub(super) async fn assert_reads_continue(&self) {
        let refused = || -> Vec<u64> {
            let refused = self.counts.iter().map(|counts| &counts.reads_refused);
            refused.map(|count| count.load(Ordering::Relaxed)).collect()
        };
        let before = refused();
        self.wait_for_many("reads", READS_AWAITED, |counts| &counts.read)
            .await;
        for (before, after) in before.into_iter().zip(refused()) {
            let refused = after - before;
            assert!(refused <= READS_REFUSED_MAX, "{refused} refused");
        }
    }

    /// Waits until each server reports this health.
    pub(super) async fn wait_for_health(&self, status: &str) {
        for server in &self.servers {
            until(status, async || {
                let response = server.get("/health").await;
                let health = response.json()["status"].clone();
                assert_eq!(response.status == 200, health == "UP", "{response:?}");
                health == status
            })
            .await;
        }
    }

    async fn wait_for(&self, what: &str, count: impl Fn(&Counts) -> &AtomicU64) {
        // Some of these requests may have started earlier, but at most one per client, which is fewer than this number.
        self.wait_for_many(what, RESPONSES_AWAITED, count).await;
    }

    async fn wait_for_many(
        &self,
        what: &str,
        responses: u64,
        count: impl Fn(&Counts) -> &AtomicU64,
    ) {
        let now = |number: usize| count(&self.counts[number]).load(Ordering::Relaxed);
        let enough: Vec<u64> = (0..SERVERS).map(|number| now(number) + responses).collect();
        let are_enough = |number: usize| now(number) >= enough[number];
        until(what, async || (0..SERVERS).all(are_enough)).await;
    }

    /// Stops the clients, and returns the expected state.
    pub(super) async fn end(self) -> Ended {
        self.is_ending.store(true, Ordering::Relaxed);
        let mut responses = Responses::default();
        for client in self.clients.join_all().await {
            responses.acknowledged.extend(client.acknowledged);
            responses.in_doubt.extend(client.in_doubt);
            responses.names.extend(client.names);
        }
        for counts in self.counts.iter() {
            let wrong = counts.wrong.lock().unwrap();
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
            let slowest = *counts.slowest.lock().unwrap();
            assert!(slowest < RESPONSE_MAX, "a response took {slowest:?}");
            let _ = writeln!(
                std::io::stderr(),
                "{} writes, {} reads, {} refused; the slowest response took {slowest:?}",
                counts.written.load(Ordering::Relaxed),
                counts.read.load(Ordering::Relaxed),
                counts.refused.load(Ordering::Relaxed),
            );
        }
        Ended {
            servers: self.servers,
            responses,
        }
    }
}

/// Starts a server that may find the database too slow on a busy machine.
async fn repeatedly(start: impl AsyncFn() -> Result<Server, String>) -> Server {
    let mut refused = String::new();
    for _ in 0..STARTS_MAX {
        match start().await {
            Ok(server) => return server,
            Err(log) => refused = log,
        }
    }
    panic!("the server did not start:\n{refused}");
}

impl Ended {
    /// Asserts that each server has the acknowledged versions, with values and in order; other versions must have been
    /// requested.
    pub(super) async fn assert_nothing_is_lost(&self) {
        for (position, (name, acknowledged)) in self.responses.names.iter().enumerate() {
            let server = &self.servers[position % SERVERS];
            let versions = server.versions(name).await;
            let known = |version: &&Value| {
                let id = version["id"].as_str().unwrap();
                acknowledged.iter().any(|known| known == id)
            };
            let stored: Vec<&str> = versions
                .iter()
                .filter(known)
                .map(|version| version["id"].as_str().unwrap())
                .collect();
            let expected: Vec<&str> = acknowledged.iter().rev().map(String::as_str).collect();
            assert_eq!(stored, expected, "{name}");
            let in_doubt = self.responses.in_doubt.get(name);
            for version in &versions {
                let id = version["id"].as_str().unwrap();
                let is_requested = match self.responses.acknowledged.get(id) {
                    Some(value) => version["value"] == *value,
                    None => in_doubt.is_some_and(|values| values.contains(&version["value"])),
                };
                assert!(is_requested, "unrequested version {version}");
            }
        }
        assert!(!self.responses.acknowledged.is_empty());
    }
}

/// A client of one server. Only it writes below its folder.
struct Client {
    server: Arc<Server>,
    number: usize,
    folder: String,
    counts: Arc<[Counts; SERVERS]>,
    newest: Option<String>,
    responses: Responses,
}

impl Client {
    async fn work(mut self, is_ending: Arc<AtomicBool>) -> Responses {
        let mut round = 0;
        while !is_ending.load(Ordering::Relaxed) {
            let name = format!("{}/{}", self.folder, round / WRITES_PER_NAME);
            self.write(&name, round).await;
            self.read().await;
            round += 1;
        }
        self.responses
    }

    async fn write(&mut self, name: &str, round: usize) {
        let value = json!(format!("{name} {round}"));
        let body = json!({"name": name, "type": "value", "value": value});
        let response = self.send(Method::PUT, "/api/v1/data", Some(&body)).await;
        match response {
            Some(response) if response.status == 200 => {
                let id = response.json()["id"].as_str().unwrap().to_owned();
                let versions = self.responses.names.entry(name.to_owned()).or_default();
                versions.push(id.clone());
                self.newest = Some(id.clone());
                self.responses.acknowledged.insert(id, value);
                self.counts[self.number]
                    .written
                    .fetch_add(1, Ordering::Relaxed);
            }
            _ => {
                let in_doubt = self.responses.in_doubt.entry(name.to_owned()).or_default();
                in_doubt.push(value);
            }
        }
    }

    /// Reads the version acknowledged last.
    async fn read(&mut self) {
        let Some(newest) = &self.newest else {
            return;
        };
        let path = format!("/api/v1/data/{newest}");
        let expected = self.responses.acknowledged[newest].clone();
        let counts = &self.counts[self.number];
        if let Some(response) = self.send(Method::GET, &path, None).await {
            if response.status == 200 {
                assert_eq!(response.json()["value"], expected);
                counts.read.fetch_add(1, Ordering::Relaxed);
            } else {
                counts.reads_refused.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Sends a request, and records its duration and any unexpected response. Returns `None` after a timeout.
    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Option<Response> {
        let counts = &self.counts[self.number];
        let request = self.server.authorized(method.clone(), path);
        let request = match body {
            Some(body) => request.body(body.to_string()),
            None => request,
        };
        let begun = Instant::now();
        let sent = tokio::time::timeout(RESPONSE_MAX, self.server.send(request)).await;
        let took = begun.elapsed();
        let mut slowest = counts.slowest.lock().unwrap();
        *slowest = took.max(*slowest);
        drop(slowest);
        let wrong = |what: String| {
            let report = format!("{method} {path} after {took:?}: {what}");
            counts.wrong.lock().unwrap().push(report);
        };
        match sent {
            Ok(response) if response.status == 200 => Some(response),
            Ok(response) if response.status == 503 && response.json()["error"].is_string() => {
                counts.refused.fetch_add(1, Ordering::Relaxed);
                Some(response)
            }
            Ok(response) => {
                wrong(format!("{response:?}"));
                Some(response)
            }
            Err(_) => {
                wrong("no response".to_owned());
                None
            }
        }
    }
}
