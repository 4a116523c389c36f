//! Calls of guests wait in a bounded queue. Requests without long computations never wait behind them.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use std::ops::Range;

use keywright_harness::{Options, Scrape, Server};
use reqwest::Method;
use serde_json::json;
use tokio::task::JoinHandle;

/// Sends generate requests of one type concurrently, for numbered names. Returns their statuses, `Retry-After` headers and bodies.
fn storm(
    server: &Server,
    credential_type: &str,
    key_length: u32,
    numbers: Range<usize>,
) -> Vec<JoinHandle<(u16, Option<String>, String)>> {
    let send = |number: usize| {
        let body = json!({
            "name": format!("/storm/{number}"),
            "type": credential_type,
            "parameters": {"key_length": key_length},
        });
        let request = server
            .authorized(Method::POST, "/api/v1/data")
            .body(body.to_string());
        tokio::spawn(async move {
            let response = request.send().await.unwrap();
            let retry_after = response.headers().get("retry-after");
            let retry_after = retry_after.map(|seconds| seconds.to_str().unwrap().to_owned());
            (
                response.status().as_u16(),
                retry_after,
                response.text().await.unwrap(),
            )
        })
    };
    numbers.map(send).collect()
}

#[tokio::test]
async fn a_full_queue_is_503_with_retry_after() {
    let options = Options::default().with_a_short_queue().watched();
    let server = Server::start_with(&options).await;
    let lane = |scrape: &Scrape, what: &str| {
        let name = format!("keywright_plugin_lane_{what}");
        scrape.sum(&name, &[("lane", "generate")])
    };
    let running = storm(&server, "hostile", 0, 0..1);
    server
        .scrape_until(|scrape| lane(scrape, "threads_busy") == Some(1.0))
        .await;
    let waiting = storm(&server, "hostile", 0, 1..2);
    server
        .scrape_until(|scrape| lane(scrape, "queue_length") == Some(1.0))
        .await;
    for request in storm(&server, "hostile", 0, 2..8) {
        let (status, retry_after, body) = request.await.unwrap();
        assert_eq!(status, 503, "{body}");
        assert!(body.starts_with("{\"error\":"), "{body}");
        let seconds: u64 = retry_after.unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
    }
    server
        .set("/user", "user", json!({"password": "p"}))
        .await
        .expect(200);
    assert!(
        [running, waiting]
            .iter()
            .flatten()
            .all(|it| !it.is_finished())
    );
}

#[tokio::test]
async fn queue_accepts_calls_again_after_being_full() {
    let options = Options::default()
        .with_a_short_queue()
        .environment("KEYWRIGHT_GENERATORS__HOSTILE__LIMITS__DEADLINE_MS", "500")
        // Earlier failures do not affect these calls.
        .environment("KEYWRIGHT_PLUGINS__FAULTS_MAX", "1000000");
    let server = Server::start_with(&options).await;
    for _ in 0..STORMS_MAX {
        let mut was_full = false;
        for request in storm(&server, "hostile", 0, 0..8) {
            match request.await.unwrap() {
                (500, _, body) => {
                    assert!(body.contains("exceeded its deadline"), "{body}");
                }
                (503, ..) => was_full = true,
                (other, _, body) => panic!("{other}: {body}"),
            }
        }
        server
            .generate("/after", "password", json!({}))
            .await
            .expect(200);
        if was_full {
            return;
        }
    }
    panic!("the queue was never full");
}

/// The maximum number of attempts to fill the queue. One is enough if the calls arrive at the same time.
const STORMS_MAX: usize = 20;

#[tokio::test]
async fn reads_succeed_during_many_key_generations() {
    let server = Server::start().await;
    server.set("/text", "value", json!("v")).await.expect(200);
    server
        .set("/json", "json", json!({"a": 1}))
        .await
        .expect(200);
    let storm = storm(&server, "rsa", 4_096, 0..32);
    for round in 0..20 {
        server.get("/api/v1/data?name=/text").await.expect(200);
        server.get("/api/v1/data?path=/").await.expect(200);
        server
            .set("/text", "value", json!(format!("{round}")))
            .await
            .expect(200);
        server
            .set("/user", "user", json!({"password": "p"}))
            .await
            .expect(200);
        let document = json!({"s": [{"credentials": {"store-ref": "/json"}}]});
        server
            .post("/api/v1/interpolate", document)
            .await
            .expect(200);
    }
    let unfinished = storm
        .iter()
        .filter(|request| !request.is_finished())
        .count();
    assert!(
        unfinished > 0,
        "all keys were made before the other requests were answered"
    );
}
