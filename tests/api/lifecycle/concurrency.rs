//! Simultaneous writers.

use std::{collections::HashSet, sync::Arc};

use keywright_harness::{Answer, Options, Server};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::given;

const CALLERS: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simultaneous_no_overwrites_share_one_version() {
    let server = Arc::new(Server::start_with(&patient()).await);
    let body = json!({"name": "/new", "type": "password", "mode": "no-overwrite"});
    let versions = generate_all_at_once(&server, |_| body.clone()).await;
    let first = &versions[0];
    assert!(
        versions.iter().all(|version| version == first),
        "not all have the same version"
    );
    assert_eq!(
        given::versions(&server, "/new").await,
        std::slice::from_ref(first)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simultaneous_casings_of_a_name_share_one_credential() {
    let server = Arc::new(Server::start_with(&patient()).await);
    let versions = generate_all_at_once(&server, |caller| {
        let name = if caller % 2 == 0 {
            "/new/Name"
        } else {
            "/NEW/name"
        };
        json!({"name": name, "type": "user", "mode": "no-overwrite"})
    })
    .await;
    let ids: HashSet<String> = versions.iter().map(given::id).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(given::found(&server, "path=").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_simultaneous_converges_add_one_version() {
    let server = Arc::new(Server::start_with(&patient()).await);
    let body = json!({"name": "/new", "type": "password", "parameters": {"length": 20}});
    let versions = generate_all_at_once(&server, |_| body.clone()).await;
    let ids: HashSet<String> = versions.iter().map(given::id).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(given::versions(&server, "/new").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_simultaneous_overwrite_adds_its_version() {
    let server = Arc::new(Server::start_with(&patient()).await);
    let body = json!({"name": "/a", "type": "password", "mode": "overwrite"});
    let versions = generate_all_at_once(&server, |_| body.clone()).await;
    let ids: HashSet<String> = versions.iter().map(given::id).collect();
    assert_eq!(ids.len(), CALLERS);
    let stored = given::versions(&server, "/a").await;
    assert_eq!(stored.iter().map(given::id).collect::<HashSet<_>>(), ids);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_writers_of_several_types_one_type_wins() {
    let server = Arc::new(Server::start_with(&patient()).await);
    let answers = answers_at_once(&server, |caller| {
        let credential_type = if caller % 2 == 0 { "password" } else { "user" };
        json!({"name": "/new", "type": credential_type, "mode": "no-overwrite"})
    })
    .await;
    let winners: Vec<&Answer> = answers
        .iter()
        .filter(|answer| answer.status == 200)
        .collect();
    let losers = answers.iter().filter(|answer| answer.status == 400).count();
    assert_eq!((winners.len(), losers), (CALLERS / 2, CALLERS / 2));
    assert!(winners.iter().all(|winner| winner.body == winners[0].body));
    assert_eq!(given::versions(&server, "/new").await.len(), 1);
}

/// A server whose queue refuses no request, even on a slow machine.
fn patient() -> Options {
    Options::default().environment("KEYWRIGHT_STORAGE__WAIT_SECONDS_MAX", "600")
}

/// Returns the versions that simultaneous generate requests get.
async fn generate_all_at_once(server: &Arc<Server>, body: impl Fn(usize) -> Value) -> Vec<Value> {
    let answers = answers_at_once(server, body).await;
    answers
        .into_iter()
        .map(|answer| answer.expect(200).json())
        .collect()
}

async fn answers_at_once(server: &Arc<Server>, body: impl Fn(usize) -> Value) -> Vec<Answer> {
    let mut calls = JoinSet::new();
    for caller in 0..CALLERS {
        let (server, body) = (Arc::clone(server), body(caller));
        calls.spawn(async move { server.post("/api/v1/data", body).await });
    }
    calls.join_all().await
}
