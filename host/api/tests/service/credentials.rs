//! Credentials: setting, reading, finding and deleting.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::harness::Service;

/// The path of most requests.
pub(crate) const DATA: &str = "/api/v1/data";

/// Sends a body, asserts the status, and returns the `error` of an error response.
pub(crate) async fn check(
    service: &Service,
    method: &str,
    path: &str,
    body: Value,
    status: u16,
) -> String {
    let answer = service.send_json(method, path, &body).await;
    assert_eq!(answer.status.as_u16(), status, "{body}: {}", answer.text);
    if answer.status.is_success() {
        return String::new();
    }
    answer.error()
}

#[tokio::test]
async fn each_error_in_a_set_has_its_status() {
    let service = Service::new();
    let long = "x".repeat(7_000);
    for (body, status, named) in [
        (
            json!({"name": "a", "value": "x"}),
            422,
            "value, json, certificate",
        ),
        (json!({"name": "a", "type": "", "value": "x"}), 422, "type"),
        (
            json!({"name": "a", "type": null, "value": "x"}),
            422,
            "type",
        ),
        (json!({"name": "a", "type": 1, "value": "x"}), 422, "type"),
        (
            json!({"name": "a", "type": "pgp", "value": "x"}),
            422,
            "type",
        ),
        (json!({"type": "pgp"}), 422, "type"),
        (json!({"name": "a", "type": "value"}), 400, "value"),
        (
            json!({"name": "a", "type": "value", "value": null}),
            400,
            "value",
        ),
        (
            json!({"name": "a", "type": "value", "value": ""}),
            400,
            "value",
        ),
        (
            json!({"name": "a", "type": "value", "value": 1}),
            400,
            "value",
        ),
        (
            json!({"name": "a", "type": "json", "value": []}),
            400,
            "value",
        ),
        (json!({"type": "value", "value": "x"}), 400, "name"),
        (
            json!({"name": "/", "type": "value", "value": "x"}),
            400,
            "name",
        ),
        (
            json!({"name": "a b", "type": "value", "value": "x"}),
            400,
            "name",
        ),
        (
            json!({"name": 1, "type": "value", "value": "x"}),
            400,
            "name",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x", "mode": "overwrite"}),
            422,
            "mode",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x", "overwrite": true}),
            422,
            "overwrite",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x", "parameters": {}}),
            422,
            "parameters",
        ),
        (
            json!({"name": "a", "type": "user", "value": {"bogus": 1}}),
            422,
            "bogus",
        ),
        (
            json!({"name": "a", "type": "certificate", "value": {"bogus": 1}}),
            422,
            "bogus",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x", "metadata": {"a": long}}),
            400,
            "metadata",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x".repeat(65_537)}),
            413,
            "65,536",
        ),
    ] {
        let error = check(&service, "PUT", DATA, body.clone(), status).await;
        assert!(error.contains(named), "{body}: {error}");
    }
}

#[tokio::test]
async fn a_value_keeps_its_numbers() {
    let service = Service::new();
    let body = "{\"name\": \"n\", \"type\": \"json\", \"value\": {\"n\": 12345678901234567890123, \"f\": 1.10}}";
    let set = service.send("PUT", DATA, body).await;
    let value = r#""value":{"n":12345678901234567890123,"f":1.10}"#;
    assert!(set.text.contains(value), "{}", set.text);
    assert!(
        service
            .get("/api/v1/data?name=n")
            .await
            .text
            .contains(value)
    );
}

#[tokio::test]
async fn any_configured_type_is_set_and_generated() {
    let service = Service::new();
    let body = json!({"name": "w", "type": "WireGuard", "value": {"key": 1}});
    check(&service, "PUT", DATA, body, 200).await;
    let generated = service
        .send_json(
            "POST",
            DATA,
            &json!({"name": "g", "type": "wireguard", "parameters": {"a": 1}}),
        )
        .await;
    assert_eq!(generated.json()["value"], json!({"a": 1}));
}

#[tokio::test]
async fn the_type_of_a_credential_cannot_change() {
    let service = Service::new();
    let set = json!({"name": "/s", "type": "value", "value": "x"});
    check(&service, "PUT", DATA, set, 200).await;
    let other = json!({"name": "/s", "type": "password", "value": "x"});
    check(&service, "PUT", DATA, other, 400).await;
    let generate = json!({"name": "/s", "type": "password", "mode": "no-overwrite"});
    check(&service, "POST", DATA, generate, 400).await;
}

