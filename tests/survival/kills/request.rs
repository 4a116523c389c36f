//! Requests that change something, and what they change.

use keywright_harness::{Answer, Caller};
use reqwest::Method;
use serde_json::{Value, json};

use super::records::{Place, Records, at};

/// What a worker does next.
#[derive(Debug)]
pub(super) enum Step {
    /// It finds out what stands here, and that it is as expected.
    Read(Place),
    /// It changes something.
    Write(Request),
}

/// A request that changes something: all that it is to change, or nothing.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Value,
    /// What stands where afterwards. Where nothing changes, nothing is named.
    pub(super) changes: Records,
    /// Whose newest record the answer is.
    pub(super) answered: Option<Place>,
    /// Whether the server may find that the newest record will do, and answer that.
    pub(super) may_keep: bool,
    /// Whether the server may have too many such requests already, and refuse it.
    pub(super) may_be_refused: bool,
    /// The credential whose id as a certificate stands in the path.
    pub(super) certificate: Option<String>,
}

impl Request {
    /// A request that changes nothing yet.
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
            .insert(Place::Credential(name.to_owned()), Vec::new());
        request
    }

    /// Adds a version before those that are there.
    pub(super) fn adds(mut self, owned: &Owned<'_>, name: &str, version: Value) -> Self {
        let mut versions = vec![version];
        versions.extend_from_slice(owned.versions(name));
        self.changes
            .insert(Place::Credential(name.to_owned()), versions);
        self
    }

    /// The answer is the newest version of this credential.
    pub(super) fn answers(mut self, name: &str) -> Self {
        self.answered = Some(Place::Credential(name.to_owned()));
        self
    }

    /// The beginning of what is asked for.
    pub(super) fn summary(&self) -> String {
        let body: String = self
            .body
            .to_string()
            .chars()
            .take(SUMMARY_CHARACTERS)
            .collect();
        format!("{} {} {body}", self.method, self.path)
    }

    /// Sends it; none when the server was gone before it had answered.
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

/// What a worker owns, as it knows it.
pub(super) struct Owned<'a> {
    pub(super) number: usize,
    pub(super) records: &'a Records,
}

impl Owned<'_> {
    /// The name of one of its credentials.
    pub(super) fn name(&self, last: &str) -> String {
        format!("/{}/{last}", self.number)
    }

    /// The versions of one of its credentials, newest first.
    pub(super) fn versions(&self, name: &str) -> &[Value] {
        at(self.records, &Place::Credential(name.to_owned()))
    }

    /// Regenerates one of its credentials.
    pub(super) fn regenerate(&self, name: &str, credential_type: &str) -> Request {
        let version = json!({"type": credential_type, "name": name});
        Request::new(Method::POST, "/api/v1/regenerate", json!({"name": name}))
            .adds(self, name, version)
            .answers(name)
    }
}

/// Stands in a path for the id of a certificate.
pub(super) const CERTIFICATE_ID: &str = "{certificate_id}";

const SUMMARY_CHARACTERS: usize = 300;
