//! Health and metrics for monitoring.

use std::sync::{Arc, atomic::Ordering};

use async_trait::async_trait;
use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, StatusCode},
};
use keywright_api::{HealthCheck, Measurements, management_router};
use tower::ServiceExt;

use crate::memory::Memory;

/// Records one metric.
struct OneMeasurement;

#[async_trait]
impl Measurements for OneMeasurement {
    async fn text(&self) -> String {
        "a_total 1\n".to_owned()
    }
}

fn router(memory: &Arc<Memory>) -> Router {
    let health = HealthCheck::new(Arc::clone(memory) as _, None);
    management_router(health, Arc::new(OneMeasurement))
}

async fn answer(router: &Router, method: &str, path: &str) -> (StatusCode, String, String) {
    let request = Request::builder().method(method).uri(path);
    let request = request.body(Body::empty()).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let media_type = response.headers().get("content-type");
    let media_type = media_type.map(|value| value.to_str().unwrap().to_owned());
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (
        status,
        media_type.unwrap_or_default(),
        String::from_utf8(body.to_vec()).unwrap(),
    )
}

#[tokio::test]
async fn a_server_without_its_database_is_down_but_has_metrics() {
    let memory = Arc::new(Memory::default());
    let router = router(&memory);
    let (status, media_type, body) = answer(&router, "GET", "/health").await;
    assert_eq!(
        (status, body.as_str()),
        (StatusCode::OK, r#"{"status":"UP"}"#)
    );
    assert_eq!(media_type, "application/json;charset=UTF-8");
    memory.is_away.store(true, Ordering::SeqCst);
    let (status, _, body) = answer(&router, "GET", "/health").await;
    assert_eq!(
        (status, body.as_str()),
        (StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"DOWN"}"#)
    );
    let (status, media_type, body) = answer(&router, "GET", "/metrics").await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "a_total 1\n"));
    assert_eq!(media_type, "text/plain; version=0.0.4; charset=utf-8");
}

#[tokio::test]
async fn concurrent_health_checks_share_a_ping_and_later_ones_do_not() {
    let memory = Arc::new(Memory::default());
    let router = router(&memory);
    let check = || answer(&router, "GET", "/health");
    tokio::join!(check(), check(), check());
    assert_eq!(memory.pings.load(Ordering::SeqCst), 1);
    check().await;
    assert_eq!(memory.pings.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn other_paths_are_not_served() {
    let router = router(&Arc::new(Memory::default()));
    for (method, path) in [
        ("GET", "/"),
        ("GET", "/info"),
        ("GET", "/api/v1/data?path=/"),
        ("GET", "/management"),
        ("GET", "/health/"),
        ("GET", "/metrics/x"),
        ("POST", "/metrics"),
        ("PUT", "/health"),
        ("DELETE", "/metrics"),
        ("BREW", "/health"),
    ] {
        let (status, _, _) = answer(&router, method, path).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}");
    }
}
