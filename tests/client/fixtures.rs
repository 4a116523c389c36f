//! Responses of stub servers, and stored credentials.

use std::{
    fs,
    path::Path,
    sync::{
        Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use keywright_harness::{ReceivedRequest, Server, Shell};
use serde_json::{Value, json};

/// Creates a gate: requests to a stub server block until the test drops its end.
pub(crate) fn gate() -> (Gate, Blocker) {
    let (arrived, arrivals) = channel();
    let (open, opened) = channel();
    let blocker = Blocker {
        arrived: Mutex::new(arrived),
        opened: Mutex::new(opened),
    };
    (
        Gate {
            arrivals,
            _open: open,
        },
        blocker,
    )
}

/// The test's end. Dropping it opens the gate.
pub(crate) struct Gate {
    arrivals: Receiver<()>,
    _open: Sender<()>,
}

/// The stub server's end.
pub(crate) struct Blocker {
    arrived: Mutex<Sender<()>>,
    opened: Mutex<Receiver<()>>,
}

impl Gate {
    /// Waits for the next request.
    pub(crate) fn wait(&self) {
        self.arrivals.recv_timeout(REQUEST_WAIT_MAX).unwrap();
    }
}

impl Blocker {
    /// Signals a request, and blocks until the test drops its end.
    pub(crate) fn block(&self) {
        let _ = self.arrived.lock().unwrap().send(());
        let _ = self.opened.lock().unwrap().recv();
    }
}

/// Returns the response with a list of credentials.
pub(crate) fn listing<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let listed = names
        .into_iter()
        .map(|name| json!({"name": name, "version_created_at": "2026-01-01T00:00:00Z"}));
    json!({"credentials": listed.collect::<Vec<_>>()}).to_string()
}

/// Returns the response with the active version of a password, for the name in the request's query.
pub(crate) fn password_for(request: &ReceivedRequest, value: &str) -> String {
    let name = name_in(request);
    json!({"data": [{
        "type": "password", "version_created_at": "2026-01-01T00:00:00Z",
        "id": "8563075f-ca25-4adf-9acb-a4be6a9077fd", "name": name, "metadata": null, "value": value,
    }]})
    .to_string()
}

/// Returns the name in a request's query.
pub(crate) fn name_in(request: &ReceivedRequest) -> String {
    let (_, name) = request.line.rsplit_once("name=").unwrap();
    name.replace("%2F", "/")
}

const REQUEST_WAIT_MAX: Duration = Duration::from_mins(10);

/// The response with a version.
pub(crate) const VERSION: &str = r#"{"type":"value","version_created_at":"2026-01-01T00:00:00Z","id":"8563075f-ca25-4adf-9acb-a4be6a9077fd","name":"/a","metadata":null,"value":"v"}"#;

/// Returns the response with [`VERSION`] as the only active version.
pub(crate) fn versions() -> String {
    format!("{{\"data\":[{VERSION}]}}")
}

/// Returns the type, value and metadata of the active version of each credential below a path, by name, without fields that the
/// server computes.
pub(crate) async fn stored(server: &Server, path: &str) -> Value {
    let found = server.get_json(&format!("/api/v1/data?path={path}")).await;
    let mut stored = json!({});
    for item in found["credentials"].as_array().unwrap() {
        let name = item["name"].as_str().unwrap();
        let response = server
            .get(&format!("/api/v1/data?current=true&name={name}"))
            .await
            .expect(200);
        let mut version = response.json()["data"][0].take();
        let is_json = version["type"] == json!("json");
        if let Some(fields) = version["value"].as_object_mut()
            && !is_json
        {
            fields.remove("password_hash");
            fields.remove("public_key_fingerprint");
        }
        stored[name] = json!([version["type"], version["value"], version["metadata"]]);
    }
    stored
}

/// Passes a client's id and secret to all commands of a shell, instead of a token.
pub(crate) fn with_secret(shell: Shell) -> Shell {
    shell
        .without("KEYWRIGHT_CLIENT_TOKEN")
        .variable("KEYWRIGHT_CLIENT_ID", "app")
        .variable("KEYWRIGHT_CLIENT_SECRET", "secret")
}

/// Writes a file into the shell's folder.
pub(crate) fn file(shell: &Shell, name: &str, text: &str) {
    fs::write(shell.file(name), text).unwrap();
}

/// Returns the sorted names of the files in a folder.
pub(crate) fn file_names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
