//! Clients that randomly change the same few names, and record their requests and the responses.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use keywright_harness::{Response, Server};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::checker::{Action, Call, Id, Mode, Outcome, Seen};

const PASSWORDS: [&str; 4] = ["/password/a", "/password/b", "/password/c", "/password/d"];
/// Self-signed certificates that are created and deleted.
const CERTIFICATES: [&str; 2] = ["/certificate/a", "/certificate/b"];
/// Signs the leaves and is never deleted.
const AUTHORITY: &str = "/authority";
const LEAVES: [&str; 2] = ["/leaf/a", "/leaf/b"];
const CLIENTS_PER_SERVER: usize = 4;
/// The minimum number of calls of a meaningful history.
pub(super) const CALLS_MIN: usize = 100;
/// Minimum number of calls of all clients together. Some of these calls may have no clear outcome.
const ENOUGH: usize = CALLS_MIN * 2;

/// Runs clients of all servers for a while, then reads everything once more, and returns the recorded calls.
pub(super) async fn run_clients(servers: &[Arc<Server>], duration: Duration) -> Vec<Call> {
    let start = Instant::now();
    let mut history = prepared(&servers[0], start).await;
    let ends = start + duration;
    let calls = Arc::<AtomicUsize>::default();
    let mut clients = JoinSet::new();
    for (number, server) in servers.iter().enumerate() {
        for client in 0..CLIENTS_PER_SERVER {
            let recorder = Recorder::new(server, format!("{client} at {number}"), start);
            clients.spawn(work(recorder, ends, Arc::clone(&calls)));
        }
    }
    for calls in clients.join_all().await {
        history.extend(calls);
    }
    for (number, server) in servers.iter().enumerate() {
        let mut last = Recorder::new(server, format!("the last at {number}"), start);
        for name in PASSWORDS.iter().chain(&LEAVES).chain(&CERTIFICATES) {
            last.read(name).await;
        }
        for name in CERTIFICATES {
            last.read_certificate(name).await;
        }
        history.extend(last.into_calls());
    }
    history
}

/// Creates the initial state.
async fn prepared(server: &Arc<Server>, start: Instant) -> Vec<Call> {
    let mut first = Recorder::new(server, "the first".to_owned(), start);
    first
        .generate_certificate(AUTHORITY, Mode::NoOverwrite, None)
        .await;
    for leaf in LEAVES {
        first
            .generate_certificate(leaf, Mode::NoOverwrite, Some(AUTHORITY))
            .await;
    }
    first.into_calls()
}

/// Sends random requests until `ends` has passed and all clients together have made enough calls.
async fn work(mut recorder: Recorder, ends: Instant, calls: Arc<AtomicUsize>) -> Vec<Call> {
    let mut seen: Option<(&str, Id)> = None;
    while calls.fetch_add(1, Ordering::Relaxed) < ENOUGH || Instant::now() < ends {
        match random(10) {
            0..7 => change_password(&mut recorder, &mut seen).await,
            7 => change_leaf(&mut recorder).await,
            _ => change_certificate(&mut recorder).await,
        }
    }
    recorder.into_calls()
}

