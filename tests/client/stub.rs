//! What servers answer that tests make up.

use std::{
    sync::{
        Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

pub(crate) use keywright_harness::{Asked, Reply, Stub};
use serde_json::json;

/// Has a server keep requests waiting for their answers until the test is done with them.
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

/// The test's end: the requests are answered when it is dropped.
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
    /// Waits until a request has come, each time for another one.
    pub(crate) fn wait(&self) {
        self.is_asked.recv_timeout(PATIENCE).unwrap();
    }
}

impl Holder {
    /// Tells that a request has come, and waits until the test is done with it.
    pub(crate) fn hold(&self) {
        let _ = self.asked.lock().unwrap().send(());
        let _ = self.is_done.lock().unwrap().recv();
    }
}

/// Credentials as a server lists them.
pub(crate) fn listing<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let listed = names
        .into_iter()
        .map(|name| json!({"name": name, "version_created_at": "2026-01-01T00:00:00Z"}));
    json!({"credentials": listed.collect::<Vec<_>>()}).to_string()
}

/// The version in use of a password, as a server answers with it, for the name in the query of a request.
pub(crate) fn password_for(asked: &Asked, value: &str) -> String {
    let name = name_in(asked);
    json!({"data": [{
        "type": "password", "version_created_at": "2026-01-01T00:00:00Z",
        "id": "8563075f-ca25-4adf-9acb-a4be6a9077fd", "name": name, "metadata": null, "value": value,
    }]})
    .to_string()
}

/// The name in the query of a request.
pub(crate) fn name_in(asked: &Asked) -> String {
    let (_, name) = asked.line.rsplit_once("name=").unwrap();
    name.replace("%2F", "/")
}

/// How long a request may take to come.
const PATIENCE: Duration = Duration::from_mins(10);

/// A credential as a server answers with it.
pub(crate) const VERSION: &str = r#"{"type":"value","version_created_at":"2026-01-01T00:00:00Z","id":"8563075f-ca25-4adf-9acb-a4be6a9077fd","name":"/a","metadata":null,"value":"v"}"#;

/// The same as the only version in use.
pub(crate) fn versions() -> String {
    format!("{{\"data\":[{VERSION}]}}")
}
