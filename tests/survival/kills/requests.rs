//! Requests that change something, and the records that they change: credentials other than certificates, and permissions.
//!
//! RSA and SSH keys are set, but never generated: generating one takes longer than a round.

use std::collections::BTreeMap;

use keywright_harness::{Caller, Response};
use rand::{Rng, RngExt, rngs::ChaCha12Rng, seq::IndexedRandom};
use reqwest::Method;
use serde_json::{Value, json};

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
    pub(super) responded: Option<Location>,
    /// Whether the server may keep and return the newest record.
    pub(super) may_keep: bool,
    /// Whether the server may reject the request because of too many such requests.
    pub(super) may_be_refused: bool,
    /// The certificate whose id is part of the path.
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
            responded: None,
            may_keep: false,
            may_be_refused: false,
            certificate: None,
        }
    }

    pub(super) fn delete(name: &str) -> Self {
        let path = format!("/api/v1/data?name={name}");
        let mut request = Self::new(Method::DELETE, path, Value::Null);
        request
            .changes
            .insert(Location::Credential(name.to_owned()), Vec::new());
        request
    }

    /// Adds a version to the existing versions.
    pub(super) fn adds(mut self, owned: &Owned<'_>, name: &str, version: Value) -> Self {
        let mut versions = vec![version];
        versions.extend_from_slice(owned.versions(name));
        self.changes
            .insert(Location::Credential(name.to_owned()), versions);
        self
    }

    /// Expects the newest version of this credential as the response.
    pub(super) fn responds_with_newest(mut self, name: &str) -> Self {
        self.responded = Some(Location::Credential(name.to_owned()));
        self
    }

    /// Returns the start of the request.
    pub(super) fn summary(&self) -> String {
        let body: String = self
            .body
            .to_string()
            .chars()
            .take(SUMMARY_CHARACTERS)
            .collect();
        format!("{} {} {body}", self.method, self.path)
    }

    /// Sends the request; `None` if the server was killed before it responded.
    pub(super) async fn send(&self, caller: &Caller) -> Option<Response> {
        let mut path = self.path.clone();
        if let Some(name) = &self.certificate {
            let list = caller.request(Method::GET, &format!("/api/v1/certificates?name={name}"));
            let list = Response::try_to(list).await.ok()?;
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
        Response::try_to(request).await.ok()
    }
}

/// A worker's credentials, with their expected records.
pub(super) struct Owned<'a> {
    pub(super) number: usize,
    pub(super) records: &'a Records,
}

impl Owned<'_> {
    pub(super) fn name(&self, last: &str) -> String {
        format!("/{}/{last}", self.number)
    }

    /// Returns the versions of one of its credentials, newest first.
    pub(super) fn versions(&self, name: &str) -> &[Value] {
        at(self.records, &Location::Credential(name.to_owned()))
    }

    pub(super) fn regenerate(&self, name: &str, credential_type: &str) -> Request {
        let version = json!({"type": credential_type, "name": name});
        Request::new(Method::POST, "/api/v1/regenerate", json!({"name": name}))
            .adds(self, name, version)
            .responds_with_newest(name)
    }
}

/// The placeholder for a certificate's id in a path.
pub(super) const CERTIFICATE_ID: &str = "{certificate_id}";

const SUMMARY_CHARACTERS: usize = 300;

/// A location that requests change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Location {
    /// The versions of a credential, by its name.
    Credential(String),
    Permission {
        path: String,
        actor: String,
    },
}

/// The records at each location, newest first. For records that the server created without returning them, only some
/// fields are known.
pub(super) type Records = BTreeMap<Location, Vec<Value>>;

