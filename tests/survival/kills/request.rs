//! Requests that change something, and their effects.

use keywright_harness::{Answer, Caller};
use reqwest::Method;
use serde_json::{Value, json};

use super::records::{Location, Records, at};

/// A worker's next step.
#[derive(Debug)]
pub(super) enum Step {
    /// Reads the records at a location, and checks them.
    Read(Location),
    /// Changes something.
    Write(Request),
}

/// A request that changes all of its locations, or none.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Value,
    /// The records at each changed location afterwards.
    pub(super) changes: Records,
    /// The credential whose newest record is the response.
    pub(super) answered: Option<Location>,
    /// Whether the server may keep and return the newest record.
    pub(super) may_keep: bool,
    /// Whether the server may reject the request because of too many such requests.
    pub(super) may_be_refused: bool,
    /// The credential whose id as a certificate is part of the path.
    pub(super) certificate: Option<String>,
}

impl Request {
    /// Creates a request without changes.
    pub(super) fn new(method: Method, path: impl Into<String>, body: Value) -> Self {
        Self {
            method,
            path: path.into(),
            body,
            changes: Records::new(),
            answered: None,
            may_keep: false,
            may_be_refused: false,
            certificate: None,
        }
    }

    /// Deletes a credential.
    pub(super) fn delete(name: &str) -> Self {
        let path = format!("/api/v1/data?name={name}");
        let mut request = Self::new(Method::DELETE, path, Value::Null);
        request
            .changes
            .insert(Location::Credential(name.to_owned()), Vec::new());
        request
    }

    /// Adds a version to the existing ones.
    pub(super) fn adds(mut self, owned: &Owned<'_>, name: &str, version: Value) -> Self {
        let mut versions = vec![version];
        versions.extend_from_slice(owned.versions(name));
        self.changes
            .insert(Location::Credential(name.to_owned()), versions);
        self
    }

    /// Expects the newest version of this credential as the response.
    pub(super) fn answers(mut self, name: &str) -> Self {
        self.answered = Some(Location::Credential(name.to_owned()));
        self
    }

    /// The start of the request.
    pub(super) fn summary(&self) -> String {
        let body: String = self
            .body
            .to_string()
            .chars()
            .take(SUMMARY_CHARACTERS)
            .collect();
        format!("{} {} {body}", self.method, self.path)
    }

    /// Sends the request; `None` if the server was gone before it responded.
    pub(super) async fn send(&self, caller: &Caller) -> Option<Answer> {
        let mut path = self.path.clone();
        if let Some(name) = &self.certificate {
            let list = caller.request(Method::GET, &format!("/api/v1/certificates?name={name}"));
            let list = Answer::try_to(list).await.ok()?;
            if list.status == 503 {
                return Some(list);
            }
            let list = list.expect(200).json();
            let id = list["certificates"][0]["id"].as_str().unwrap();
            path = path.replace(CERTIFICATE_ID, id);
        }
        let mut request = caller.request(self.method.clone(), &path);
        if !self.body.is_null() {
            request = request.body(self.body.to_string());
        }
        Answer::try_to(request).await.ok()
    }
}

/// A worker's credentials, as it knows them.
pub(super) struct Owned<'a> {
    pub(super) number: usize,
    pub(super) records: &'a Records,
}

impl Owned<'_> {
    /// Returns the name of one of its credentials.
    pub(super) fn name(&self, last: &str) -> String {
        format!("/{}/{last}", self.number)
    }

    /// Returns the versions of one of its credentials, newest first.
    pub(super) fn versions(&self, name: &str) -> &[Value] {
        at(self.records, &Location::Credential(name.to_owned()))
    }

    /// Regenerates one of its credentials.
    pub(super) fn regenerate(&self, name: &str, credential_type: &str) -> Request {
        let version = json!({"type": credential_type, "name": name});
        Request::new(Method::POST, "/api/v1/regenerate", json!({"name": name}))
            .adds(self, name, version)
            .answers(name)
    }
}

/// The placeholder for a certificate's id in a path.
pub(super) const CERTIFICATE_ID: &str = "{certificate_id}";

const SUMMARY_CHARACTERS: usize = 300;
