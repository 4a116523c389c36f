//! `GET /api/v1/data` with `path` or `name-like`.

use axum::http::StatusCode;
use serde_json::json;

use super::{DATA, check};
use crate::harness::Service;

#[tokio::test]
async fn a_search_wins_over_a_name() {
    let service = Service::new();
    for name in ["/a/one", "/b/two"] {
        let body = json!({"name": name, "type": "value", "value": "x"});
        check(&service, "PUT", DATA, body, 200).await;
    }
    for (query, names) in [
        ("path=", vec!["/b/two", "/a/one"]),
        ("name-like=", vec!["/b/two", "/a/one"]),
        ("path=a&name=/b/two", vec!["/a/one"]),
        ("name-like=TW&name=", vec!["/b/two"]),
        ("path=/none", vec![]),
    ] {
        let answer = service.get(&format!("{DATA}?{query}")).await;
        let found = answer.json()["credentials"].clone();
        let read: Vec<&str> = found
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["name"].as_str().unwrap())
            .collect();
        assert_eq!(read, names, "{query}");
    }
    for query in [
        "path=a&name-like=b",
        "path=a&expires-within-days=x",
        "path=a&path=b",
    ] {
        let answer = service.get(&format!("{DATA}?{query}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
    }
    let expiring = service
        .get("/api/v1/data?path=a&expires-within-days=1")
        .await;
    assert_eq!(
        expiring.text,
        r#"{"credentials":[{"name":"/a/one","version_created_at":"2027-01-15T08:00:00Z","expiry_date":"2027-01-16T08:00:00Z"}]}"#
    );
}
