//! Calls of guests: they wait in a bounded queue, are counted by plugin, function and outcome, and a component whose calls
//! keep failing is temporarily disabled.

use std::ops::Range;

use keywright_harness::{Caller, Options, Response, Scrape, Server, Text};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Sends generate requests of one type concurrently, for numbered names. Returns their statuses, `Retry-After` headers and
/// bodies.
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
                    body.assert_contains("exceeded its deadline");
                }
                (503, ..) => was_full = true,
                (other, _, body) => panic!("{other}: {body}"),
            }
        }
        server.generated("/after", "password", json!({})).await;
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
    let server = Server::reused().await;
    server.stored("/text", "value", json!("v")).await;
    server.stored("/json", "json", json!({"a": 1})).await;
    let storm = storm(&server, "rsa", 4_096, 0..32);
    for round in 0..20 {
        server.get("/api/v1/data?name=/text").await.expect(200);
        server.get("/api/v1/data?path=/").await.expect(200);
        let value = json!(format!("{round}"));
        server.stored("/text", "value", value).await;
        let value = json!({"password": "p"});
        server.stored("/user", "user", value).await;
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
        "all keys were generated before the other requests completed"
    );
}

const CALLS: &str = "keywright_plugin_calls_total";

/// The longest deadline, longer than a test takes.
const LONG_MS: u32 = 600_000;

/// Starts a server with metrics whose generator `hostile` misbehaves in this way in a function, with these limits.
async fn server_with_metrics(function: &str, behaviour: &str, limits: &str) -> Server {
    let options = Options::default()
        .hostile(limits, &format!("{function} = \"{behaviour}\""))
        .environment("KEYWRIGHT_PLUGINS__THREADS_PER_LANE", "1")
        .environment("KEYWRIGHT_PLUGINS__QUEUE_LENGTH", "1")
        .environment("KEYWRIGHT_PLUGINS__RETRY_AFTER_SECONDS", "9")
        .watched();
    Server::start_with(&options).await
}

fn calls(scrape: &Scrape, function: &str, outcome: &str) -> Option<f64> {
    let labels = [
        ("plugin", "hostile"),
        ("function", function),
        ("outcome", outcome),
    ];
    scrape.sum(CALLS, &labels)
}

#[tokio::test]
async fn defaults_are_normalized_once_unless_they_are_random() {
    for (function, behaviour, parameters, normalized) in [
        ("none", "none", json!({}), 1.0),
        ("none", "none", json!({"note": "a"}), 3.0),
        ("normalize", "most-random", json!({}), 3.0),
    ] {
        let server = server_with_metrics(function, behaviour, "").await;
        for name in ["/a", "/b", "/c"] {
            let response = server.generate(name, "hostile", parameters.clone());
            response.await.expect(200);
        }
        let scrape = server.scrape().await;
        let count = calls(&scrape, "normalize", "ok");
        assert_eq!(count, Some(normalized), "{behaviour} {parameters}");
        assert_eq!(calls(&scrape, "generate", "ok"), Some(3.0));
    }
}

#[tokio::test]
async fn every_function_is_counted() {
    let server = server_with_metrics("none", "none", &format!("deadline_ms = {LONG_MS}")).await;
    let set = json!({"secret": "s"});
    server.stored("/set", "hostile", set).await;
    server.generated("/a", "hostile", json!({})).await;
    server.regenerated("/a").await;
    let document = json!({"a": [{"credentials": {"b": 1}}]});
    server
        .post("/api/v1/interpolate", document)
        .await
        .expect(200);
    let scrape = server.scrape().await;
    for (function, count) in [("generate", 2.0), ("accept", 1.0), ("recover", 1.0)] {
        assert_eq!(calls(&scrape, function, "ok"), Some(count), "{function}");
        let labels = [("plugin", "hostile"), ("function", function)];
        let timed = scrape.sum("keywright_plugin_call_duration_seconds_count", &labels);
        assert_eq!(timed, Some(count), "{function}");
    }
    let resolver = [
        ("plugin", "resolver"),
        ("function", "find-references"),
        ("outcome", "ok"),
    ];
    assert_eq!(scrape.sum(CALLS, &resolver), Some(1.0));
}

#[tokio::test]
async fn input_that_is_too_large_is_counted() {
    let options = Options::default()
        .hostile("input_bytes_max = 1024", "")
        .environment("KEYWRIGHT_RESOLVER__LIMITS__INPUT_BYTES_MAX", "1024")
        .watched();
    let server = Server::start_with(&options).await;
    let set = json!({"secret": "s".repeat(1024)});
    server.set("/set", "hostile", set).await.expect(413);
    let document = json!({"a": "s".repeat(1024)});
    let refused = server.post("/api/v1/interpolate", document).await;
    refused.expect(413);
    let scrape = server.scrape().await;
    for (plugin, function) in [("hostile", "accept"), ("resolver", "find-references")] {
        let labels = [
            ("plugin", plugin),
            ("function", function),
            ("outcome", "input_too_large"),
        ];
        assert_eq!(scrape.sum(CALLS, &labels), Some(1.0), "{plugin}");
    }
}

