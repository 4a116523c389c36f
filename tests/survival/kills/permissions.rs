//! Adds, amends, replaces and deletes permissions.

use rand::{RngExt, rngs::ChaCha12Rng, seq::IndexedRandom};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    records::{Location, at},
    request::{Owned, Request, Step},
};

/// Returns the next step.
pub(super) fn next(owned: &Owned<'_>, choices: &mut ChaCha12Rng) -> Step {
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
        // It was added with others, by a response without ids.
        None => Step::Read(location),
    }
}

/// Adds all of them with one request.
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
    request.answered = Some(location);
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
        request.answered = Some(location);
    }
    request
}

/// The actors of the permissions, none of which sends requests.
const ACTORS: [&str; 3] = ["uaa-client:one", "uaa-client:two", "uaa-client:three"];

/// The operations, in the order of responses.
const OPERATIONS: [&[&str]; 3] = [
    &["read"],
    &["read", "write"],
    &["write", "delete", "read_acl"],
];

/// The paths below a worker's own. None encloses another, because operations that are already granted can't be added.
const PATHS: [&str; 2] = ["value", "json/*"];
