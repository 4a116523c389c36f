//! A client of one server that records its requests and the responses.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Instant,
};

use keywright_harness::{Answer, Server};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::checker::{Action, Call, Id, Mode, Outcome, Seen};

const DATA: &str = "/api/v1/data";
const CERTIFICATES: &str = "/api/v1/certificates";

/// A client and its recorded calls.
pub(super) struct Recorder {
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

    pub(super) async fn set_password(&mut self, name: &str, value: &str) {
        let body = json!({"name": name, "type": "password", "value": value});
        let outcome = |answer: &Answer| Outcome::Version(seen(&answer.json()));
        self.ask(name, Action::Set, Method::PUT, DATA, Some(body), outcome)
            .await;
    }

    /// Generates a password of this length.
    pub(super) async fn generate_password(&mut self, name: &str, mode: Mode, length: u32) {
        let parameters = json!({"length": length});
        self.generate(name, mode, "password", parameters, length)
            .await;
    }

    /// Generates a certificate with a small key; a CA is self-signed.
    pub(super) async fn generate_certificate(&mut self, name: &str, mode: Mode, ca: Option<&str>) {
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
        asked: Value,
        parameters: u32,
    ) {
        let word = match mode {
            Mode::Converge => "converge",
            Mode::NoOverwrite => "no-overwrite",
            Mode::Overwrite => "overwrite",
        };
        let body =
            json!({"name": name, "type": credential_type, "mode": word, "parameters": asked});
        let action = Action::Generate { mode, parameters };
        let outcome = |answer: &Answer| Outcome::Version(seen(&answer.json()));
        self.ask(name, action, Method::POST, DATA, Some(body), outcome)
            .await;
    }

    pub(super) async fn regenerate(&mut self, name: &str) {
        let path = "/api/v1/regenerate";
        let outcome = |answer: &Answer| Outcome::Version(seen(&answer.json()));
        let body = Some(json!({"name": name}));
        self.ask(name, Action::Regenerate, Method::POST, path, body, outcome)
            .await;
    }

    pub(super) async fn delete(&mut self, name: &str) {
        let path = format!("{DATA}?name={name}");
        self.ask(name, Action::Delete, Method::DELETE, &path, None, |_| {
            Outcome::Done
        })
        .await;
    }

    /// Returns the ids of all versions, newest first.
    pub(super) async fn read(&mut self, name: &str) -> Vec<Id> {
        let path = format!("{DATA}?name={name}");
        let outcome = |answer: &Answer| {
            let data = answer.json()["data"].take();
            Outcome::Versions(data.as_array().unwrap().iter().map(seen).collect())
        };
        match self
            .ask(name, Action::Read, Method::GET, &path, None, outcome)
            .await
        {
            Outcome::Versions(seen) => seen.iter().map(|seen| seen.id).collect(),
            _ => Vec::new(),
        }
    }

    pub(super) async fn read_version(&mut self, name: &str, id: Id) {
        let path = format!("{DATA}/{}", Uuid::from_u128(id));
        let outcome = |answer: &Answer| Outcome::Version(seen(&answer.json()));
        let action = Action::ReadVersion(id);
        self.ask(name, action, Method::GET, &path, None, outcome)
            .await;
    }

    /// Returns the id of a certificate's credential, and those of its versions.
    pub(super) async fn read_certificate(&mut self, name: &str) -> Option<(Id, Vec<Id>)> {
        let path = format!("{CERTIFICATES}?name={name}");
        let outcome = |answer: &Answer| {
            let certificate = answer.json()["certificates"][0].take();
            let versions = certificate["versions"].as_array().unwrap().iter();
            Outcome::Certificate(id(&certificate), versions.map(seen).collect())
        };
        let action = Action::ReadCertificate;
        match self
            .ask(name, action, Method::GET, &path, None, outcome)
            .await
        {
            Outcome::Certificate(id, seen) => Some((id, seen.iter().map(|seen| seen.id).collect())),
            _ => None,
        }
    }

