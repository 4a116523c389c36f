//! `GET /api/v1/data` and `GET /api/v1/data/{id}`.

use axum::http::StatusCode;
use serde_json::json;

use super::{DATA, check};
use crate::harness::Service;

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
