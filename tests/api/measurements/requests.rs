//! Requests by route, method and status.

use std::collections::BTreeSet;

use keywright_harness::{Options, Server};
use reqwest::Method;
use serde_json::json;
use uuid::Uuid;

use crate::given;

const REQUESTS: &str = "keywright_http_requests_total";
const DURATION: &str = "keywright_http_request_duration_seconds_count";

#[tokio::test]
async fn a_request_counts_under_its_route_its_method_and_its_status() {
    let server = Server::start_with(&Options::default().watched()).await;
    let version = given::set_value(&server, "/a", "v").await;
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
    server
        .send(server.request(Method::GET, "/version"))
        .await
        .expect(401);
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
    assert_eq!(
        scrape.sum("keywright_http_requests_in_progress", &[]),
        Some(0.0)
    );
}

#[tokio::test]
async fn requests_cannot_add_a_label() {
    let server = Server::start_with(&Options::default().watched()).await;
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
                let answer = server.get(&path).await;
                assert!((400..500).contains(&answer.status), "{path}: {answer:?}");
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