#[tokio::test]
async fn a_set_value_is_read_by_name_and_by_id() {
    let service = Service::new();
    let body =
        json!({"name": "a/B", "type": "VALUE", "value": "one", "metadata": {"b": 1, "a": 2}});
    let set = service.send_json("PUT", DATA, &body).await;
    assert_eq!(set.status, StatusCode::OK);
    let members: Vec<String> = set.json().as_object().unwrap().keys().cloned().collect();
    let order = [
        "type",
        "version_created_at",
        "id",
        "name",
        "metadata",
        "value",
    ];
    assert_eq!(members, order);
    assert_eq!(set.json()["type"], "value");
    assert_eq!(set.json()["name"], "/a/B");
    assert_eq!(set.json()["version_created_at"], "2027-01-15T08:00:00Z");
    let by_name = service.get("/api/v1/data?current=true&name=%2FA%2Fb").await;
    assert_eq!(by_name.text, format!(r#"{{"data":[{}]}}"#, set.text));
    let id = set.json()["id"].as_str().unwrap().to_owned();
    let by_id = service.get(&format!("/api/v1/data/{id}/")).await;
    assert_eq!(by_id.text, set.text);
}

#[tokio::test]
async fn reading_a_missing_credential_is_not_found() {
    let service = Service::new();
    for path in [
        "/api/v1/data?name=absent",
        "/api/v1/data?name=bad%20name*",
        "/api/v1/data/7c3b2d1e-0000-4000-8000-000000000000",
        "/api/v1/data/no-uuid",
        "/api/v1/data/%FF",
    ] {
        let answer = service.get(path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        assert!(!answer.error().is_empty());
    }
}

#[tokio::test]
async fn the_query_chooses_versions() {
    let service = Service::new();
    for value in ["1", "2", "3"] {
        let body = json!({"name": "a", "type": "value", "value": value});
        check(&service, "PUT", DATA, body, 200).await;
    }
    for (query, values) in [
        ("name=a", vec!["3", "2", "1"]),
        ("name=a&versions=2", vec!["3", "2"]),
        ("name=a&versions=99999999999", vec!["3", "2", "1"]),
        ("name=a&current=false&versions=1", vec!["3"]),
        ("name=a&current=true", vec!["3"]),
    ] {
        let answer = service.get(&format!("{DATA}?{query}")).await;
        let data = answer.json()["data"].clone();
        let read: Vec<&str> = data
            .as_array()
            .unwrap()
            .iter()
            .map(|version| version["value"].as_str().unwrap())
            .collect();
        assert_eq!(read, values, "{query}");
    }
    for (query, status, named) in [
        ("name=a&versions=0", 404, ""),
        ("name=a&versions=-1", 400, "versions"),
        ("name=a&versions=abc", 400, "versions"),
        ("name=a&versions=1&versions=1", 400, "versions"),
        ("name=a&current=maybe", 400, "current"),
        ("name=a&current=true&versions=2", 400, "current"),
        ("name=a&name=b", 400, "name"),
        ("name=", 400, "name"),
        ("", 400, "name"),
        ("paths=true", 400, "name"),
    ] {
        let answer = service.get(&format!("{DATA}?{query}")).await;
        assert_eq!(answer.status.as_u16(), status, "{query}");
        assert!(answer.error().contains(named), "{query}");
    }
}

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

#[tokio::test]
async fn deleting_returns_no_body_and_then_not_found() {
    let service = Service::new();
    let body = json!({"name": "a", "type": "value", "value": "x"});
    check(&service, "PUT", DATA, body, 200).await;
    let deleted = service.send("DELETE", "/api/v1/data?name=/A", "").await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert_eq!(deleted.text, "");
    for (query, status) in [
        ("name=a", 404),
        ("name=", 400),
        ("", 400),
        ("name=a&name=a", 400),
    ] {
        let answer = service.send("DELETE", &format!("{DATA}?{query}"), "").await;
        assert_eq!(answer.status.as_u16(), status, "{query}");
    }
}
