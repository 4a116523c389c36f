//! Searches that read every name, of an actor who may read almost nothing, and lists of everything that a CA signed.

use keywright_harness::{Caller, Response, Server};
use reqwest::Method;
use serde_json::json;
use tokio::task::JoinSet;

#[tokio::test]
async fn many_searches_of_one_actor_delay_others_only_briefly() {
    let server = Server::reused().await;
    let mut setting = JoinSet::new();
    for number in 0..NAMES {
        let name = format!("/many/{number}");
        let body = json!({"name": name, "type": "value", "value": "v"});
        let request = server.authorized(Method::PUT, "/api/v1/data");
        setting.spawn(Response::to(request.body(body.to_string())));
        if setting.len() > 32 {
            setting.join_next().await.unwrap().unwrap().expect(200);
        }
    }
    setting.join_all().await;
    let attacker = server.as_client("attacker").await;
    server.grant("/attacker", attacker.actor(), &["read"]).await;
    let reader = server.as_client("reader").await;
    server.grant("/many/1", reader.actor(), &["read"]).await;

    for search in ["/api/v1/data?path=/", "/api/v1/data?name-like=many"] {
        assert_delays_briefly(&attacker, search, &reader, search).await;
    }
}

#[tokio::test]
async fn many_lists_of_a_large_ca_delay_searches_only_briefly() {
    let server = Server::start().await;
    server.generate_authority("/large", None).await;
    server.generate_leaf("/leaf", "/large").await;
    server.copy_certificate("/leaf", 20_000).await;
    let attacker = server.as_client("attacker").await;
    server.grant("/large", attacker.actor(), &["read"]).await;
    let reader = server.as_client("reader").await;
    server.grant("/leaf", reader.actor(), &["read"]).await;
    let list = "/api/v1/certificates?name=/large";
    assert_delays_briefly(&attacker, list, &reader, "/api/v1/data?path=/").await;
}

/// Asserts that few of many requests of an attacker complete before a search of another actor. On a busy machine, the search may
/// reach the server late, so it has several attempts. Without fairness, it fails in all of them.
async fn assert_delays_briefly(attacker: &Caller, request: &str, reader: &Caller, search: &str) {
    let mut counts = Vec::new();
    while counts.len() < ATTEMPTS {
        let completed = completed_first(attacker, request, reader, search).await;
        if completed <= STORM / 5 {
            return;
        }
        counts.push(completed);
    }
    panic!("requests of another actor completed first: {counts:?}");
}

/// Returns how many of an attacker's requests complete while another actor's search runs.
async fn completed_first(attacker: &Caller, request: &str, reader: &Caller, search: &str) -> usize {
    let mut storm = JoinSet::new();
    for _ in 0..STORM {
        storm.spawn(Response::to(attacker.request(Method::GET, request)));
    }
    storm.join_next().await.unwrap().unwrap().expect(200);
    let before = storm.len();
    assert!(before > STORM / 2, "too few requests are left");
    reader.get(search).await.expect(200);
    // Counts completed requests without waiting for others.
    let mut ended = 0;
    while storm.try_join_next().is_some() {
        ended += 1;
    }
    storm.abort_all();
    while storm.join_next().await.is_some() {}
    ended
}

/// The number of storms of requests.
const ATTEMPTS: usize = 5;

/// The number of names that each search reads.
const NAMES: usize = 1_000;

/// The number of requests of the attacker: fewer than a connection may have in progress.
const STORM: usize = 100;