impl Location {
    /// Reads the records at a location; `None` if the server or its database was killed.
    pub(super) async fn read(&self, caller: &Caller) -> Option<Vec<Value>> {
        let path = match self {
            Self::Credential(name) => format!("/api/v1/data?name={name}"),
            Self::Permission { path, actor } => {
                format!("/api/v2/permissions?path={path}&actor={actor}")
            }
        };
        let response = Response::try_to(caller.request(Method::GET, &path))
            .await
            .ok()?;
        match response.status {
            404 => return Some(Vec::new()),
            503 => return None,
            _ => {}
        }
        let mut body = response.expect(200).json();
        Some(match self {
            Self::Credential(_) => body["data"].as_array().unwrap().clone(),
            Self::Permission { .. } => vec![body.take()],
        })
    }
}

/// Returns whether these are exactly the expected records, in this order.
pub(super) fn records_match(expected: &[Value], actual: &[Value]) -> bool {
    expected.len() == actual.len()
        && expected
            .iter()
            .zip(actual)
            .all(|(expected, actual)| record_matches(expected, actual))
}

/// Returns whether a record matches the expected record. An object may have more fields than expected.
pub(super) fn record_matches(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => expected.iter().all(|(name, value)| {
            actual
                .get(name)
                .is_some_and(|field| record_matches(value, field))
        }),
        _ => expected == actual,
    }
}

pub(super) fn at<'a>(records: &'a Records, location: &Location) -> &'a [Value] {
    records.get(location).map_or(&[], Vec::as_slice)
}

pub(super) fn next_for_credentials(owned: &Owned<'_>, choices: &mut ChaCha12Rng) -> Request {
    let (last, credential_type) = *CREDENTIALS.choose(choices).unwrap();
    let name = owned.name(last);
    let count = owned.versions(&name).len();
    if count > VERSIONS_MAX || (count > 0 && choices.random_ratio(1, 12)) {
        return Request::delete(&name);
    }
    if !last.starts_with(GENERATED) {
        return set(owned, choices, &name, credential_type);
    }
    if count > 0 && choices.random_ratio(1, 3) {
        return owned.regenerate(&name, credential_type);
    }
    generate(owned, choices, &name, credential_type)
}

fn set(owned: &Owned<'_>, choices: &mut ChaCha12Rng, name: &str, credential_type: &str) -> Request {
    let text = text(choices);
    let value = match credential_type {
        "json" => json!({"text": text, "list": [1, null, {"nested": ["ä", true]}]}),
        "user" => json!({"username": format!("user of {name}"), "password": short(&text)}),
        "rsa" | "ssh" => json!({"private_key": text}),
        _ => Value::String(text),
    };
    let metadata = match choices.random_range(0..3) {
        0 => json!({"number": choices.next_u32()}),
        _ => Value::Null,
    };
    let version =
        json!({"type": credential_type, "name": name, "value": value, "metadata": metadata});
    Request::new(Method::PUT, "/api/v1/data", version.clone())
        .adds(owned, name, version)
        .responds_with_newest(name)
}

fn generate(
    owned: &Owned<'_>,
    choices: &mut ChaCha12Rng,
    name: &str,
    credential_type: &str,
) -> Request {
    let mode = *["overwrite", "converge", "no-overwrite"]
        .choose(choices)
        .unwrap();
    let parameters = json!({"length": choices.random_range(20..23)});
    let body =
        json!({"name": name, "type": credential_type, "mode": mode, "parameters": parameters});
    let mut request = Request::new(Method::POST, "/api/v1/data", body).responds_with_newest(name);
    let exists = !owned.versions(name).is_empty();
    request.may_keep = exists && mode != "overwrite";
    if exists && mode == "no-overwrite" {
        return request;
    }
    request.adds(owned, name, json!({"type": credential_type, "name": name}))
}

/// Returns a unique text, sometimes longer than a page of the database.
fn text(choices: &mut ChaCha12Rng) -> String {
    let number = choices.next_u64();
    let length = if choices.random_ratio(1, 8) {
        choices.random_range(4_000..30_000)
    } else {
        choices.random_range(0..100)
    };
    format!("{number}{}", "x".repeat(length))
}

/// Returns the start of a text, for values with short fields.
fn short(text: &str) -> &str {
    &text[..text.len().min(50)]
}