    pub(super) async fn regenerate_as_transitional(&mut self, name: &str, credential: Id) {
        let path = format!("{CERTIFICATES}/{}/regenerate", Uuid::from_u128(credential));
        let action = Action::RegenerateAsTransitional { credential };
        let body = Some(json!({"set_as_transitional": true}));
        let outcome = |answer: &Answer| Outcome::Version(seen(&answer.json()));
        self.ask(name, action, Method::POST, &path, body, outcome)
            .await;
    }

    pub(super) async fn move_transitional(&mut self, name: &str, credential: Id, to: Option<Id>) {
        let path = format!(
            "{CERTIFICATES}/{}/update_transitional_version",
            Uuid::from_u128(credential)
        );
        let action = Action::MoveTransitional { credential, to };
        let body = Some(json!({"version": to.map(Uuid::from_u128)}));
        self.ask(name, action, Method::PUT, &path, body, |_| Outcome::Done)
            .await;
    }

    pub(super) async fn delete_version(&mut self, name: &str, credential: Id, version: Id) {
        let [credential_id, version_id] = [credential, version].map(Uuid::from_u128);
        let path = format!("{CERTIFICATES}/{credential_id}/versions/{version_id}");
        let action = Action::DeleteVersion {
            credential,
            version,
        };
        self.ask(name, action, Method::DELETE, &path, None, |_| Outcome::Done)
            .await;
    }

    /// Regenerates everything that a CA signed: one call for each leaf known to be affected.
    pub(super) async fn regenerate_in_bulk(&mut self, authority: &str, leaves: &[&str]) {
        let begun = self.start.elapsed();
        let body = json!({"signed_by": authority});
        let answer = self
            .send(Method::POST, "/api/v1/bulk-regenerate", Some(body))
            .await;
        let ended = self.start.elapsed();
        if answer.as_ref().is_some_and(is_not_done) {
            return;
        }
        for leaf in leaves {
            let outcome = match &answer {
                Some(answer) if answer.status == 200 => {
                    let names = answer.json()["regenerated_credentials"].take();
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

    async fn ask(
        &mut self,
        name: &str,
        action: Action,
        method: Method,
        path: &str,
        body: Option<Value>,
        outcome: impl Fn(&Answer) -> Outcome,
    ) -> Outcome {
        let begun = self.start.elapsed();
        let answer = self.send(method, path, body).await;
        let ended = self.start.elapsed();
        let outcome = match &answer {
            Some(answer) if is_not_done(answer) => return Outcome::Unknown,
            Some(answer) => match answer.status {
                200 | 204 => outcome(answer),
                404 => Outcome::Absent,
                400 => Outcome::Refused,
                503 => Outcome::Unknown,
                _ => panic!("{action:?} of {name} by {}: {answer:?}", self.by),
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

    /// `None` if the response is missing or incomplete.
    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Option<Answer> {
        let request = self.server.authorized(method, path);
        let request = match body {
            Some(body) => request.body(body.to_string()),
            None => request,
        };
        let response = request.send().await.ok()?;
        let status = response.status();
        let body = response.text().await.ok()?;
        if status == StatusCode::SERVICE_UNAVAILABLE {
            assert!(body.contains("\"error\""), "{body}");
        }
        Some(Answer {
            status: status.as_u16(),
            headers: Vec::new(),
            body,
        })
    }
}

/// Returns whether a server rejected a request without effect, because of conflicting requests: there is nothing to
/// explain.
fn is_not_done(answer: &Answer) -> bool {
    let reasons = ["other requests changed the credential", "too many bulk"];
    answer.status == 503 && reasons.iter().any(|reason| answer.body.contains(reason))
}

fn seen(version: &Value) -> Seen {
    // A password shows the requested length; a certificate's parameters are always the same.
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
