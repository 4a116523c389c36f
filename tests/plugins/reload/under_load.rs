//! Swapping a plugin under load.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use keywright_harness::{Options, Server, component};
use serde_json::Value;
use tempfile::TempDir;

use super::{
    assert_loaded,
    load::{CREDENTIAL_TYPE, Generated, Load, Outcome, PERIOD},
    section,
};

/// The load is paced, not measured: a slow machine handles fewer requests per second, but the assertions stay the same.
#[tokio::test(flavor = "multi_thread")]
async fn reloads_under_load_fail_no_request_and_record_each_digest() {
    let files = TempDir::new().unwrap();
    let builds = MARKS.map(|mark| build(&files, mark));
    let server = Arc::new(Server::start_with(&options(&builds[0])).await);
    let load = Arc::new(Load::on(&server));
    let before = Instant::now();
    let swaps = async {
        let mut reigns = vec![Reign::begin(before, &server).await];
        for number in 1..=SWAPS {
            load.generate_more(GENERATED_A_REIGN).await;
            let signalled_at = Instant::now();
            let build = options(&builds[number % builds.len()]);
            assert_loaded(&server.reload_plugins(&build).await);
            reigns.last_mut().unwrap().ended = Instant::now();
            reigns.push(Reign::begin(signalled_at, &server).await);
        }
        load.generate_more(GENERATED_A_REIGN).await;
        load.end();
        reigns.last_mut().unwrap().ended = Instant::now() + A_LONG_TIME;
        reigns
    };
    let (outcome, reigns) = tokio::join!(load.run(), swaps);
    tell(&outcome, &reigns);

    assert_eq!(outcome.failures, Vec::<String>::new());
    let mut found = 0;
    for (mark, build) in MARKS.iter().zip(&builds) {
        let digest = keywright_harness::digest(&fs::read(build).unwrap()).replace("sha256:", "");
        let names = names(&server, &digest).await;
        assert!(!names.is_empty(), "{mark}");
        for name in names {
            found += 1;
            let generated = &outcome.generated[&name];
            let marks = MARKS
                .iter()
                .filter(|mark| generated.value.get(mark).is_some());
            let marks: Vec<_> = marks.collect();
            assert_eq!(marks, [mark], "{name} is said to be made by {digest}");
            let own = |reign: &&Reign| reign.digest == digest;
            assert!(
                reigns
                    .iter()
                    .filter(own)
                    .any(|reign| reign.may_have_made(generated)),
                "{name} was not made while {digest} was configured"
            );
        }
    }
    assert_eq!(found, outcome.generated.len());
}

/// When a component was configured.
struct Reign {
    digest: String,
    /// A time before the server loaded it.
    began: Instant,
    /// A time after the server loaded the next one.
    ended: Instant,
}

impl Reign {
    /// The reign of the configured component, from this time on.
    async fn begin(began: Instant, server: &Server) -> Self {
        Self {
            digest: digest(server).await,
            began,
            ended: began,
        }
    }

    /// Whether the component may have been configured at some time during this request.
    fn may_have_made(&self, generated: &Generated) -> bool {
        generated.answered >= self.began && generated.begun <= self.ended
    }
}

/// Prints the load.
fn tell(outcome: &Outcome, reigns: &[Reign]) {
    let per_second = |count: usize, time: Duration| {
        f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / time.as_secs_f64()
    };
    println!(
        "{} requests, {} swaps: offered {:.0} a second, answered {:.0} a second, {} were held back",
        outcome.requests,
        reigns.len() - 1,
        per_second(1, PERIOD),
        per_second(outcome.requests, outcome.took),
        outcome.held_back,
    );
}

/// A build of the same plugin that names one field of its values by a mark, in the value and in its schema, so that
/// each value shows the build that generated it.
fn build(files: &TempDir, mark: &str) -> PathBuf {
    let mut bytes = fs::read(component(CREDENTIAL_TYPE)).unwrap();
    let (member, marked) = (MARKED.as_bytes(), format!("\"{mark}\""));
    let mut positions = 0;
    for position in 0..bytes.len() - member.len() {
        if bytes[position..].starts_with(member) {
            bytes[position..position + member.len()].copy_from_slice(marked.as_bytes());
            positions += 1;
        }
    }
    assert_eq!(positions, 2);
    let path = files.path().join(mark);
    fs::write(&path, bytes).unwrap();
    path
}

/// A server with such a build, and timeouts for slow machines.
fn options(build: &Path) -> Options {
    let section = format!("{}\nlimits = {{ deadline_ms = 600000 }}", section(build));
    Options::default()
        .generator(CREDENTIAL_TYPE, &section)
        .environment("KEYWRIGHT_LOG", "info")
        .environment("KEYWRIGHT_STORAGE__WAIT_SECONDS_MAX", "600")
}

/// The digest of the plugin that generates the credentials, according to the server.
async fn digest(server: &Server) -> String {
    let answer = server.get("/api/v1/types").await.expect(200).json();
    let types = answer["types"].as_array().unwrap();
    let listed = types
        .iter()
        .find(|listed| listed["name"] == CREDENTIAL_TYPE);
    listed.unwrap()["plugin"]["digest"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The names of the credentials that a component generated.
async fn names(server: &Server, digest: &str) -> BTreeSet<String> {
    let query = format!("/api/v1/data?generated_by={digest}");
    let found = server.get(&query).await.expect(200).json();
    let found: &Vec<Value> = found["credentials"].as_array().unwrap();
    let names = found.iter().map(|found| found["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

/// The marks of the builds that alternate.
const MARKS: [&str; 3] = ["1st", "2nd", "3rd"];

/// The field that is named by the mark, as contained in the component.
const MARKED: &str = "\"now\"";

/// The number of swaps.
const SWAPS: usize = 6;

/// The minimum number of credentials generated between two swaps: more than the concurrent requests.
const GENERATED_A_REIGN: usize = 100;

/// A duration longer than the test.
const A_LONG_TIME: Duration = Duration::from_hours(24);