async fn change_password(recorder: &mut Recorder, seen: &mut Option<(&'static str, Id)>) {
    let name = PASSWORDS[random(PASSWORDS.len())];
    let length = if random(4) == 0 { 24 } else { 20 };
    match random(20) {
        number @ 0..11 => {
            let mode = match number {
                0..4 => Mode::NoOverwrite,
                4..9 => Mode::Converge,
                _ => Mode::Overwrite,
            };
            recorder.generate_password(name, mode, length).await;
        }
        11 => {
            let value = Uuid::new_v4().to_string();
            recorder.set_password(name, &value).await;
        }
        12 => recorder.regenerate(name).await,
        13..15 => recorder.delete(name).await,
        15..18 => {
            if let Some(&newest) = recorder.read(name).await.first() {
                *seen = Some((name, newest));
            }
        }
        _ => {
            if let Some((name, id)) = *seen {
                recorder.read_version(name, id).await;
            }
        }
    }
}

async fn change_certificate(recorder: &mut Recorder) {
    let name = CERTIFICATES[random(CERTIFICATES.len())];
    if random(12) == 0 {
        return recorder.delete(name).await;
    }
    let mode = match recorder.read_certificate(name).await {
        None => Mode::NoOverwrite,
        Some((credential, versions)) => {
            let any = versions[random(versions.len())];
            match random(8) {
                0..2 => return recorder.regenerate_as_transitional(name, credential).await,
                2..4 => {
                    return recorder
                        .move_transitional(name, credential, Some(any))
                        .await;
                }
                4 => return recorder.move_transitional(name, credential, None).await,
                5 => Mode::Overwrite,
                6 => return recorder.delete_version(name, credential, any).await,
                _ => Mode::Converge,
            }
        }
    };
    recorder.generate_certificate(name, mode, None).await;
}

async fn change_leaf(recorder: &mut Recorder) {
    let name = LEAVES[random(LEAVES.len())];
    let mode = match random(6) {
        0..2 => return recorder.regenerate_in_bulk(AUTHORITY, &LEAVES).await,
        2 => Mode::Overwrite,
        3 => Mode::Converge,
        _ => return drop(recorder.read(name).await),
    };
    recorder
        .generate_certificate(name, mode, Some(AUTHORITY))
        .await;
}

/// Returns a number below a bound. Histories are not reproducible, because the interleaving of calls depends on the
/// machine.
fn random(bound: usize) -> usize {
    let number = Uuid::new_v4().as_u128() % u128::try_from(bound).unwrap();
    usize::try_from(number).unwrap()
}

const DATA_PATH: &str = "/api/v1/data";
const CERTIFICATES_PATH: &str = "/api/v1/certificates";

/// A client and its recorded calls.
struct Recorder {
    server: Arc<Server>,
    by: String,
    /// The clock shared by all clients.
    start: Instant,
    calls: Vec<Call>,
}

impl Recorder {
    pub(super) fn new(server: &Arc<Server>, by: String, start: Instant) -> Self {
        Self {
            server: Arc::clone(server),
            by,
            start,
            calls: Vec::new(),
        }
    }

    pub(super) fn into_calls(self) -> Vec<Call> {
        self.calls
    }

    async fn set_password(&mut self, name: &str, value: &str) {
        let body = json!({"name": name, "type": "password", "value": value});
        let request = self.request(Method::PUT, DATA_PATH, &body);
        self.record(name, Action::Set, request, version).await;
    }

    async fn generate_password(&mut self, name: &str, mode: Mode, length: u32) {
        let parameters = json!({"length": length});
        self.generate(name, mode, "password", parameters, length)
            .await;
    }

    /// Generates a certificate with a small key; a CA is self-signed.
    async fn generate_certificate(&mut self, name: &str, mode: Mode, ca: Option<&str>) {
        let mut parameters = json!({"common_name": "test", "key_type": "ecdsa-p256"});
        match ca {
            Some(ca) => parameters["ca"] = ca.into(),
            None => parameters["is_ca"] = true.into(),
        }
        self.generate(name, mode, "certificate", parameters, 0)
            .await;
    }

    async fn generate(
        &mut self,
        name: &str,
        mode: Mode,
        credential_type: &str,
        parameters_json: Value,
        parameters: u32,
    ) {
        let word = match mode {
            Mode::Converge => "converge",
            Mode::NoOverwrite => "no-overwrite",
            Mode::Overwrite => "overwrite",
        };
        let body = json!({"name": name, "type": credential_type, "mode": word, "parameters": parameters_json});
        let request = self.request(Method::POST, DATA_PATH, &body);
        let action = Action::Generate { mode, parameters };
        self.record(name, action, request, version).await;
    }

    async fn regenerate(&mut self, name: &str) {
        let body = json!({"name": name});
        let request = self.request(Method::POST, "/api/v1/regenerate", &body);
        self.record(name, Action::Regenerate, request, version)
            .await;
    }

    async fn delete(&mut self, name: &str) {
        let path = format!("{DATA_PATH}?name={name}");
        let request = self.server.authorized(Method::DELETE, &path);
        self.record(name, Action::Delete, request, done).await;
    }

    /// Returns the ids of all versions, newest first.
    async fn read(&mut self, name: &str) -> Vec<Id> {
        let path = format!("{DATA_PATH}?name={name}");
        let request = self.server.authorized(Method::GET, &path);
        let outcome = |response: &Response| {
            let data = response.json()["data"].take();
            Outcome::Versions(data.as_array().unwrap().iter().map(seen).collect())
        };
        match self.record(name, Action::Read, request, outcome).await {
            Outcome::Versions(seen) => seen.iter().map(|seen| seen.id).collect(),
            _ => Vec::new(),
        }
    }

    async fn read_version(&mut self, name: &str, id: Id) {
        let path = format!("{DATA_PATH}/{}", Uuid::from_u128(id));
        let request = self.server.authorized(Method::GET, &path);
        let action = Action::ReadVersion(id);
        self.record(name, action, request, version).await;
    }

    /// Returns the id of a certificate's credential, and the ids of its versions.
    async fn read_certificate(&mut self, name: &str) -> Option<(Id, Vec<Id>)> {
        let path = format!("{CERTIFICATES_PATH}?name={name}");
        let request = self.server.authorized(Method::GET, &path);
        let outcome = |response: &Response| {
            let certificate = response.json()["certificates"][0].take();
            let versions = certificate["versions"].as_array().unwrap().iter();
            Outcome::Certificate(id(&certificate), versions.map(seen).collect())
        };
        let action = Action::ReadCertificate;
        match self.record(name, action, request, outcome).await {
            Outcome::Certificate(id, seen) => Some((id, seen.iter().map(|seen| seen.id).collect())),
            _ => None,
        }
    }

    async fn regenerate_as_transitional(&mut self, name: &str, credential: Id) {
        let path = certificate_path(credential, "regenerate");
        let body = json!({"set_as_transitional": true});
        let request = self.request(Method::POST, &path, &body);
        let action = Action::RegenerateAsTransitional { credential };
        self.record(name, action, request, version).await;
    }

    async fn move_transitional(&mut self, name: &str, credential: Id, to: Option<Id>) {
        let path = certificate_path(credential, "update_transitional_version");
        let body = json!({"version": to.map(Uuid::from_u128)});
        let request = self.request(Method::PUT, &path, &body);
        let action = Action::MoveTransitional { credential, to };
        self.record(name, action, request, done).await;
    }

    async fn delete_version(&mut self, name: &str, credential: Id, version: Id) {
        let rest = format!("versions/{}", Uuid::from_u128(version));
        let path = certificate_path(credential, &rest);
        let request = self.server.authorized(Method::DELETE, &path);
        let action = Action::DeleteVersion {
            credential,
            version,
        };
        self.record(name, action, request, done).await;
    }

    /// Regenerates all certificates that a CA signed. Records one call for each of these leaves.
    async fn regenerate_in_bulk(&mut self, authority: &str, leaves: &[&str]) {
        let begun = self.start.elapsed();
        let body = json!({"signed_by": authority});
        let response = send(self.request(Method::POST, "/api/v1/bulk-regenerate", &body)).await;
        let ended = self.start.elapsed();
        if response.as_ref().is_some_and(is_not_done) {
            return;
        }
        for leaf in leaves {
            let outcome = match &response {
                Some(response) if response.status == 200 => {
                    let names = response.json()["regenerated_credentials"].take();
                    let is_named = names.as_array().unwrap().iter().any(|name| name == leaf);
                    assert!(is_named, "{leaf} was not regenerated");
                    Outcome::Done
                }
                _ => Outcome::Unknown,
            };
            self.calls.push(Call {
                name: (*leaf).to_owned(),
                by: self.by.clone(),
                begun,
                ended,
                action: Action::RegenerateInBulk,
                outcome,
            });
        }
    }

    async fn record(
        &mut self,
        name: &str,
        action: Action,
        request: RequestBuilder,
        outcome: impl Fn(&Response) -> Outcome,
    ) -> Outcome {
        let begun = self.start.elapsed();
        let response = send(request).await;
        let ended = self.start.elapsed();
        let outcome = match &response {
            Some(response) if is_not_done(response) => return Outcome::Unknown,
            Some(response) => match response.status {
                200 | 204 => outcome(response),
                404 => Outcome::Absent,
                400 => Outcome::Refused,
                503 => Outcome::Unknown,
                _ => panic!("{action:?} of {name} by {}: {response:?}", self.by),
            },
            None => Outcome::Unknown,
        };
        self.calls.push(Call {
            name: name.to_owned(),
            by: self.by.clone(),
            begun,
            ended,
            action,
            outcome: outcome.clone(),
        });
        outcome
    }

    fn request(&self, method: Method, path: &str, body: &Value) -> RequestBuilder {
        self.server.authorized(method, path).body(body.to_string())
    }
}

fn certificate_path(credential: Id, rest: &str) -> String {
    let id = Uuid::from_u128(credential);
    format!("{CERTIFICATES_PATH}/{id}/{rest}")
}

/// Sends a request; returns `None` if the response is missing or incomplete.
async fn send(request: RequestBuilder) -> Option<Response> {
    let response = Response::try_to(request).await.ok()?;
    if response.status == StatusCode::SERVICE_UNAVAILABLE {
        response.assert_contains("\"error\"");
    }
    Some(response)
}

/// Returns the outcome of a request for a version.
fn version(response: &Response) -> Outcome {
    Outcome::Version(seen(&response.json()))
}

/// Returns the outcome of a request without a version in its response.
fn done(_: &Response) -> Outcome {
    Outcome::Done
}

/// Returns whether a server rejected a request without effect because of conflicting requests. Such requests are not part
/// of the history.
fn is_not_done(response: &Response) -> bool {
    let is_conflict = response.status == 503 && response.body.contains("other requests changed");
    // An actor may have one bulk regeneration in progress, and a server a few.
    is_conflict || [429, 503].contains(&response.status) && response.body.contains("bulk")
}

fn seen(version: &Value) -> Seen {
    // The length of a password is its parameter; the parameters of a certificate are always the same.
    let length = version["value"].as_str().map_or(0, str::len);
    let is_shown = !version["value"].is_null();
    Seen {
        id: id(version),
        parameters: u32::try_from(length).unwrap(),
        is_transitional: version["transitional"] == true,
        value: is_shown.then(|| fingerprint(&version["value"])),
    }
}

fn id(version: &Value) -> Id {
    let id = version["id"].as_str().unwrap();
    Uuid::parse_str(id).unwrap().as_u128()
}

fn fingerprint(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}
