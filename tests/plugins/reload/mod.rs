//! Plugins are replaced while the server runs: SIGHUP reloads the configuration of plugins, completely or not at all.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod load;
mod under_load;

use std::{collections::BTreeSet, path::Path};

use keywright_harness::{Answer, Options, Scrape, Server, component};
use reqwest::Method;
use serde_json::json;

#[tokio::test]
async fn call_in_progress_finishes_with_the_old_plugin() {
    // The call must still be in progress when the plugins are replaced. It runs longer on slower machines.
    for deadline_ms in [3_000, 30_000, 300_000] {
        if is_ended_by_what_it_started_with(deadline_ms).await {
            return;
        }
    }
    panic!("no call was in flight while the plugins were reloaded");
}

/// Swaps the plugin during a call that runs until its deadline. Returns whether the call was still running after the
/// swap.
async fn is_ended_by_what_it_started_with(deadline_ms: u32) -> bool {
    let hostile = |settings: &str| {
        let section = format!(
            "component = \"{}\"\ngrants = [\"random\", \"signing\"]\nderived = true\n\
             limits = {{ deadline_ms = {deadline_ms} }}\nsettings = {{ {settings} }}",
            component("hostile").display()
        );
        Options::default().watched().generator("hostile", &section)
    };
    let server = Server::start_with(&hostile("generate = \"loop\"")).await;
    let body = json!({"name": "/a", "type": "hostile", "parameters": {}});
    let request = server.authorized(Method::POST, "/api/v1/data");
    let started = tokio::spawn(Answer::to(request.body(body.to_string())));
    let is_at_work = |scrape: &Scrape| {
        let generate = [("lane", "generate")];
        scrape.sum("keywright_plugin_lane_threads_busy", &generate) == Some(1.0)
    };
    server
        .scrape_until(|scrape| is_at_work(scrape) || started.is_finished())
        .await;
    assert_loaded(&server.reload_plugins(&hostile("")).await);
    let made = server.generate("/b", "hostile", json!({})).await;
    made.expect(200);
    let was_in_flight = !started.is_finished();
    let error = started.await.unwrap().expect(500).error();
    assert_eq!(error, "the plugin hostile exceeded its deadline");
    was_in_flight
}

#[tokio::test]
async fn removed_type_can_be_read_and_comes_back() {
    let with = with_wireguard(&component("wireguard"));
    let server = Server::start().await;
    let unknown = server.generate("/a", "wireguard", json!({})).await;
    unknown.expect(400);
    assert_loaded(&server.reload_plugins(&with).await);
    let made = server.generate("/a", "wireguard", json!({})).await;
    let made = made.expect(200).json();

    assert_loaded(&server.reload_plugins(&Options::default()).await);
    assert!(!types(&server).await.contains("wireguard"));
    let read = server.get("/api/v1/data?name=/a").await.expect(200);
    assert_eq!(read.json()["data"][0]["value"], made["value"]);
    server.regenerate("/a").await.expect(400);

    assert_loaded(&server.reload_plugins(&with).await);
    let again = server.regenerate("/a").await.expect(200).json();
    assert_ne!(again["value"], made["value"]);
}

#[tokio::test]
async fn invalid_plugins_are_rejected_as_a_whole() {
    let server = Server::start().await;
    let before = types(&server).await;
    let mistaken = Options::default()
        .generator("absent", "component = \"nowhere.wasm\"")
        .generator(
            "hostile",
            &format!("component = \"{}\"", component("hostile").display()),
        )
        .generator("wireguard", &section(&component("wireguard")));
    let expected = server.reload_plugins(&mistaken).await;
    assert!(expected.contains("calls use those that were loaded before"));
    let log = server.log();
    for reason in ["nowhere.wasm", "the plugin hostile"] {
        assert!(log.contains(reason), "{reason} is not in: {log}");
    }
    assert_eq!(types(&server).await, before);
    let made = server.generate("/a", "password", json!({})).await;
    made.expect(200);

    // The next valid configuration is loaded.
    assert_loaded(
        &server
            .reload_plugins(&with_wireguard(&component("wireguard")))
            .await,
    );
}

#[tokio::test]
async fn unreadable_configuration_changes_nothing() {
    let server = Server::start().await;
    let nonsense = Options::default().extra("[plugin]\nfile = \"hunter2\"");
    let expected = server.reload_plugins(&nonsense).await;
    assert!(expected.contains("calls use those that were loaded before"));
    assert!(!server.log().contains("hunter2"));
    let made = server.generate("/a", "password", json!({})).await;
    made.expect(200);
}

#[tokio::test]
async fn resolver_can_be_removed_and_added() {
    let server = Server::start().await;
    let document = json!({"VCAP_SERVICES": {}});
    let interpolate = "/api/v1/interpolate";
    for (options, status) in [
        (Options::default().without_resolver(), 501),
        (Options::default(), 200),
    ] {
        assert_loaded(&server.reload_plugins(&options).await);
        let answer = server.post(interpolate, document.clone()).await;
        answer.expect(status);
    }
}

fn section(component: &Path) -> String {
    format!(
        "component = \"{}\"\ngrants = [\"random\"]",
        component.display()
    )
}

fn with_wireguard(component: &Path) -> Options {
    Options::default().generator("wireguard", &section(component))
}

#[track_caller]
fn assert_loaded(expected: &str) {
    assert!(expected.contains("reloaded the plugins"), "{expected}");
}

/// Returns the types that can be generated.
async fn types(server: &Server) -> BTreeSet<String> {
    let answer = server.get("/api/v1/types").await.expect(200).json();
    let types = answer["types"].as_array().unwrap().iter();
    types
        .map(|listed| listed["name"].as_str().unwrap().to_owned())
        .collect()
}
