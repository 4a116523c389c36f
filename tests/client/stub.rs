//! Responses of stub servers.

use std::{
    sync::{
        Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

pub(crate) use keywright_harness::{Asked, Reply, Stub};
use serde_json::json;

/// Creates a gate: requests of a stub server block until the test drops its end.
pub(crate) fn hold() -> (Held, Holder) {
    let (asked, is_asked) = channel();
    let (done, is_done) = channel();
    let holder = Holder {
        asked: Mutex::new(asked),
        is_done: Mutex::new(is_done),
    };
    (
        Held {
            is_asked,
            _done: done,
        },
        holder,
    )
}

/// The test's end. Dropping it releases the requests.
pub(crate) struct Held {
    is_asked: Receiver<()>,
    _done: Sender<()>,
}

/// The server's end.
pub(crate) struct Holder {
    asked: Mutex<Sender<()>>,
    is_done: Mutex<Receiver<()>>,
}

impl Held {
    /// Waits for the next request.
    pub(crate) fn wait(&self) {
        self.is_asked.recv_timeout(REQUEST_WAIT_MAX).unwrap();
    }
}

impl Holder {
    /// Signals a request, and blocks until the test drops its end.
    pub(crate) fn hold(&self) {
        let _ = self.asked.lock().unwrap().send(());
        let _ = self.is_done.lock().unwrap().recv();
    }
}

/// The response with a list of credentials.
pub(crate) fn listing<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let listed = names
        .into_iter()
        .map(|name| json!({"name": name, "version_created_at": "2026-01-01T00:00:00Z"}));
    json!({"credentials": listed.collect::<Vec<_>>()}).to_string()
}

/// The response with the active version of a password, for the name in the request's query.
pub(crate) fn password_for(asked: &Asked, value: &str) -> String {
    let name = name_in(asked);
    json!({"data": [{
        "type": "password", "version_created_at": "2026-01-01T00:00:00Z",
        "id": "8563075f-ca25-4adf-9acb-a4be6a9077fd", "name": name, "metadata": null, "value": value,
    }]})
    .to_string()
}

/// The name in a request's query.
pub(crate) fn name_in(asked: &Asked) -> String {
    let (_, name) = asked.line.rsplit_once("name=").unwrap();
    name.replace("%2F", "/")
}

/// The maximum wait for a request.
const REQUEST_WAIT_MAX: Duration = Duration::from_mins(10);

/// The response with a version.
pub(crate) const VERSION: &str = r#"{"type":"value","version_created_at":"2026-01-01T00:00:00Z","id":"8563075f-ca25-4adf-9acb-a4be6a9077fd","name":"/a","metadata":null,"value":"v"}"#;

/// The response with this version as the only active one.
pub(crate) fn versions() -> String {
    format!("{{\"data\":[{VERSION}]}}")
}
