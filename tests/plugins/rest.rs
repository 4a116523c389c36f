//! A component whose calls keep failing is temporarily disabled. Other requests are not affected.

use keywright_harness::{Options, Server, component};
use serde_json::json;

#[tokio::test]
async fn types_are_503_after_too_many_traps_and_reads_succeed() {
    let server = Server::start_with(&options("trap", 3600)).await;
    server
        .set("/a", "hostile", json!({"secret": "s"}))
        .await
        .expect(200);
    for _ in 0..FAULTS_MAX {
        let answer = server.generate("/a", "hostile", json!({})).await;
        answer.expect(500);
    }
    let refused = server
        .generate("/a", "hostile", json!({}))
        .await
        .expect(503);
    let seconds = refused.header("retry-after").and_then(|it| it.parse().ok());
    assert!(seconds.is_some_and(|seconds: u32| (3_000..=3_600).contains(&seconds)));
    assert_eq!(
        refused.error(),
        "the plugin hostile keeps failing and is temporarily disabled"
    );
    server
        .set("/a", "hostile", json!({"secret": "t"}))
        .await
        .expect(503);

    server.get("/api/v1/data?name=/a").await.expect(200);
    server.get("/api/v1/data?path=/").await.expect(200);
    server
        .generate("/b", "password", json!({}))
        .await
        .expect(200);
    server.delete("/api/v1/data?name=/a").await.expect(204);
}

#[tokio::test]
async fn errors_returned_by_a_guest_do_not_count() {
    let server = Server::start_with(&options("other", 3600)).await;
    for _ in 0..=FAULTS_MAX {
        let answer = server.generate("/a", "hostile", json!({})).await;
        answer.expect(500);
    }
}

#[tokio::test]
async fn plugin_is_called_again_after_the_pause() {
    let server = Server::start_with(&options("trap", REST_SECONDS)).await;
    // The next call traps again, which alone disables the plugin again. A pause that ends between two requests is not
    // seen, so more calls are made.
    let mut newest = [0; 3];
    let mut calls = 0;
    while newest != [503, 500, 503] {
        let status = server.generate("/a", "hostile", json!({})).await.status;
        assert!([500, 503].contains(&status), "{status}");
        calls += usize::from(status == 500);
        assert!(calls < CALLS_MAX, "no rest was seen that ended");
        newest = [newest[1], newest[2], status];
    }
}

#[tokio::test]
async fn reload_enables_a_disabled_plugin() {
    let server = Server::start_with(&options("trap", 3600)).await;
    for status in [500, 500, 503] {
        let answer = server.generate("/a", "hostile", json!({})).await;
        answer.expect(status);
    }
    server.reload_plugins(&options("count-calls", 3600)).await;
    server
        .generate("/a", "hostile", json!({}))
        .await
        .expect(200);
}

/// The maximum number of consecutive failed calls.
const FAULTS_MAX: usize = 2;

/// The time for which the plugin is disabled, in seconds; the test waits for its end.
const REST_SECONDS: u32 = 1;

/// The maximum number of calls until the test has seen the plugin disabled, called again, and disabled again.
const CALLS_MAX: usize = 60;

/// Returns options with a generator `hostile` that misbehaves in this way.
fn options(behaviour: &str, rest_seconds: u32) -> Options {
    let section = format!(
        "component = \"{}\"\ngrants = [\"random\", \"signing\"]\nderived = true\nsettings = {{ generate = \"{behaviour}\" }}",
        component("hostile").display(),
    );
    Options::default()
        .generator("hostile", &section)
        .environment("KEYWRIGHT_PLUGINS__FAULTS_MAX", &FAULTS_MAX.to_string())
        .environment("KEYWRIGHT_PLUGINS__REST_SECONDS", &rest_seconds.to_string())
}