#[tokio::test]
async fn metrics_distinguish_random_and_derived_generators() {
    let server = server_with_metrics("none", "none", "deadline_ms = 10000").await;
    let scrape = server.scrape().await;
    for (plugin, conforms) in [("hostile", 0.0), ("password", 1.0), ("rsa", 1.0)] {
        let reported = scrape.sum("keywright_plugin_entropy_conforms", &[("plugin", plugin)]);
        assert_eq!(reported, Some(conforms), "{plugin}");
    }
}

#[tokio::test]
async fn full_lane_is_visible_in_metrics() {
    let limits = format!("deadline_ms = {LONG_MS}");
    let server = server_with_metrics("generate", "loop", &limits).await;
    let generate = |name: &str| {
        let body = json!({"name": name, "type": "hostile", "parameters": {}});
        let request = server
            .authorized(Method::POST, "/api/v1/data")
            .body(body.to_string());
        tokio::spawn(request.send())
    };
    let lane = |scrape: &Scrape, what: &str| {
        let name = format!("keywright_plugin_lane_{what}");
        scrape.sum(&name, &[("lane", "generate")])
    };
    let in_progress = |scrape: &Scrape| scrape.sum("keywright_http_requests_in_progress", &[]);
    let is_busy = |scrape: &Scrape| lane(scrape, "threads_busy") == Some(1.0);
    let first = generate("/1");
    let scrape = server.scrape_until(is_busy).await;
    assert_eq!(lane(&scrape, "threads"), Some(1.0));
    assert_eq!(lane(&scrape, "queue_length_max"), Some(1.0));
    assert_eq!(lane(&scrape, "queue_length"), Some(0.0));

    let second = generate("/2");
    let is_full = |scrape: &Scrape| lane(scrape, "queue_length") == Some(1.0);
    let scrape = server.scrape_until(is_full).await;
    assert_eq!(in_progress(&scrape), Some(2.0));

    for _ in 0..6 {
        let refused = server.generate("/3", "hostile", json!({})).await;
        refused.error();
        let refused = refused.expect(503);
        assert_eq!(refused.header("retry-after"), Some("9"));
    }
    let value = json!({"password": "p"});
    server.stored("/user", "user", value).await;
    let scrape = server.scrape().await;
    assert_eq!(calls(&scrape, "generate", "queue_full"), Some(6.0));

    first.abort();
    second.abort();
    let scrape = server
        .scrape_until(|scrape| in_progress(scrape) == Some(0.0))
        .await;
    assert!(is_busy(&scrape), "{}", scrape.text());
    let responded = [("route", "/api/v1/data"), ("method", "POST")];
    let responded = scrape.sum("keywright_http_requests_total", &responded);
    assert_eq!(responded, Some(6.0), "aborted requests get no response");
}

/// Sends a request of a caller whose call waits in a lane, revokes a permission meanwhile, and returns the response. The server's
/// generator `hostile` loops in the function of this lane.
async fn revoked_while_waiting(
    server: &Server,
    lane: &str,
    permission: &str,
    caller: Caller,
    path: String,
    body: Value,
) -> Response {
    let mut occupies = json!({"name": "/loop", "type": "hostile"});
    let method = if lane == "generate" {
        Method::POST
    } else {
        occupies["value"] = json!({"secret": "s"});
        Method::PUT
    };
    let request = server.authorized(method, "/api/v1/data");
    let occupying = tokio::spawn(request.body(occupies.to_string()).send());
    let is_met = |scrape: &Scrape, what: &str| {
        let name = format!("keywright_plugin_lane_{what}");
        scrape.sum(&name, &[("lane", lane)]) == Some(1.0)
    };
    server
        .scrape_until(|scrape| is_met(scrape, "threads_busy"))
        .await;
    let generating = tokio::spawn(async move { caller.post(&path, body).await });
    server
        .scrape_until(|scrape| is_met(scrape, "queue_length"))
        .await;
    server.revoke(permission).await.expect(200);
    let response = generating.await.unwrap();
    drop(occupying.await);
    response
}

