//! Calls of guests wait in a bounded queue, and what needs no long computation never waits behind them.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Options, Server, component};
use reqwest::Method;
use serde_json::json;
use tokio::task::JoinHandle;

/// Sends generates of one type at once, each of a name of its own; each gives its status, `Retry-After` and body.
fn storm(
    server: &Server,
    credential_type: &str,
    key_length: u32,
    count: usize,
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
    (0..count).map(send).collect()
}

#[tokio::test]
async fn a_full_queue_is_503_with_retry_after_and_passes() {
    let hostile = format!(
        "component = \"{}\"\ngrants = [\"random\", \"signing\"]\nderived = true\n\
         limits = {{ deadline_ms = 2000 }}\nsettings = {{ generate = \"loop\" }}",
        component("hostile").display(),
    );
    let options = Options::default()
        .generator("hostile", &hostile)
        .environment("KEYWRIGHT_PLUGINS__QUEUE_LENGTH", "1")
        .environment("KEYWRIGHT_PLUGINS__THREADS_PER_LANE", "1");
    let server = Server::start_with(&options).await;
    server
        .set("/user", "user", json!({"password": "p"}))
        .await
        .expect(200);
    let mut refused = 0;
    let storm = storm(&server, "hostile", 0, 8);
    for request in storm {
        let (status, retry_after, body) = request.await.unwrap();
        match status {
            500 => assert!(body.contains("did not end within its deadline"), "{body}"),
            503 => {
                assert!(body.starts_with("{\"error\":"), "{body}");
                let seconds: u64 = retry_after.unwrap().parse().unwrap();
                assert!((1..=60).contains(&seconds), "{seconds}");
                refused += 1;
            }
            other => panic!("{other}: {body}"),
        }
    }
    // One runs and one waits; the thread may have taken the first before the second came.
    assert!((6..=7).contains(&refused), "{refused}");
    server
        .generate("/after", "password", json!({}))
        .await
        .expect(200);
}

#[tokio::test]
async fn what_needs_no_generating_is_answered_during_a_storm_of_key_generations() {
    let server = Server::start().await;
    server.set("/text", "value", json!("v")).await.expect(200);
    server
        .set("/json", "json", json!({"a": 1}))
        .await
        .expect(200);
    let storm = storm(&server, "rsa", 4_096, 32);
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
