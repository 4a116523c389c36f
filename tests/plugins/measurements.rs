//! Metrics for calls of plugins by plugin, function and outcome, and for the lanes that run them.

use keywright_harness::{Options, Scrape, Server, component};
use reqwest::Method;
use serde_json::json;

const CALLS: &str = "keywright_plugin_calls_total";

/// The longest deadline, longer than a test takes.
const LONG_MS: u32 = 600_000;

/// Starts a server with metrics whose generator `hostile` misbehaves in this way in a function, with these limits.
async fn server(function: &str, behaviour: &str, limits: &str) -> Server {
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\", \"signing\"]\nderived = true\n\
         limits = {{ {limits} }}\nsettings = {{ {function} = \"{behaviour}\" }}",
        component("hostile").display(),
    );
    let options = Options::default()
        .generator("hostile", &section)
        .environment("KEYWRIGHT_PLUGINS__THREADS_PER_LANE", "1")
        .environment("KEYWRIGHT_PLUGINS__QUEUE_LENGTH", "1")
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
async fn every_outcome_of_a_call_is_counted() {
    for (behaviour, outcome) in [
        ("allocate", "memory_exceeded"),
        ("large-output", "output_too_large"),
        ("loop", "timed_out"),
        ("misconfigured", "misconfigured"),
        ("not-json", "output_malformed"),
        ("other", "reported"),
        ("panic", "trapped"),
        ("recurse", "stack_exhausted"),
        ("refuse-parameters", "refused"),
        ("trap", "trapped"),
        ("wrong-shape", "output_malformed"),
    ] {
        // Only the endless behavior may exceed its deadline, and not in the previous call.
        let deadline_ms = if behaviour == "loop" { 5_000 } else { LONG_MS };
        let limits = format!("deadline_ms = {deadline_ms}, memory_bytes_max = 16777216");
        let server = server("generate", behaviour, &limits).await;
        let answer = server.generate("/a", "hostile", json!({})).await;
        assert!(answer.status >= 400, "{behaviour}: {answer:?}");
        let scrape = server.scrape().await;
        assert_eq!(
            calls(&scrape, "generate", outcome),
            Some(1.0),
            "{behaviour}:\n{}",
            scrape.text()
        );
        assert_eq!(calls(&scrape, "normalize", "ok"), Some(1.0), "{behaviour}");
        let duration = "keywright_plugin_call_duration_seconds_count";
        let generate = [("plugin", "hostile"), ("function", "generate")];
        assert_eq!(scrape.sum(duration, &generate), Some(1.0), "{behaviour}");
    }
}

#[tokio::test]
async fn every_function_is_counted() {
    let server = server("none", "none", &format!("deadline_ms = {LONG_MS}")).await;
    let set = json!({"secret": "s"});
    server.set("/set", "hostile", set).await.expect(200);
    server
        .generate("/a", "hostile", json!({}))
        .await
        .expect(200);
    server.regenerate("/a").await.expect(200);
    let document = json!({"a": [{"credentials": {"b": 1}}]});
    server
        .post("/api/v1/interpolate", document)
        .await
        .expect(200);
    let too_large = json!({"length": "x".repeat(512 * 1024)});
    let refused = server.generate("/b", "hostile", too_large).await;
    refused.expect(413);
    let scrape = server.scrape().await;
    for (function, count) in [("generate", 2.0), ("accept", 1.0), ("recover", 1.0)] {
        assert_eq!(calls(&scrape, function, "ok"), Some(count), "{function}");
    }
    assert_eq!(calls(&scrape, "normalize", "input_too_large"), Some(1.0));
    let resolver = [
        ("plugin", "resolver"),
        ("function", "find-references"),
        ("outcome", "ok"),
    ];
    assert_eq!(scrape.sum(CALLS, &resolver), Some(1.0));
}

#[tokio::test]
async fn metrics_distinguish_random_and_derived_generators() {
    let server = server("none", "none", "deadline_ms = 10000").await;
    let scrape = server.scrape().await;
    for (plugin, conforms) in [("hostile", 0.0), ("password", 1.0), ("rsa", 1.0)] {
        let reported = scrape.sum("keywright_plugin_entropy_conforms", &[("plugin", plugin)]);
        assert_eq!(reported, Some(conforms), "{plugin}");
    }
}

#[tokio::test]
async fn full_lane_is_visible_in_metrics() {
    let limits = format!("deadline_ms = {LONG_MS}");
    let server = server("generate", "loop", &limits).await;
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
    let is_at_work = |scrape: &Scrape| lane(scrape, "threads_busy") == Some(1.0);
    let first = generate("/1");
    let scrape = server.scrape_until(is_at_work).await;
    assert_eq!(lane(&scrape, "threads"), Some(1.0));
    assert_eq!(lane(&scrape, "queue_length_max"), Some(1.0));
    assert_eq!(lane(&scrape, "queue_length"), Some(0.0));

    let second = generate("/2");
    let is_full = |scrape: &Scrape| lane(scrape, "queue_length") == Some(1.0);
    let scrape = server.scrape_until(is_full).await;
    assert_eq!(in_progress(&scrape), Some(2.0));

    let refused = server.generate("/3", "hostile", json!({})).await;
    refused.expect(503);
    let scrape = server.scrape().await;
    assert_eq!(calls(&scrape, "generate", "queue_full"), Some(1.0));

    first.abort();
    second.abort();
    let scrape = server
        .scrape_until(|scrape| in_progress(scrape) == Some(0.0))
        .await;
    assert!(is_at_work(&scrape), "{}", scrape.text());
    let answered = [("route", "/api/v1/data"), ("method", "POST")];
    let answered = scrape.sum("keywright_http_requests_total", &answered);
    assert_eq!(
        answered,
        Some(1.0),
        "those that were given up are not answered"
    );
}
