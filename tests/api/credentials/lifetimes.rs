//! Values with a lifetime that their plugin returned: when they expire, and when they should be rotated.

use chrono::{DateTime, Utc};
use keywright_harness::{Options, Server, Text};
use serde_json::{Value, json};

const TYPE: &str = "plain-current";

/// Returns options for a server whose plugin adds the numbers of seconds in its settings to the time of the call.
fn options(settings: &str) -> Options {
    Options::default().plugin(
        TYPE,
        "current-generator",
        &["random"],
        &format!("settings = {{ {settings} }}"),
    )
}

async fn generate(server: &Server, name: &str) -> Value {
    let made = server.generate(name, TYPE, json!({})).await;
    made.expect(200).json()
}

/// Returns the number of seconds from the creation of a version to a time in its body.
fn seconds(version: &Value, field: &str) -> i64 {
    let time = |field: &str| -> DateTime<Utc> { version[field].as_str().unwrap().parse().unwrap() };
    (time(field) - time("version_created_at")).num_seconds()
}

fn assert_seconds(version: &Value, field: &str, expected: i64) {
    // The version is added after the call.
    let found = seconds(version, field);
    assert!((expected - 10..=expected).contains(&found), "{version}");
}

/// Returns the names, expiry dates and rotation dates that a search by expiry finds, in its order.
async fn expiring(server: &Server, query: &str) -> Vec<(String, Value, Value)> {
    let found = server.get_json(&format!("/api/v1/data?{query}")).await;
    let found = found["credentials"].as_array().unwrap().iter();
    let fields = found.map(|found| {
        let name = found["name"].as_str().unwrap().to_owned();
        let [expiry, rotation] = ["expiry_date", "rotation_date"].map(|date| found[date].clone());
        (name, expiry, rotation)
    });
    fields.collect()
}

const DAY: i64 = 24 * 60 * 60;

#[tokio::test]
async fn lifetimes_of_generated_regenerated_and_set_values_are_stored() {
    let settings = format!("expires_after = {}, rotate_after = {DAY}", 3 * DAY);
    let server = Server::start_with(&options(&settings)).await;
    let made = generate(&server, "/made").await;
    let regenerated = server.regenerated("/made").await;
    let read = server.get("/api/v1/data?name=/made&versions=1").await;
    let read = read.expect(200).json()["data"][0].clone();
    assert_eq!(read, regenerated);
    for version in [made, regenerated] {
        assert_seconds(&version, "expiry_date", 3 * DAY);
        assert_seconds(&version, "rotation_date", DAY);
    }
    // The plugin gets no parameters for a value that was set, and then returns no rotation.
    let set = server.stored("/set", TYPE, json!({"secret": "s"})).await;
    assert_seconds(&set, "expiry_date", 3 * DAY);
    assert_eq!(set["rotation_date"], Value::Null);
    // Converge keeps the version with its lifetime.
    let kept = generate(&server, "/made").await;
    assert_eq!(kept, read);
}

#[tokio::test]
async fn a_value_without_a_lifetime_has_no_fields_for_it() {
    let server = Server::start_with(&options("")).await;
    let made = generate(&server, "/made").await;
    for field in ["expiry_date", "rotation_date"] {
        assert!(made.get(field).is_none(), "{made}");
    }
    let actual = expiring(&server, "path=/&expires-within-days=4000000").await;
    assert_eq!(actual, []);
}

#[tokio::test]
async fn a_search_by_expiry_finds_values_of_any_type() {
    let settings = format!("expires_after = {}, rotate_after = {}", 20 * DAY, 10 * DAY);
    let server = Server::start_with(&options(&settings)).await;
    server.set_value("/text", "v").await;
    let certificate = server.issued("/a/root", json!({"is_ca": true})).await;
    let made = generate(&server, "/a/made").await;
    let set = server.stored("/b/set", TYPE, json!({"secret": "s"})).await;
    let row = |version: &Value| {
        let name = version["name"].as_str().unwrap().to_owned();
        let [expiry, rotation] = ["expiry_date", "rotation_date"].map(|date| version[date].clone());
        (name, expiry, rotation)
    };
    let (certificate, made, set) = (row(&certificate), row(&made), row(&set));
    for (query, expected) in [
        ("path=/&expires-within-days=9", vec![]),
        ("path=/&expires-within-days=10", vec![made.clone()]),
        (
            "path=/&expires-within-days=20",
            vec![set.clone(), made.clone()],
        ),
        (
            "path=/&expires-within-days=366",
            vec![set.clone(), made.clone(), certificate.clone()],
        ),
        ("path=/a&expires-within-days=20", vec![made.clone()]),
        ("name-like=set&expires-within-days=20", vec![set]),
        (
            "path=/&expires-within-days=366&effective=true",
            vec![certificate],
        ),
    ] {
        assert_eq!(expiring(&server, query).await, expected, "{query}");
    }
    // Values with a lifetime are not certificates.
    let listed = server
        .get("/api/v1/certificates?all_types=true")
        .await
        .expect(200);
    let listed = listed.json();
    let names = listed["certificates"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|listed| listed["name"].clone()).collect();
    assert_eq!(names, ["/a/root"]);
    server
        .get("/api/v1/certificates?all_types=true&name=/a/made")
        .await
        .expect(404);

    // The newest version counts.
    server.reload_plugins(&options("")).await;
    server.regenerated("/a/made").await;
    let found = expiring(&server, "path=/a&expires-within-days=20").await;
    assert_eq!(found, []);
    let settings = format!("rotate_after = {}", 10 * DAY);
    server.reload_plugins(&options(&settings)).await;
    let rotating = row(&generate(&server, "/a/rotating").await);
    let found = expiring(&server, "path=/a&expires-within-days=20").await;
    assert_eq!(found, [rotating]);
}

