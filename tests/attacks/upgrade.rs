//! Releases of a plugin that add a parameter with a default, or remove one, during converging requests.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use keywright_harness::{Options, Server, Text, component, digest, until};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

/// Writes another release of a plugin to a file.
fn release(files: &TempDir, plugin: &str, replaced: (&str, &str)) -> PathBuf {
    let path = files.path().join(format!("{plugin}.wasm"));
    fs::write(&path, keywright_harness::release(plugin, replaced)).unwrap();
    path
}

fn plain(component: &Path) -> Options {
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\"]\nlimits = {{ deadline_ms = 600000 }}",
        component.display()
    );
    Options::default().generator("plain", &section)
}

async fn upgrade(server: &Server, to: &Options) {
    let log = server.reload_plugins(to).await;
    log.assert_contains("reloaded the plugins");
}

/// Waits until each credential has converged several more times, or a worker has failed.
async fn converge_more(converged: &AtomicUsize, load: &JoinSet<()>) {
    let enough = converged.load(Ordering::Relaxed) + CREDENTIALS * 4;
    let is_over = async || converged.load(Ordering::Relaxed) >= enough || load.len() < WORKERS;
    until("more convergences", is_over).await;
}

/// Returns the parameters that the plugin received for the newest version.
async fn given(server: &Server, name: &str) -> Value {
    server.versions(name).await[0]["value"]["given"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_default_under_converge_load_adds_no_version() {
    let files = TempDir::new().unwrap();
    let newer = release(&files, "plain", (LABEL, LABEL_WITH_DEFAULT));
    let server = Arc::new(Server::start_with(&plain(&component("plain"))).await);
    let converged = Arc::new(AtomicUsize::new(0));
    let has_ended = Arc::new(AtomicBool::new(false));
    let mut load = JoinSet::new();
    for worker in 0..WORKERS {
        let (server, converged) = (Arc::clone(&server), Arc::clone(&converged));
        let has_ended = Arc::clone(&has_ended);
        load.spawn(async move {
            let mut round = worker;
            while !has_ended.load(Ordering::Relaxed) {
                round += 1;
                let number = round % CREDENTIALS;
                let name = format!("/load/{number}");
                let parameters = parameters(number);
                server.generated(&name, "plain", parameters).await;
                converged.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    converge_more(&converged, &load).await;
    upgrade(&server, &plain(&newer)).await;
    converge_more(&converged, &load).await;
    has_ended.store(true, Ordering::Relaxed);
    while let Some(worker) = load.join_next().await {
        worker.unwrap();
    }
    println!("{} requests converged", converged.load(Ordering::Relaxed));
    for number in 0..CREDENTIALS {
        let name = format!("/load/{number}");
        assert_eq!(server.versions(&name).await.len(), 1, "{name}");
    }

    // The new release of the plugin receives the default, and explicit parameters still apply.
    server.regenerated("/load/0").await;
    let expected = json!({"length": 4, "label": "new"});
    assert_eq!(given(&server, "/load/0").await, expected);
    let old = digest(&fs::read(component("plain")).unwrap());
    let bulk = json!({"generated_by": old});
    server
        .post("/api/v1/bulk-regenerate", bulk)
        .await
        .expect(200);
    let expected = json!({"length": 5, "label": "new"});
    assert_eq!(given(&server, "/load/1").await, expected);
    let parameters = json!({"length": 9});
    server.generated("/load/0", "plain", parameters).await;
    assert_eq!(server.versions("/load/0").await.len(), 3);
}

#[tokio::test]
async fn a_removed_parameter_is_reported_and_adds_no_version() {
    let files = TempDir::new().unwrap();
    let newer = release(&files, "plain", (LABEL, BADGE));
    let server = Server::start_with(&plain(&component("plain"))).await;
    let labelled = json!({"length": 8, "label": "x"});
    for name in ["/kept", "/changed"] {
        server.generated(name, "plain", labelled.clone()).await;
    }
    upgrade(&server, &plain(&newer)).await;

    let refused = server.regenerate("/kept").await.expect(400).error();
    for part in ["label", "generate the credential again"] {
        refused.assert_contains(part);
    }
    let old = digest(&fs::read(component("plain")).unwrap());
    let bulk = json!({"generated_by": old});
    let refused = server.post("/api/v1/bulk-regenerate", bulk).await;
    let refused = refused.expect(400).error();
    refused.assert_contains("label");
    let refused = server.generate("/kept", "plain", labelled).await;
    refused.expect_error(400, "label");

    for (name, parameters, versions) in [
        ("/kept", json!({"length": 8}), 1),
        ("/changed", json!({"length": 7}), 2),
        ("/changed", json!({"length": 7}), 2),
        ("/kept", json!({"length": 8, "badge": "b"}), 2),
    ] {
        server.generated(name, "plain", parameters).await;
        assert_eq!(server.versions(name).await.len(), versions, "{name}");
    }
    server.regenerated("/kept").await;
    let expected = json!({"length": 8, "badge": "b"});
    assert_eq!(given(&server, "/kept").await, expected);
}

/// The normalizers and recoverers of newer builds accept the values and parameters that older builds stored, including
/// parameters recovered from set values.
#[tokio::test]
async fn newer_builds_keep_and_regenerate_values_of_older_ones() {
    let files = TempDir::new().unwrap();
    let server = Server::start().await;
    let certificate = json!({
        "common_name": "a", "is_ca": true, "key_type": "ecdsa-p256", "duration": 30,
        "alternative_names": ["b.example"],
    });
    let user = json!({"username": "u"});
    for (name, credential_type, parameters) in
        [("/a", "certificate", &certificate), ("/u", "user", &user)]
    {
        server
            .generated(name, credential_type, parameters.clone())
            .await;
    }
    let a = server.versions("/a").await[0]["value"].take();
    server.stored("/set", "certificate", a).await;
    server.regenerated("/set").await;
    let newer = |plugin: &str, text, grants: &str| {
        let path = release(&files, plugin, text);
        format!("component = \"{}\"\ngrants = [{grants}]", path.display())
    };
    let certificates = ("X.509 certificates with", "X.509 certificates plus");
    let users = ("Users with a random", "Users plus a random");
    let options = Options::default()
        .generator(
            "certificate",
            &newer("certificate", certificates, "\"random\", \"signing\""),
        )
        .generator("user", &newer("user", users, "\"random\""));
    let converge = async |name: &str, credential_type: &str, parameters: &Value| {
        let parameters = parameters.clone();
        let converged = server.generate(name, credential_type, parameters).await;
        converged.expect(200).json()["id"].take()
    };
    let credentials = [
        ("/a", "certificate", &certificate),
        ("/u", "user", &user),
        ("/set", "certificate", &certificate),
    ];
    let mut before = Vec::new();
    for (name, credential_type, parameters) in credentials {
        before.push(converge(name, credential_type, parameters).await);
    }
    upgrade(&server, &options).await;
    for ((name, credential_type, parameters), before) in credentials.into_iter().zip(before) {
        let after = converge(name, credential_type, parameters).await;
        assert_eq!(after, before, "{name}");
        let regenerated = server.regenerated(name).await;
        assert_ne!(regenerated["id"], before, "{name}");
    }
}

fn parameters(number: usize) -> Value {
    match number % 3 {
        0 => json!({}),
        1 => json!({"length": 5}),
        _ => json!({"label": "own"}),
    }
}

/// A parameter of the plugin `plain`, the parameter with a default, and a replacement of the parameter.
const LABEL: &str = r#""label": {"type": "string"}"#;
const LABEL_WITH_DEFAULT: &str = r#""label": {"default": "new"}"#;
const BADGE: &str = r#""badge": {"type": "string"}"#;

/// The number of converging credentials, and of concurrent requests.
const CREDENTIALS: usize = 30;
const WORKERS: usize = 8;
