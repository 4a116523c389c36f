//! Searches that read every name, of an actor who may read almost nothing.

use keywright_harness::{Response, Server};
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
        let mut storm = JoinSet::new();
        for _ in 0..STORM {
            let request = attacker.request(Method::GET, search);
            storm.spawn(Response::to(request));
        }
        storm.join_next().await.unwrap().unwrap().expect(200);
        let before = storm.len();
        reader.get(search).await.expect(200);
        // Counts completed searches without waiting for others.
        let mut ended = 0;
        while storm.try_join_next().is_some() {
            ended += 1;
        }
        assert!(before > STORM / 2, "too few searches are left");
        assert!(
            ended <= 20,
            "{ended} searches of another actor completed first"
        );
        storm.abort_all();
        while storm.join_next().await.is_some() {}
    }
}

/// The number of names that each search reads.
const NAMES: usize = 1_000;

/// The number of searches of the attacker: fewer than a connection may have in progress.
const STORM: usize = 100;