#[tokio::test]
async fn metrics_count_lifetimes_and_the_calls_for_them() {
    let settings = format!("expires_after = {}, rotate_after = {}", 60 * DAY, 20 * DAY);
    let server = Server::start_with(&options(&settings).watched()).await;
    generate(&server, "/made").await;
    server.stored("/set", TYPE, json!({"secret": "s"})).await;
    let number = |days_left: &'static str| [("type", TYPE), ("days_left", days_left)];
    let scrape = server.scrape().await;
    for (days_left, expected) in [
        ("expired", 0.0),
        ("7", 0.0),
        ("30", 1.0),
        ("90", 1.0),
        ("365", 0.0),
        ("more", 0.0),
    ] {
        let labels = number(days_left);
        let found = scrape.sum("keywright_expiring_credentials", &labels);
        assert_eq!(found, Some(expected), "{days_left}");
        assert_eq!(scrape.sum("keywright_certificates", &labels), None);
    }
    let calls = [("plugin", TYPE), ("function", "expires"), ("outcome", "ok")];
    let counted = scrape.sum("keywright_plugin_calls_total", &calls);
    assert_eq!(counted, Some(2.0));
}

#[tokio::test]
async fn lifetimes_at_the_bounds_are_stored_and_beyond_them_refused() {
    let server = Server::start_with(&options("expires_after = 0, rotate_after = 0")).await;
    let made = generate(&server, "/bound").await;
    assert_seconds(&made, "expiry_date", 0);
    let latest: DateTime<Utc> = "9999-12-31T23:59:59Z".parse().unwrap();
    for (settings, is_valid) in [
        ("expires_after = -1", false),
        ("rotate_after = -1", false),
        ("expires_after = 60, rotate_after = 60", true),
        ("expires_after = 60, rotate_after = 61", false),
    ] {
        server.reload_plugins(&options(settings)).await;
        let made = server.generate("/a", TYPE, json!({})).await;
        assert_eq!(made.status == 200, is_valid, "{settings}");
        if is_valid {
            server.delete("/api/v1/data?name=/a").await.expect(204);
            continue;
        }
        let error = made.expect(500).error();
        let expected =
            format!("the plugin {TYPE} returned output that does not have the declared form");
        assert_eq!(error, expected, "{settings}");
        server.get("/api/v1/data?name=/a").await.expect(404);
    }
    // The calls happen up to ten seconds from now. The last second of the year is valid.
    let left = (latest - Utc::now()).num_seconds();
    for (expires_after, status) in [(left - 10, 200), (left + 2, 500)] {
        let settings = format!("expires_after = {expires_after}");
        server.reload_plugins(&options(&settings)).await;
        let set = server.set("/set", TYPE, json!({"secret": "s"})).await;
        set.expect(status);
    }
    let log = server.log();
    for reason in [
        "its output has a time before the call",
        "its output has a time after the year 9999",
        "its output has a rotate-seconds after its expires-seconds",
    ] {
        log.assert_contains(reason);
    }
}

#[tokio::test]
async fn a_plugin_can_refuse_a_value_that_has_expired() {
    let server = Server::start_with(&options("refuses = true")).await;
    let set = server.set("/set", TYPE, json!({"secret": "hunter2"})).await;
    let error = set.expect(400).error();
    error.assert_contains("secret has expired");
    error.assert_lacks("hunter2");
    server.get("/api/v1/data?name=/set").await.expect(404);
}
