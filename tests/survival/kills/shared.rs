//! Credentials that all workers write to: the order of writes is unknown, but no write may be lost or invented.

use std::collections::BTreeMap;

use keywright_harness::{Caller, Response};
use rand::{Rng, RngExt, rngs::ChaCha12Rng};
use reqwest::Method;
use serde_json::{Value, json};

use super::requests::{Location, record_matches};

/// A worker's write to a shared credential.
#[derive(Debug)]
pub(super) struct SharedWrite {
    worker: usize,
    method: Method,
    body: Value,
    /// The version in the response; `None` if the server was killed before it responded.
    pub(super) response: Option<Value>,
}

/// The versions of the shared credentials, as last read.
#[derive(Debug, Default)]
pub(super) struct Shared {
    versions: BTreeMap<&'static str, Vec<Value>>,
}

pub(super) fn next(worker: usize, choices: &mut ChaCha12Rng) -> SharedWrite {
    let (method, body) = if choices.random_ratio(1, 3) {
        (Method::POST, generate_once())
    } else {
        let value = format!("{} of {worker}", choices.next_u64());
        let body = json!({"name": SET, "type": "value", "value": value});
        (Method::PUT, body)
    };
    SharedWrite {
        worker,
        method,
        body,
        response: None,
    }
}

impl SharedWrite {
    /// Sends the write; `None` if the server was killed before it responded.
    pub(super) async fn send(&self, caller: &Caller) -> Option<Response> {
        let request = caller.request(self.method.clone(), "/api/v1/data");
        Response::try_to(request.body(self.body.to_string()))
            .await
            .ok()
    }

    fn is_to(&self, name: &str) -> bool {
        self.body["name"] == name
    }
}

impl Shared {
    /// Asserts that a restarted server has the writes since the last check, and nothing else.
    pub(super) async fn verify(&mut self, caller: &Caller, writes: Vec<SharedWrite>) {
        for name in [SET, GENERATED] {
            let location = Location::Credential(name.to_owned());
            let actual = location.read(caller).await.unwrap();
            let before = self.versions.remove(name).unwrap_or_default();
            let writes: Vec<_> = writes.iter().filter(|write| write.is_to(name)).collect();
            if name == SET {
                verify_set(&before, &writes, &actual);
            } else {
                verify_generated_once(&before, &writes, &actual);
            }
            self.versions.insert(name, actual);
        }
    }

    /// Deletes all shared credentials.
    pub(super) async fn delete(&mut self, caller: &Caller) {
        for (name, versions) in std::mem::take(&mut self.versions) {
            if !versions.is_empty() {
                let response = caller.delete(&format!("/api/v1/data?name={name}")).await;
                response.expect(204);
            }
        }
    }
}

/// Checks that the existing versions are unchanged. The added versions must be the returned versions, in the order of each
/// worker, and otherwise only requested versions without a response.
fn verify_set(before: &[Value], writes: &[&SharedWrite], actual: &[Value]) {
    let added = actual.len().checked_sub(before.len());
    let (added, old) =
        actual.split_at(added.unwrap_or_else(|| panic!("versions were lost: {actual:#?}")));
    assert_eq!(old, before);
    let mut unexplained: Vec<&Value> = added.iter().collect();
    let mut last: BTreeMap<usize, usize> = BTreeMap::new();
    for write in writes {
        let Some(response) = &write.response else {
            continue;
        };
        let location = added.iter().position(|version| version == response);
        let location = location.unwrap_or_else(|| panic!("{response} is lost: {actual:#?}"));
        let later = last.insert(write.worker, location);
        assert!(
            later.is_none_or(|later| location < later),
            "{response} is out of order"
        );
        unexplained.retain(|version| *version != response);
    }
    for write in writes.iter().filter(|write| write.response.is_none()) {
        if let Some(location) = unexplained
            .iter()
            .position(|version| record_matches(&write.body, version))
        {
            unexplained.remove(location);
        }
    }
    assert!(
        unexplained.is_empty(),
        "unrequested versions: {unexplained:#?}"
    );
}

/// Checks that all responses contain the same version.
fn verify_generated_once(before: &[Value], writes: &[&SharedWrite], actual: &[Value]) {
    let responses: Vec<_> = writes
        .iter()
        .filter_map(|write| write.response.as_ref())
        .collect();
    if writes.is_empty() || !before.is_empty() {
        assert_eq!(actual, before);
    }
    assert!(actual.len() <= 1, "{actual:#?}");
    for response in responses {
        assert_eq!(actual.first(), Some(response));
    }
}

fn generate_once() -> Value {
    json!({"name": GENERATED, "type": "password", "mode": "no-overwrite", "parameters": {}})
}

/// Set by all workers.
const SET: &str = "/shared/set";

/// Generated by all workers, without overwriting.
const GENERATED: &str = "/shared/generated";
