//! The handling of all requests: headers, limits, memory, errors.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::pin,
    sync::{atomic::Ordering, mpsc::channel},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::{Request, StatusCode},
};
use futures_util::{FutureExt, StreamExt, stream};
use keywright_api::Limits;
use serde_json::json;
use tokio::{runtime::Builder, task::spawn_blocking};

use crate::harness::{LIMITS, NOW_SECONDS, Service};

#[tokio::test]
async fn without_its_database_the_server_reports_down() {
    let service = Service::new();
    service.memory.is_unavailable.store(true, Ordering::SeqCst);
    let health = service.get_as("/health", None).await;
    assert_eq!(health.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(health.text, r#"{"status":"DOWN"}"#);
    let read = service.get("/api/v1/data?name=a").await;
    assert_eq!(read.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(read.headers.contains_key("retry-after"));
    assert!(!read.text.contains("cause-of-the-outage"));
    let key_usage = service.get("/api/v1/key-usage").await;
    assert_eq!(key_usage.status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn every_response_has_a_media_type_and_a_unique_id() {
    let service = Service::new();
    let first = service.get("/version").await;
    let second = service.get_as("/version", None).await;
    for response in [&first, &second] {
        assert_eq!(
            response.headers["content-type"],
            "application/json;charset=UTF-8"
        );
        let server = response.headers["server"].to_str().unwrap();
        assert_eq!(server, format!("keywright/{}", env!("CARGO_PKG_VERSION")));
    }
    assert_ne!(
        first.headers["x-request-id"],
        second.headers["x-request-id"]
    );
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused() {
    let limits = Limits {
        body_bytes_max: 200,
        body_deadline: Duration::from_secs(5),
    };
    let service = Service::with(Some(()), limits);
    let body = |bytes: usize| {
        let frame = json!({"name": "a", "type": "value", "value": ""}).to_string();
        json!({"name": "a", "type": "value", "value": "x".repeat(bytes - frame.len())}).to_string()
    };
    let response = service.send("PUT", "/api/v1/data", body(200)).await;
    assert_eq!(response.status, StatusCode::OK);
    let response = service.send("PUT", "/api/v1/data", body(201)).await;
    assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(response.error().contains("200"));
}

#[tokio::test]
async fn a_panic_results_in_an_error_without_details() {
    let service = Service::new();
    let body = json!({"name": "a", "type": "password", "parameters": {"fault": "panic"}});
    let response = service.send_json("POST", "/api/v1/data", &body).await;
    assert_eq!(response.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(!response.error().contains("canary"));
    assert!(response.headers.contains_key("x-request-id"));
}

#[tokio::test]
async fn interpolation_yields_between_references() {
    let service = Service::new();
    let set = json!({"name": "/c", "type": "json", "value": {}});
    service.send_json("PUT", "/api/v1/data", &set).await;
    let document = json!({"a": vec![json!({"credentials": {"ref": "c"}}); 800]});
    let mut sending = pin!(service.send("POST", "/api/v1/interpolate", document.to_string()));
    let mut yields = 0;
    let response = poll_fn(|context| {
        let polled = sending.as_mut().poll(context);
        yields += usize::from(polled.is_pending());
        polled
    });
    assert_eq!(response.await.status, StatusCode::OK);
    assert!(yields >= 2 * 800 / 8, "{yields}");
}

#[tokio::test]
async fn without_a_resolver_interpolation_is_not_implemented() {
    let service = Service::with(None, LIMITS);
    let response = service.send("POST", "/api/v1/interpolate", "{}").await;
    assert_eq!(response.status, StatusCode::NOT_IMPLEMENTED);
    assert!(response.error().contains("resolver"));
}

#[tokio::test]
async fn requests_get_503_if_the_clock_is_before_1970() {
    let service = Service::new();
    for (seconds, status) in [
        (-1, StatusCode::SERVICE_UNAVAILABLE),
        (-62_135_596_800, StatusCode::SERVICE_UNAVAILABLE),
        (NOW_SECONDS, StatusCode::OK),
    ] {
        service.clock.0.store(seconds, Ordering::SeqCst);
        for path in ["/version", "/api/v1/data?path="] {
            let response = service.get(path).await;
            assert_eq!(response.status, status, "{seconds}: {}", response.text);
            let has_retry = response.headers.contains_key("retry-after");
            assert_eq!(has_retry, status != StatusCode::OK);
        }
        let health = service.get_as("/health", None).await;
        assert_eq!(health.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn only_lists_past_the_limit_are_refused() {
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
        let response = service.get(path).await;
        assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
        assert!(response.error().contains("1048576 bytes"), "{path}");
    }
    let part = service.get("/api/v1/data?path=/few").await;
    assert_eq!(part.status, StatusCode::OK);
}

#[test]
fn large_lists_are_rendered_on_threads_for_blocking_work() {
    let service = Service::new();
    for number in 0..1_025 {
        let folder = if number == 0 { "few" } else { "many" };
        let name = format!("/{folder}/{number}");
        service.memory.store_signed(&name, &name);
    }
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime.max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let (end, ended) = channel::<()>();
        let _occupied = spawn_blocking(move || ended.recv());
        let is_done_at_once = |path| service.get(path).now_or_never().is_some();
        assert!(is_done_at_once("/api/v1/data?path=/few"));
        for path in [
            "/api/v1/data?path=",
            "/api/v1/data?path=&expires-within-days=1&effective=true",
            "/api/v1/certificates",
        ] {
            assert!(!is_done_at_once(path), "{path}");
        }
        drop(end);
    });
}

#[tokio::test]
async fn only_versions_past_the_limit_are_refused() {
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
        let response = service.get(path).await;
        assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
        assert!(
            response.error().contains("versions="),
            "{}",
            response.error()
        );
    }
    for count in [17, 16, 1, 17] {
        let path = format!("/api/v1/data?name=/large&versions={count}");
        let response = service.get(&path).await;
        assert_eq!(response.status, StatusCode::OK, "{path}");
        assert_eq!(response.json()["data"].as_array().unwrap().len(), count);
    }
}

#[tokio::test]
async fn only_large_request_bodies_count_as_response_memory() {
    let service = Service::new();
    let arrived = Bytes::from(vec![b' '; 600_000]);
    let body = stream::iter([Ok::<_, Infallible>(arrived)]).chain(stream::pending());
    let request = Request::put("/api/v1/data")
        .header("host", "localhost")
        .header("authorization", service.token())
        .header("content-type", "application/json")
        .body(Body::from_stream(body))
        .unwrap();
    let pipeline = service.pipeline();
    let mut incomplete = Box::pin(pipeline.respond(None, request));
    assert!((&mut incomplete).now_or_never().is_none());

    let body = json!({"name": "/a", "type": "value", "value": "v"}).to_string();
    let text = |bytes| body.clone() + &" ".repeat(bytes - body.len());
    let large = service.send("PUT", "/api/v1/data", text(500_000)).await;
    assert_eq!(large.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(large.headers["retry-after"], "1");
    assert!(large.error().contains("request body"), "{}", large.error());
    let small = service.send("PUT", "/api/v1/data", text(128 * 1024)).await;
    assert_eq!(small.status, StatusCode::OK);

    drop(incomplete);
    let large = service.send("PUT", "/api/v1/data", text(500_000)).await;
    assert_eq!(large.status, StatusCode::OK);
}

/// The number of credentials in a list that exceeds the maximum size of a response.
const LISTED: usize = 4_500;
