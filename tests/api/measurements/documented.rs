//! The metrics match the documentation and the standard format.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write,
    net::TcpStream,
};

use keywright_harness::{Options, Scrape, Server, workspace};
use prometheus_parse::Value;
use reqwest::Method;
use serde_json::json;

use crate::given;

/// A scrape of a server with samples for every metric.
async fn full_scrape() -> Scrape {
    let server = Server::start_with(&Options::default().watched().extra(RETENTION)).await;
    given::generate(&server, "/p", "password", json!({})).await;
    server
        .send(server.request(Method::GET, "/version"))
        .await
        .expect(401);
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

/// A policy, which metrics of retention require.
const RETENTION: &str = r#"
[retention]
interval_seconds = 1
policies = [{ path = "/nothing/*", versions_max = 1, age_days_max = 1 }]
"#;

/// The metrics in `host/docs/metrics.md`: type and labels by name.
fn documented() -> BTreeMap<String, (String, BTreeSet<String>)> {
    let page = fs::read_to_string(workspace().join("host/docs/metrics.md")).unwrap();
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| `keywright_"));
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
async fn names_have_the_prefix_and_end_in_their_unit() {
    for (name, (kind, _)) in documented() {
        assert!(name.starts_with("keywright_"), "{name}");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
        if kind == "histogram" {
            assert!(name.ends_with("_seconds"), "{name}");
        }
    }
}

#[tokio::test]
async fn an_independent_parser_reads_the_same_metrics() {
    let scrape = full_scrape().await;
    let lines = scrape.text().lines().map(|line| Ok(line.to_owned()));
    let read = prometheus_parse::Scrape::parse(lines).unwrap();
    let mut families = BTreeSet::new();
    for sample in &read.samples {
        families.insert(sample.metric.clone());
        let labels: Vec<(&str, &str)> = sample
            .labels
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let sum = |suffix: &str| scrape.sum(&format!("{}{suffix}", sample.metric), &labels);
        match &sample.value {
            Value::Counter(number) => {
                assert_eq!(scrape.families()[&sample.metric], "counter");
                assert_eq!(sum(""), Some(*number), "{sample:?}");
            }
            Value::Gauge(number) => {
                assert_eq!(scrape.families()[&sample.metric], "gauge");
                assert_eq!(sum(""), Some(*number), "{sample:?}");
            }
            Value::Histogram(buckets) => {
                let all = buckets.last().unwrap().count;
                assert_eq!(sum("_count"), Some(all), "{sample:?}");
            }
            Value::Untyped(_) => {
                let histogram = ["_sum", "_count"]
                    .iter()
                    .find_map(|suffix| sample.metric.strip_suffix(suffix))
                    .unwrap();
                assert_eq!(scrape.families()[histogram], "histogram");
                families.remove(&sample.metric);
            }
            Value::Summary(_) => panic!("{sample:?}"),
        }
    }
    assert_eq!(families, scrape.families().keys().cloned().collect());
}
