//! How a server ends.

use std::time::{Duration, Instant};

use keywright_harness::{Options, Server};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::given;

#[tokio::test]
async fn requests_under_way_are_finished_first() {
    let patient = Options::default().server_settings("shutdown_seconds_max = 300");
    let server = Server::start_with(&patient).await;
    let mut calls = JoinSet::new();
    for number in 0..REQUESTS {
        let name = format!("/rsa/{number}");
        let body = json!({"name": name, "type": "rsa", "parameters": {"key_length": 3072}});
        let request = server
            .authorized(Method::POST, "/api/v1/data")
            .body(body.to_string());
        calls.spawn(async move {
            let response = request.send().await.unwrap();
            (response.status().as_u16(), response.text().await.unwrap())
        });
    }
    tokio::time::sleep(UNDER_WAY_AFTER).await;
    let directory = server.stop().await;

    let mut made = Vec::new();
    for (status, body) in calls.join_all().await {
        assert_eq!(status, 200, "{body}");
        made.push(serde_json::from_str::<Value>(&body).unwrap());
    }
    let restarted = Server::start_in(directory, &Options::default()).await;
    for version in made {
        let name = version["name"].as_str().unwrap();
        assert_eq!(
            given::versions(&restarted, name).await,
            std::slice::from_ref(&version)
        );
    }
}

#[tokio::test]
async fn a_server_without_requests_ends_at_once() {
    let server = Server::start().await;
    given::set_value(&server, "/a", "v").await;
    let told = Instant::now();
    server.stop().await;
    assert!(
        told.elapsed() < Duration::from_secs(5),
        "{:?}",
        told.elapsed()
    );
}

/// More keys than are made at once, so that some are still waiting when the server is told to end.
const REQUESTS: usize = 5;

/// When the requests have reached the server, and long before all of the keys are made.
const UNDER_WAY_AFTER: Duration = Duration::from_millis(150);
