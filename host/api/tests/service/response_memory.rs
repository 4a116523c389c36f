//! Responses that exceed the memory limits of a service.

use axum::http::StatusCode;
use futures_util::FutureExt;
use serde_json::json;

use crate::harness::Service;

#[tokio::test]
async fn a_list_past_the_limit_is_refused_and_a_part_of_it_is_not() {
    let service = Service::new();
    for number in 0..LISTED {
        let folder = if number == 0 { "few" } else { "many" };
        let name = format!("/{folder}/{number:0>190}");
        service.memory.store_signed(&name, &name);
    }
    for path in [
        "/api/v1/data?path=",
        "/api/v1/data?name-like=",
        "/api/v1/data?path=/many&expires-within-days=1",
        "/api/v1/data?path=/many&expires-within-days=1&effective=true",
        "/api/v1/certificates",
    ] {
        let answer = service.get(path).await;
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
        assert!(answer.error().contains("1048576 bytes"), "{path}");
    }
    let part = service.get("/api/v1/data?path=/few").await;
    assert_eq!(part.status, StatusCode::OK);
}

#[tokio::test]
async fn a_large_list_is_rendered_on_another_thread_than_its_request() {
    let service = Service::new();
    for number in 0..1_025 {
        let folder = if number == 0 { "few" } else { "many" };
        let name = format!("/{folder}/{number}");
        service.memory.store_signed(&name, &name);
    }
    let is_done_at_once = |path| service.get(path).now_or_never().is_some();
    assert!(is_done_at_once("/api/v1/data?path=/few"));
    for path in [
        "/api/v1/data?path=",
        "/api/v1/data?path=&expires-within-days=1&effective=true",
        "/api/v1/certificates",
    ] {
        assert!(!is_done_at_once(path), "{path}");
        assert_eq!(service.get(path).await.status, StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn versions_past_the_limit_are_refused_and_fewer_are_not() {
    let service = Service::new();
    let value = "v".repeat(60_000);
    for _ in 0..20 {
        let body = json!({"name": "/large", "type": "value", "value": value});
        let set = service.send_json("PUT", "/api/v1/data", &body).await;
        assert_eq!(set.status, StatusCode::OK);
    }
    for path in [
        "/api/v1/data?name=/large",
        "/api/v1/data?name=/large&versions=18",
    ] {
        let answer = service.get(path).await;
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
        assert!(answer.error().contains("versions="), "{}", answer.error());
    }
    for count in [17, 16, 1, 17] {
        let path = format!("/api/v1/data?name=/large&versions={count}");
        let answer = service.get(&path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        assert_eq!(answer.json()["data"].as_array().unwrap().len(), count);
    }
}

/// More than the maximum size of a response.
const LISTED: usize = 4_500;
