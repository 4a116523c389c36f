//! Responses and request bodies that exceed the memory limits of a service.

use std::{convert::Infallible, sync::mpsc::channel};

use axum::{
    body::{Body, Bytes},
    http::{Request, StatusCode},
};
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::json;
use tokio::{runtime::Builder, task::spawn_blocking};

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

#[tokio::test]
async fn large_request_bodies_share_the_memory_of_responses_and_small_ones_do_not() {
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

/// More than the maximum size of a response.
const LISTED: usize = 4_500;