#[tokio::test]
async fn a_permission_revoked_while_a_call_waits_no_longer_counts() {
    let server = server_with_metrics("generate", "loop", "deadline_ms = 8000").await;
    let tenant = server.as_client("tenant").await;
    let granted = server.grant("/t/*", tenant.actor(), &["read", "write"]);
    let permission = granted.await;
    let body = json!({"name": "/t/p", "type": "password"});
    let path = "/api/v1/data".to_owned();
    let response =
        revoked_while_waiting(&server, "generate", &permission, tenant, path, body).await;
    response.expect(403);
    server.get("/api/v1/data?name=/t/p").await.expect(404);
}

#[tokio::test]
async fn a_version_is_not_kept_for_a_permission_revoked_while_waiting() {
    let server = server_with_metrics("accept", "loop", "deadline_ms = 8000").await;
    let tenant = server.as_client("tenant").await;
    let permission = server.grant("/t/*", tenant.actor(), &["write"]).await;
    // From here on, only recovering the parameters of the set key needs a call.
    let key = server.generated("/other", "ssh", json!({})).await;
    server.stored("/t/key", "ssh", key["value"].clone()).await;
    let body = json!({"name": "/t/key", "type": "ssh"});
    let kept = tenant.post("/api/v1/data", body.clone()).await.expect(200);
    assert_eq!(
        kept.json()["value"]["private_key"],
        key["value"]["private_key"]
    );
    let path = "/api/v1/data".to_owned();
    let response = revoked_while_waiting(&server, "brief", &permission, tenant, path, body);
    response.await.expect(403);
}

#[tokio::test]
async fn a_ca_hidden_while_a_call_waits_no_longer_signs() {
    let server = server_with_metrics("generate", "loop", "deadline_ms = 8000").await;
    let tenant = server.as_client("tenant").await;
    server.grant("/t/*", tenant.actor(), &["write"]).await;
    let permission = server.grant("/ca", tenant.actor(), &["read"]).await;
    server.generate_authority("/ca", None).await;
    server.generate_leaf("/t/leaf", "/ca").await;
    // A CA of the same name that has not signed the certificate requires permission.
    server.delete("/api/v1/data?name=/ca").await.expect(204);
    server.generate_authority("/ca", None).await;
    let listed = server.get("/api/v1/certificates?name=/t/leaf").await;
    let id = listed.json()["certificates"][0]["id"].clone();
    let path = format!("/api/v1/certificates/{}/regenerate", id.as_str().unwrap());
    let response =
        revoked_while_waiting(&server, "generate", &permission, tenant, path, json!({})).await;
    response.expect(404);
    let stored = server.get("/api/v1/data?name=/t/leaf").await.expect(200);
    assert_eq!(stored.json()["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn after_too_many_traps_generating_is_503_and_reads_succeed() {
    let server = Server::start_with(&options_with_pause("trap", 3600)).await;
    server.stored("/a", "hostile", json!({"secret": "s"})).await;
    for _ in 0..FAULTS_MAX {
        let response = server.generate("/a", "hostile", json!({})).await;
        response.expect(500);
    }
    let parameters = json!({});
    let refused = server.generate("/a", "hostile", parameters).await;
    let refused = refused.expect(503);
    let seconds = refused.header("retry-after").and_then(|it| it.parse().ok());
    assert!(seconds.is_some_and(|seconds: u32| (3_000..=3_600).contains(&seconds)));
    assert_eq!(
        refused.error(),
        "the plugin hostile keeps failing and is temporarily disabled"
    );
    let value = json!({"secret": "t"});
    server.set("/a", "hostile", value).await.expect(503);

    server.get("/api/v1/data?name=/a").await.expect(200);
    server.get("/api/v1/data?path=/").await.expect(200);
    server.generated("/b", "password", json!({})).await;
    server.delete("/api/v1/data?name=/a").await.expect(204);
}

#[tokio::test]
async fn reload_enables_a_disabled_plugin() {
    let server = Server::start_with(&options_with_pause("trap", 3600)).await;
    for status in [500, 500, 503] {
        let response = server.generate("/a", "hostile", json!({})).await;
        response.expect(status);
    }
    server
        .reload_plugins(&options_with_pause("count-calls", 3600))
        .await;
    server.generated("/a", "hostile", json!({})).await;
}

/// The maximum number of consecutive failed calls.
const FAULTS_MAX: usize = 2;

/// Returns options with a generator `hostile` that misbehaves in this way.
fn options_with_pause(behaviour: &str, disabled_seconds: u32) -> Options {
    Options::default()
        .hostile("", &format!("generate = \"{behaviour}\""))
        .environment("KEYWRIGHT_PLUGINS__FAULTS_MAX", &FAULTS_MAX.to_string())
        .environment(
            "KEYWRIGHT_PLUGINS__DISABLED_SECONDS",
            &disabled_seconds.to_string(),
        )
}
