//! Metrics, and the management listener.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{ErrorKind, Read, Write},
    net::TcpStream,
};

use keywright_harness::{
    Options, QUICK_KEY, ReusedServer, Scrape, Server,
    mint::{Mint, present, seconds_since_epoch},
    until, workspace,
};
use reqwest::Method;
use serde_json::json;
use uuid::Uuid;

use crate::{external_certificates, given};

// The management listener.

/// The maximum number of connections of the management listener.
const CONNECTIONS_MAX: usize = 64;

/// The largest head of a request, in bytes.
const HEADER_BYTES_MAX: usize = 16 * 1024;

async fn watched() -> Server {
    Server::start_with(&Options::default().watched()).await
}

/// Like [`watched`], for tests that read no metrics.
async fn listening() -> ReusedServer {
    Server::reused_with(&Options::default().watched()).await
}

fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.management_url().trim_start_matches("http://")).unwrap()
}

/// Sends bytes and returns the response up to the end of the connection.
fn exchange(server: &Server, request: &str) -> String {
    let mut stream = connect(server);
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[tokio::test]
async fn health_and_metrics_need_neither_tls_nor_authentication() {
    let server = listening().await;
    let response = server.request_management(Method::GET, "/health").await;
    assert_eq!(response.expect(200).json(), json!({"status": "UP"}));
    let response = server.request_management(Method::HEAD, "/health").await;
    assert_eq!(response.expect(200).body, "");
    let response = server.request_management(Method::GET, "/metrics").await;
    let response = response.expect(200);
    let media_type = response.header("content-type").unwrap();
    assert_eq!(media_type, "text/plain; version=0.0.4; charset=utf-8");
}

#[tokio::test]
async fn management_and_api_listeners_share_no_paths() {
    let server = listening().await;
    for (method, path) in [
        (Method::GET, "/"),
        (Method::GET, "/info"),
        (Method::GET, "/api/v1/data?path=/"),
        (Method::GET, "/identity/token_keys"),
        (Method::POST, "/management"),
        (Method::POST, "/health"),
        (Method::DELETE, "/metrics"),
    ] {
        server.request_management(method, path).await.expect(404);
    }
    server.get("/metrics").await.expect(404);
}

#[tokio::test]
async fn without_management_listen_there_is_no_listener() {
    let server = Server::start().await;
    assert!(!server.log().contains("management.address"));
}

#[tokio::test]
async fn an_address_beyond_loopback_is_logged_as_a_warning() {
    let warning = "the management address is not a loopback address";
    let everywhere = Options::default().extra("[management]\nlisten = \"0.0.0.0:0\"");
    let server = Server::start_with(&everywhere).await;
    assert!(server.log().contains(warning));
    assert!(!watched().await.log().contains(warning));
}

#[tokio::test]
async fn a_connection_closes_after_its_response() {
    let server = listening().await;
    let request = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";
    let response = exchange(&server, &request.repeat(2));
    assert_eq!(response.matches("HTTP/1.1 200 OK").count(), 1, "{response}");
}

#[tokio::test]
async fn a_head_over_16_kib_is_refused() {
    let server = listening().await;
    let request = |bytes: usize| {
        let begin = "GET /health HTTP/1.1\r\nHost: a\r\nX-Filler: ";
        let filler = "x".repeat(bytes - begin.len() - 4);
        format!("{begin}{filler}\r\n\r\n")
    };
    let fitting = exchange(&server, &request(HEADER_BYTES_MAX));
    assert!(fitting.starts_with("HTTP/1.1 200 OK"), "{fitting}");
    let large = exchange(&server, &request(HEADER_BYTES_MAX + 1));
    assert!(large.starts_with("HTTP/1.1 431 "), "{large}");
}

/// At the connection limit, a further connection displaces a slow one.
#[tokio::test]
async fn slow_clients_are_displaced_by_others() {
    let server = listening().await;
    let mut slow: Vec<TcpStream> = (0..CONNECTIONS_MAX)
        .map(|_| {
            let mut stream = connect(&server);
            stream.write_all(b"GET /hea").unwrap();
            stream
        })
        .collect();
    let response = server.request_management(Method::GET, "/health").await;
    response.expect(200);
    let is_closed = |stream: &mut TcpStream| {
        stream.set_nonblocking(true).unwrap();
        let read = stream.read(&mut [0; 1024]);
        !read.is_err_and(|cause| cause.kind() == ErrorKind::WouldBlock)
    };
    until("closed connection", async || slow.iter_mut().any(is_closed)).await;
}

#[tokio::test]
async fn the_management_listener_stops_with_the_server() {
    let server = watched().await;
    let stream = connect(&server);
    let address = stream.peer_addr().unwrap();
    server.stop().await;
    assert!(TcpStream::connect(address).is_err());
    drop(stream);
}

// The metrics match the documentation and the standard format.

/// Scrapes a server that has samples for every metric.
async fn full_scrape() -> Scrape {
    let options = Options::default().watched().extra(RETENTION);
    let server = Server::start_with(&options.plugin(
        "plain-current",
        "current-generator",
        &["random"],
        "settings = { expires_after = 60 }",
    ))
    .await;
    server.generated("/p", "password", json!({})).await;
    let expiring = server.generated("/expiring", "plain-current", json!({}));
    expiring.await;
    without_token(&server).await;
    let address = server.base_url().trim_start_matches("https://");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    server
        .scrape_until(|scrape| {
            let failures = scrape.sum("keywright_tls_handshake_failures_total", &[]);
            let run = scrape.sum("keywright_retention_last_run_timestamp_seconds", &[]);
            failures.is_some() && run.is_some()
        })
        .await
}

#[tokio::test]
async fn the_last_reload_of_each_part_is_measured() {
    let options = Options::default().watched();
    let server = Server::start_with(&options).await;
    let measured = async || {
        let scrape = server.scrape().await;
        ["tls", "plugins"].map(|part| {
            let succeeded = scrape.sum("keywright_reload_succeeded", &[("part", part)]);
            succeeded.unwrap() > 0.5
        })
    };
    assert_eq!(measured().await, [true, true]);
    let broken = options
        .clone()
        .extra("[generators.absent]\ncomponent = \"absent.wasm\"\n");
    server.reload_plugins(&broken).await;
    assert_eq!(measured().await, [true, false]);
    server.reload_plugins(&options).await;
    assert_eq!(measured().await, [true, true]);
}

/// Sends a request without a token, which is refused.
async fn without_token(server: &Server) {
    let request = server.request(Method::GET, "/version");
    server.send(request).await.expect(401);
}

/// A policy. Without one, the server has no metrics of retention.
const RETENTION: &str = r#"
[retention]
interval_seconds = 1
policies = [{ path = "/nothing/*", versions_max = 1, age_days_max = 1 }]
"#;

/// Returns the metrics in `host/docs/metrics.md`: type and labels by name.
fn documented() -> BTreeMap<String, (String, BTreeSet<String>)> {
    let page = fs::read_to_string(workspace().join("host/docs/metrics.md")).unwrap();
    let lines = page.lines();
    let rows = lines.filter(|line| line.starts_with("| `keywright_"));
    rows.map(|row| {
        let mut cells = row.trim_matches('|').split(" | ").map(str::trim);
        let name = cells.next().unwrap().trim_matches('`').to_owned();
        let kind = cells.next().unwrap().to_owned();
        // The values of a label follow a colon.
        let labels = cells.next().unwrap().split(';').map(str::trim);
        let labels = labels.filter_map(|label| label.split('`').nth(1));
        (name, (kind, labels.map(str::to_owned).collect()))
    })
    .collect()
}

#[tokio::test]
async fn the_documented_metrics_match_a_scrape() {
    let scrape = full_scrape().await;
    let measured: BTreeMap<_, _> = scrape
        .families()
        .iter()
        .map(|(name, kind)| {
            let of_family = scrape
                .samples()
                .iter()
                .filter(|sample| sample.name == *name || sample.name == format!("{name}_bucket"));
            let labels: BTreeSet<String> = of_family
                .flat_map(|sample| sample.labels.keys().cloned())
                .filter(|label| label != "le")
                .collect();
            (name.clone(), (kind.clone(), labels))
        })
        .collect();
    assert_eq!(measured, documented());
}

#[tokio::test]
async fn metric_names_have_the_prefix_and_end_in_their_unit() {
    for (name, (kind, _)) in documented() {
        assert!(name.starts_with("keywright_"), "{name}");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
        if kind == "histogram" {
            assert!(name.ends_with("_seconds"), "{name}");
        }
    }
}

// Requests by route, method and status.

const REQUESTS: &str = "keywright_http_requests_total";
const DURATION: &str = "keywright_http_request_duration_seconds_count";

#[tokio::test]
async fn a_request_is_counted_by_route_method_and_status() {
    let server = watched().await;
    let version = server.set_value("/a", "v").await;
    let path = format!("/api/v1/data/{}", given::id(&version));
    server.get(&path).await.expect(200);
    server.get(&format!("{path}/")).await.expect(200);
    let absent = format!("/api/v1/data/{}", Uuid::new_v4());
    server.get(&absent).await.expect(404);
    server.get("/api/v1/data?name=/a").await.expect(200);
    server.get("/api/v1/data?name=/b").await.expect(404);
    server.put("/api/v1/data", json!({})).await.expect(422);
    let unknown = server.authorized(Method::PATCH, "/api/v1/data");
    server.send(unknown).await.expect(404);
    without_token(&server).await;
    let scrape = server.scrape().await;
    for (route, method, status, count) in [
        ("/api/v1/data/{id}", "GET", "200", 2.0),
        ("/api/v1/data/{id}", "GET", "404", 1.0),
        ("/api/v1/data", "GET", "200", 1.0),
        ("/api/v1/data", "GET", "404", 1.0),
        ("/api/v1/data", "PUT", "200", 1.0),
        ("/api/v1/data", "PUT", "422", 1.0),
        ("/api/v1/data", "PATCH", "404", 1.0),
        ("/version", "GET", "401", 1.0),
    ] {
        let labels = [("route", route), ("method", method), ("status", status)];
        let counted = scrape.sum(REQUESTS, &labels);
        assert_eq!(counted, Some(count), "{method} {route} {status}");
    }
    let durations = scrape.sum(DURATION, &[("route", "/api/v1/data"), ("method", "GET")]);
    assert_eq!(durations, Some(2.0));
    let actual = scrape.sum("keywright_http_requests_in_progress", &[]);
    assert_eq!(actual, Some(0.0));
}

#[tokio::test]
async fn requests_cannot_add_label_values() {
    let server = watched().await;
    let number_of_series = async |round: usize| {
        for number in 0..20 {
            let text = format!("r{round}n{number}");
            let method = Method::from_bytes(text.to_uppercase().as_bytes()).unwrap();
            for path in [
                format!("/{text}"),
                format!("/api/v1/{text}/x"),
                format!("/api/v1/data/{text}"),
                format!("/api/v1/data/%2F{text}"),
                format!("/api/v1/data?name=/{text}&{text}=1"),
                format!("/api/v1/certificates/{text}/versions/{text}"),
            ] {
                let response = server.get(&path).await;
                assert_eq!(response.status / 100, 4, "{response:?}");
                let request = server.authorized(method.clone(), &path);
                server.send(request).await.expect(404);
            }
            let open = server.request(method, "/health");
            server.send(open.bearer_auth(&text)).await.expect(404);
            let refused = server.request(Method::GET, "/version");
            server.send(refused.bearer_auth(&text)).await.expect(401);
        }
        let scrape = server.scrape().await;
        assert!(!scrape.text().contains(&format!("r{round}n")));
        assert!(!scrape.text().contains(&format!("R{round}N")));
        scrape.samples().len()
    };
    let first = number_of_series(1).await;
    assert_eq!(number_of_series(2).await, first);
    let scrape = server.scrape().await;
    let labels: BTreeSet<(&str, &str)> = scrape
        .samples()
        .iter()
        .filter(|sample| sample.name == REQUESTS)
        .flat_map(|sample| &sample.labels)
        .map(|(label, value)| (label.as_str(), value.as_str()))
        .collect();
    assert!(labels.contains(&("route", "unmatched")), "{labels:?}");
    assert!(labels.contains(&("method", "other")), "{labels:?}");
}

// Metrics of failed authentication, by reason.

const FAILURES: &str = "keywright_authentication_failures_total";

#[tokio::test]
async fn each_reason_for_refusing_a_token_is_counted_separately() {
    let server = watched().await;
    let mint = Mint::of(&server).await;
    let expired = mint.claims_with("exp", json!(seconds_since_epoch() - 3_600));
    let without_scopes = mint.claims_with("scope", json!([]));
    let reasons = [
        ("absent", String::new()),
        ("expired", mint.token(&expired)),
        ("invalid", "a.b.c".to_owned()),
        ("scopes_missing", mint.token(&without_scopes)),
    ];
    for (times, (reason, token)) in reasons.iter().enumerate() {
        let failures = |reason| [("mechanism", "token"), ("reason", reason)];
        assert_eq!(server.scrape().await.sum(FAILURES, &failures(reason)), None);
        for _ in 0..=times {
            if token.is_empty() {
                without_token(&server).await;
            } else {
                let response = present(&server, token).await;
                assert!([401, 403].contains(&response.status), "{response:?}");
            }
        }
        for (position, (reason, _)) in reasons.iter().enumerate().take(times + 1) {
            let counted = server.scrape().await.sum(FAILURES, &failures(reason));
            let count = u32::try_from(position + 1).unwrap_or_default();
            assert_eq!(counted, Some(f64::from(count)), "{reason}");
        }
    }
}

#[tokio::test]
async fn an_unresponsive_provider_is_counted_separately() {
    let options = Options::default()
        .identity_provider("https://127.0.0.1:1/identity")
        .watched();
    let server = Server::start_with(&options).await;
    let stranger = Server::start().await;
    present(&server, stranger.token()).await.expect(503);
    let failures = [("mechanism", "token"), ("reason", "unverifiable")];
    assert_eq!(server.scrape().await.sum(FAILURES, &failures), Some(1.0));
}

// Metrics of stored data.

#[tokio::test]
async fn certificates_are_counted_by_days_left_and_versions_by_key() {
    let server = watched().await;
    let value = json!({"certificate": external_certificates::expired_certificate()});
    server.stored("/expired", "certificate", value).await;
    let days = [1, 7, 8, 30, 31, 90, 91, 365, 366, 3_650];
    for days in days {
        let parameters = json!({"self_sign": true, "duration": days});
        server.issued(&format!("/d{days}"), parameters).await;
    }
    // Only the newest version is counted.
    let parameters = json!({"self_sign": true, "duration": 20});
    server.issued("/renewed", parameters).await;
    let parameters =
        json!({"common_name": "r", "key_type": QUICK_KEY, "self_sign": true, "duration": 400});
    let renewed = server.generate_in_mode("overwrite", "/renewed", "certificate", parameters);
    renewed.await.expect(200);
    server.set_value("/value", "v").await;
    let scrape = server.scrape().await;
    for (days_left, number) in [
        ("expired", 1.0),
        ("7", 2.0),
        ("30", 2.0),
        ("90", 2.0),
        ("365", 2.0),
        ("more", 3.0),
    ] {
        let counted = scrape.sum("keywright_certificates", &[("days_left", days_left)]);
        assert_eq!(counted, Some(number), "{days_left}");
    }
    for (key, number) in [("active", 14.0), ("inactive", 0.0), ("unknown", 0.0)] {
        let counted = scrape.sum("keywright_encrypted_versions", &[("key", key)]);
        assert_eq!(counted, Some(number), "{key}");
    }
    let age = scrape.sum("keywright_stored_counts_age_seconds", &[]);
    assert!(age.is_some_and(|age| age >= 0.0), "{age:?}");
}

#[tokio::test]
async fn connections_to_the_database_are_within_their_limits() {
    let options = Options::default()
        .watched()
        .environment("KEYWRIGHT_STORAGE__READERS_MAX", "3")
        .environment("KEYWRIGHT_STORAGE__WRITERS_MAX", "1");
    let server = Server::start_with(&options).await;
    server.set_value("/a", "v").await;
    let scrape = server.scrape().await;
    for (pool, most) in [("reader", 3.0), ("writer", 1.0)] {
        let in_pool = |name, state: &[(&str, &str)]| {
            let labels = [&[("pool", pool)], state].concat();
            scrape.sum(name, &labels).unwrap()
        };
        assert!((in_pool("keywright_database_connections_max", &[]) - most).abs() < f64::EPSILON);
        let idle = in_pool("keywright_database_connections", &[("state", "idle")]);
        let in_use = in_pool("keywright_database_connections", &[("state", "in_use")]);
        assert!(idle + in_use >= 1.0 && idle + in_use <= most, "{pool}");
        assert!(in_pool("keywright_database_connection_waiters", &[]).abs() < f64::EPSILON);
    }
}
