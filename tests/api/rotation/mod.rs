//! Rotation of encryption keys: versions under other keys are re-encrypted with the active one while the server runs.

mod commands;
mod interrupted;
mod under_load;

use std::{collections::BTreeMap, fs, time::Duration};

use keywright_harness::{Caller, Options, Response, Server, until_some};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

/// Test keys in base64, each in its own file.
struct Keys(TempDir);

impl Keys {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        for (name, key) in [
            ("a", "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="),
            ("b", "QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI="),
            ("c", "Q0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0NDQ0M="),
        ] {
            fs::write(folder.path().join(name), key).unwrap();
        }
        Self(folder)
    }

    /// Returns the sections of these keys. The first key is active.
    fn sections(&self, names: &[&str]) -> String {
        let section = |(position, name): (usize, &&str)| {
            let file = self.0.path().join(name);
            let is_active = position == 0;
            format!(
                "[[encryption.keys]]\nprovider = \"raw\"\nfile = \"{}\"\nactive = {is_active}\n",
                file.display()
            )
        };
        names.iter().enumerate().map(section).collect()
    }

    /// Returns options of a server that encrypts with the first of these keys, and rotates with these settings.
    fn options(&self, names: &[&str], rotation: &str) -> Options {
        let keys = self.sections(names);
        let sections = format!("{keys}[encryption.rotation]\n{rotation}\n");
        Options::default()
            .encryption(&sections)
            .without_plugins()
            .watched()
    }
}

/// Rotates as fast as possible.
const FAST: &str = "pause_milliseconds = 0\ninterval_seconds = 1";

/// At least a second per version, so slow that tests can intervene on any machine. No test waits until such a rotation
/// completes.
const SLOW: &str = "batch_versions = 1\npause_milliseconds = 1000\ninterval_seconds = 1";

const OFF: &str = "enabled = false";

/// The set values of each credential, newest first.
type Values = BTreeMap<String, Vec<String>>;

/// Sets this many versions, spread over several credentials.
async fn seed(server: &Server, versions: usize) -> Values {
    let mut values = Values::new();
    for begin in (0..versions).step_by(SEEDED_BY_ONE_TOKEN) {
        let caller = server.as_client("developer").await;
        let end = versions.min(begin + SEEDED_BY_ONE_TOKEN);
        let mut tasks = JoinSet::new();
        for task in 0..SEEDING_TASKS {
            let numbers: Vec<usize> = (begin + task..end).step_by(SEEDING_TASKS).collect();
            tasks.spawn(seed_some(caller.clone(), numbers));
        }
        values.extend(tasks.join_all().await.into_iter().flatten());
    }
    values
}

async fn seed_some(caller: Caller, numbers: Vec<usize>) -> Values {
    let mut values = Values::new();
    for numbers in numbers.chunks(VERSIONS_PER_CREDENTIAL) {
        let name = format!("/seed/{}", numbers[0]);
        for number in numbers {
            let text = format!("{CANARY}{number}");
            set(&caller, &name, &text).await.expect(200);
            values.entry(name.clone()).or_default().insert(0, text);
        }
    }
    values
}

async fn set(caller: &Caller, name: &str, text: &str) -> Response {
    let body = json!({"name": name, "type": "value", "value": text});
    caller.put("/api/v1/data", body).await
}

/// Returns the values of a credential in a response.
fn values_of(response: &Response) -> Vec<String> {
    let versions = response.json();
    let versions = versions["data"].as_array().unwrap().iter();
    let values = versions.map(|version| version["value"].as_str().unwrap().to_owned());
    values.collect()
}

/// Asserts that all values are returned as set.
async fn assert_values(server: &Server, values: &Values) {
    for (name, expected) in values {
        let response = server.get(&format!("/api/v1/data?name={name}")).await;
        assert_eq!(values_of(&response.expect(200)), *expected, "{name}");
    }
}

/// Returns the numbers of versions under the active key, inactive keys, and unknown keys.
async fn usage(server: &Server) -> [u64; 3] {
    let response = server.get_json("/api/v1/key-usage").await;
    ["active_key", "inactive_keys", "unknown_keys"].map(|field| response[field].as_u64().unwrap())
}

/// Polls until the number of versions under inactive keys meets the condition.
async fn until_inactive(server: &Server, is_met: impl Fn(u64) -> bool) -> [u64; 3] {
    let attempt = async || Some(usage(server).await).filter(|usage| is_met(usage[1]));
    until_some("such usage", attempt).await
}

/// Returns the server's counts of rotated and failed versions.
async fn counted(server: &Server) -> (f64, f64) {
    let scrape = server.scrape().await;
    let versions = |outcome| {
        let labels = [("outcome", outcome)];
        let versions = scrape.sum("keywright_key_rotation_versions_total", &labels);
        versions.unwrap()
    };
    (versions("rotated"), versions("failed"))
}

/// Returns the log line with the result of a rotation.
fn result_line(log: &str) -> Value {
    let words = "stopped rotating encryption keys";
    let line = log.lines().find(|line| line.contains(words));
    serde_json::from_str(line.unwrap_or_else(|| panic!("no rotation has stopped:\n{log}"))).unwrap()
}

/// A text that no file and no row may contain.
const CANARY: &str = "rotated-canary-";

const SEEDING_TASKS: usize = 8;
const SEEDED_BY_ONE_TOKEN: usize = 10_000;
const VERSIONS_PER_CREDENTIAL: usize = 20;

const POLL: Duration = Duration::from_millis(20);
