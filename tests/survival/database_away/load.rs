//! Clients that write and read at three servers without an end, and remember what they were told.

use std::{
    collections::HashMap,
    io::Write,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use keywright_harness::{Answer, Options, Server};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

const SERVERS: usize = 3;
const CLIENTS_PER_SERVER: usize = 4;
/// What servers are told: how long a request may wait for the database.
const WAIT_SECONDS_MAX: u64 = 2;
/// How long an answer may take at all, on a machine that is as busy as it may be. Without the wait's end it would take for ever.
const ANSWER_MAX: Duration = Duration::from_mins(2);
/// How many answers of each server a test waits for, and for how long at most.
const ANSWERS_AWAITED: u64 = 12;
const AWAITED_MAX: Duration = Duration::from_mins(10);
/// For how many reads it is looked whether they go on, and how many of them may be refused at each server: one of each client,
/// which the machine has kept waiting.
const READS_AWAITED: u64 = 100;
const READS_REFUSED_MAX: u64 = CLIENTS_PER_SERVER as u64;
/// How often a server is started that finds the database too slow, which is told to wait for two seconds.
const STARTS_MAX: usize = 30;
const POLL: Duration = Duration::from_millis(20);
/// Writes of one client to one name, before it takes the next.
const WRITES_PER_NAME: usize = 3;

/// Three servers on one database, and clients at work.
pub(super) struct Load {
    servers: Vec<Arc<Server>>,
    counts: Arc<[Counts; SERVERS]>,
    is_ending: Arc<AtomicBool>,
    clients: JoinSet<Told>,
}

/// What one server has answered.
#[derive(Default)]
struct Counts {
    written: AtomicU64,
    read: AtomicU64,
    refused: AtomicU64,
    /// Those of them that would have read.
    reads_refused: AtomicU64,
    /// What was answered that must never be.
    wrong: Mutex<Vec<String>>,
    slowest: Mutex<Duration>,
}

/// What clients were told.
#[derive(Default)]
pub(super) struct Told {
    /// The id and the value of each version that was acknowledged.
    acknowledged: HashMap<String, Value>,
    /// Of each name, the values that may have been written without an acknowledgement.
    in_doubt: HashMap<String, Vec<Value>>,
    /// Of each name, the acknowledged versions, oldest first.
    names: HashMap<String, Vec<String>>,
}

/// What there must be after the load.
pub(super) struct Ended {
    servers: Vec<Arc<Server>>,
    told: Told,
}

impl Load {
    pub(super) async fn start(url: &str) -> Self {
        let storage = format!("url = \"{url}\"\nwait_seconds_max = {WAIT_SECONDS_MAX}");
        let options = Options::default().storage(&storage);
        let first = async || Server::try_start_in(TempDir::new().unwrap(), &options).await;
        let first = repeatedly(first).await;
        let beside = || repeatedly(async || first.try_start_beside().await);
        let (second, third) = tokio::join!(beside(), beside());
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
                    told: Told::default(),
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

    /// Waits until each server has acknowledged writes that began from now on, and answered reads.
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

    /// Waits until each server has refused requests from now on.
    pub(super) async fn wait_until_each_server_refuses(&self) {
        self.wait_for("refusals", |counts| &counts.refused).await;
    }

    /// Waits until each server has answered reads from now on, of which as good as none was refused.
    pub(super) async fn assert_reads_go_on(&self) {
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

    /// Waits until each server says so of its health.
    pub(super) async fn wait_for_health(&self, status: &str) {
        let begun = Instant::now();
        for server in &self.servers {
            loop {
                let answer = server.get("/health").await;
                let told = answer.json()["status"].clone();
                assert_eq!(answer.status == 200, told == "UP", "{answer:?}");
                if told == status {
                    break;
                }
                assert!(begun.elapsed() < AWAITED_MAX, "{answer:?}");
                tokio::time::sleep(POLL).await;
            }
        }
    }

    async fn wait_for(&self, what: &str, count: impl Fn(&Counts) -> &AtomicU64) {
        // Those that are under way may have begun before; so many of them can't be.
        self.wait_for_many(what, ANSWERS_AWAITED, count).await;
    }

    async fn wait_for_many(&self, what: &str, answers: u64, count: impl Fn(&Counts) -> &AtomicU64) {
        let now = |number: usize| count(&self.counts[number]).load(Ordering::Relaxed);
        let enough: Vec<u64> = (0..SERVERS).map(|number| now(number) + answers).collect();
        let begun = Instant::now();
        while (0..SERVERS).any(|number| now(number) < enough[number]) {
            assert!(begun.elapsed() < AWAITED_MAX, "no {what}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Ends the clients. All that they were answered is what may be.
    pub(super) async fn end(self) -> Ended {
        self.is_ending.store(true, Ordering::Relaxed);
        let mut told = Told::default();
        for client in self.clients.join_all().await {
            told.acknowledged.extend(client.acknowledged);
            told.in_doubt.extend(client.in_doubt);
            told.names.extend(client.names);
        }
        for counts in self.counts.iter() {
            let wrong = counts.wrong.lock().unwrap();
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
            let slowest = *counts.slowest.lock().unwrap();
            assert!(slowest < ANSWER_MAX, "an answer took {slowest:?}");
            let _ = writeln!(
                std::io::stderr(),
                "{} writes, {} reads, {} refused; the slowest answer took {slowest:?}",
                counts.written.load(Ordering::Relaxed),
                counts.read.load(Ordering::Relaxed),
                counts.refused.load(Ordering::Relaxed),
            );
        }
        Ended {
            servers: self.servers,
            told,
        }
    }
}

/// Starts a server that on a busy machine may find the database too slow.
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
    /// Each acknowledged version is there, at each server, with its value and in its order; what else is there was asked for.
    pub(super) async fn assert_nothing_is_lost(&self) {
        for (position, (name, acknowledged)) in self.told.names.iter().enumerate() {
            let server = &self.servers[position % SERVERS];
            let versions = server.versions(name).await;
            let known = |version: &&Value| {
                let id = version["id"].as_str().unwrap();
                acknowledged.iter().any(|known| known == id)
            };
            let kept: Vec<&str> = versions
                .iter()
                .filter(known)
                .map(|version| version["id"].as_str().unwrap())
                .collect();
            let expected: Vec<&str> = acknowledged.iter().rev().map(String::as_str).collect();
            assert_eq!(kept, expected, "{name}");
            let in_doubt = self.told.in_doubt.get(name);
            for version in &versions {
                let id = version["id"].as_str().unwrap();
                let is_asked = match self.told.acknowledged.get(id) {
                    Some(value) => version["value"] == *value,
                    None => in_doubt.is_some_and(|values| values.contains(&version["value"])),
                };
                assert!(is_asked, "nobody asked for {version}");
            }
        }
        assert!(!self.told.acknowledged.is_empty());
    }
}

/// One client of one server. Nobody else writes below its folder.
struct Client {
    server: Arc<Server>,
    number: usize,
    folder: String,
    counts: Arc<[Counts; SERVERS]>,
    newest: Option<String>,
    told: Told,
}

impl Client {
    async fn work(mut self, is_ending: Arc<AtomicBool>) -> Told {
        let mut round = 0;
        while !is_ending.load(Ordering::Relaxed) {
            let name = format!("{}/{}", self.folder, round / WRITES_PER_NAME);
            self.write(&name, round).await;
            self.read().await;
            round += 1;
        }
        self.told
    }

    async fn write(&mut self, name: &str, round: usize) {
        let value = json!(format!("{name} {round}"));
        let body = json!({"name": name, "type": "value", "value": value});
        let answer = self.ask(Method::PUT, "/api/v1/data", Some(&body)).await;
        match answer {
            Some(answer) if answer.status == 200 => {
                let id = answer.json()["id"].as_str().unwrap().to_owned();
                let versions = self.told.names.entry(name.to_owned()).or_default();
                versions.push(id.clone());
                self.newest = Some(id.clone());
                self.told.acknowledged.insert(id, value);
                self.counts[self.number]
                    .written
                    .fetch_add(1, Ordering::Relaxed);
            }
            _ => {
                let in_doubt = self.told.in_doubt.entry(name.to_owned()).or_default();
                in_doubt.push(value);
            }
        }
    }

    /// Reads the version that was acknowledged last.
    async fn read(&mut self) {
        let Some(newest) = &self.newest else {
            return;
        };
        let path = format!("/api/v1/data/{newest}");
        let expected = self.told.acknowledged[newest].clone();
        let counts = &self.counts[self.number];
        if let Some(answer) = self.ask(Method::GET, &path, None).await {
            if answer.status == 200 {
                assert_eq!(answer.json()["value"], expected);
                counts.read.fetch_add(1, Ordering::Relaxed);
            } else {
                counts.reads_refused.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// An answer of a known kind.
    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Option<Answer> {
        let counts = &self.counts[self.number];
        let request = self.server.authorized(method.clone(), path);
        let request = match body {
            Some(body) => request.body(body.to_string()),
            None => request,
        };
        let begun = Instant::now();
        let sent = tokio::time::timeout(ANSWER_MAX, self.server.send(request)).await;
        let took = begun.elapsed();
        let mut slowest = counts.slowest.lock().unwrap();
        *slowest = took.max(*slowest);
        drop(slowest);
        let wrong = |what: String| {
            let said = format!("{method} {path} after {took:?}: {what}");
            counts.wrong.lock().unwrap().push(said);
        };
        match sent {
            Ok(answer) if answer.status == 200 => Some(answer),
            Ok(answer) if answer.status == 503 && answer.json()["error"].is_string() => {
                counts.refused.fetch_add(1, Ordering::Relaxed);
                Some(answer)
            }
            Ok(answer) => {
                wrong(format!("{answer:?}"));
                Some(answer)
            }
            Err(_) => {
                wrong("no answer".to_owned());
                None
            }
        }
    }
}