/// The last parts of the names of a worker's credentials, with their types. Generated credentials are never set, so they
/// can always be regenerated.
const CREDENTIALS: [(&str, &str); 8] = [
    ("value", "value"),
    ("json", "json"),
    ("password", "password"),
    ("user", "user"),
    ("rsa", "rsa"),
    ("ssh", "ssh"),
    ("generated-password", "password"),
    ("generated-user", "user"),
];

const GENERATED: &str = "generated";

/// The number of versions above which a credential is deleted.
const VERSIONS_MAX: usize = 8;

pub(super) fn next_for_permissions(owned: &Owned<'_>, choices: &mut ChaCha12Rng) -> Step {
    let path = owned.name(PATHS.choose(choices).unwrap());
    let of = |actor: &&str| Location::Permission {
        path: path.clone(),
        actor: (*actor).to_owned(),
    };
    let operations = *OPERATIONS.choose(choices).unwrap();
    let is_absent = |actor| at(owned.records, &of(actor)).is_empty();
    if ACTORS.iter().all(is_absent) {
        return Step::Write(add_all(&path, operations));
    }
    let actor = *ACTORS.choose(choices).unwrap();
    let location = of(&actor);
    let Some(permission) = at(owned.records, &location).first() else {
        return Step::Write(add(location, &path, actor, operations));
    };
    match permission["uuid"].as_str() {
        Some(id) => Step::Write(change(choices, location.clone(), id, operations)),
        // The permission was added together with others, by a request whose response contains no ids.
        None => Step::Read(location),
    }
}

/// Adds a permission for each actor with one request.
fn add_all(path: &str, operations: &[&str]) -> Request {
    let grants =
        ACTORS.map(|actor| json!({"actor": actor, "path": path, "operations": operations}));
    let body = json!({"credential_name": path, "permissions": grants});
    let mut request = Request::new(Method::POST, "/api/v1/permissions", body);
    for actor in ACTORS {
        let location = Location::Permission {
            path: path.to_owned(),
            actor: actor.to_owned(),
        };
        let permission = json!({"path": path, "actor": actor, "operations": operations});
        request.changes.insert(location, vec![permission]);
    }
    request
}

fn add(location: Location, path: &str, actor: &str, operations: &[&str]) -> Request {
    let body = json!({"path": path, "actor": actor, "operations": operations});
    let mut request = Request::new(Method::POST, "/api/v2/permissions", body.clone());
    request.changes.insert(location.clone(), vec![body]);
    request.responded = Some(location);
    request
}

/// Replaces, amends or deletes a permission.
fn change(choices: &mut ChaCha12Rng, location: Location, id: &str, operations: &[&str]) -> Request {
    let Location::Permission { path, actor } = &location else {
        panic!("{location:?} is not a permission");
    };
    let address = format!("/api/v2/permissions/{id}");
    let changed = json!({"path": path, "actor": actor, "operations": operations});
    let (method, body) = match choices.random_range(0..3) {
        0 => (Method::PUT, changed.clone()),
        1 => (Method::PATCH, json!({"operations": operations})),
        _ => (Method::DELETE, Value::Null),
    };
    let is_deleted = method == Method::DELETE;
    let mut request = Request::new(method, address, body);
    if is_deleted {
        request.changes.insert(location, Vec::new());
    } else {
        request.changes.insert(location.clone(), vec![changed]);
        request.responded = Some(location);
    }
    request
}

/// The actors of the permissions. They send no requests.
const ACTORS: [&str; 3] = ["uaa-client:one", "uaa-client:two", "uaa-client:three"];

/// The operations, in the order of responses.
const OPERATIONS: [&[&str]; 3] = [
    &["read"],
    &["read", "write"],
    &["write", "delete", "read_acl"],
];

/// The paths below a worker's folder. They do not overlap, because operations that are already granted can't be added.
const PATHS: [&str; 2] = ["value", "json/*"];
