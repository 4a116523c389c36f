//! The parts of a request that are logged, and the parts that are not; health checks and metrics.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, atomic::Ordering},
};

use async_trait::async_trait;
use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, StatusCode},
};
use keywright_api::{HealthCheck, Measurements, management_router};
use serde_json::json;
use tower::ServiceExt;
use tracing::level_filters::LevelFilter;

use crate::{harness::Service, memory::Memory};

/// Collects log output.
#[derive(Clone, Default)]
struct LogCapture(Arc<Mutex<Vec<u8>>>);

impl Write for LogCapture {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LogCapture {
    /// Collects everything that this thread logs from now on, at every level.
    fn begin() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[tokio::test]
async fn the_access_log_names_the_route_the_actor_and_the_request() {
    let service = Service::new();
    let (log, _guard) = LogCapture::begin();
    let response = service.get("/api/v1/data?name=canary-name").await;
    let log = log.text();
    let line = log.lines().find(|line| line.contains("responded")).unwrap();
    for part in [
        r#"http.method="GET""#,
        r#"http.route="/api/v1/data""#,
        "http.status=404",
        "duration_ms=",
        r#"actor="uaa-client:app""#,
        response.headers["x-request-id"].to_str().unwrap(),
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(!log.contains("canary"), "{log}");
}

#[tokio::test]
async fn request_data_is_not_logged() {
    let service = Service::new();
    let (log, _guard) = LogCapture::begin();
    for (method, path, body) in [
        (
            "PUT",
            "/api/v1/data",
            json!({"name": "a", "type": "value", "value": "canary"}),
        ),
        (
            "PUT",
            "/api/v1/data",
            json!({"name": "canary a", "type": "value", "value": "canary"}),
        ),
        (
            "PUT",
            "/api/v1/data",
            json!({"name": "a", "type": "canary", "value": "canary"}),
        ),
        ("PUT", "/api/v1/data", json!({"canary": "canary"})),
        (
            "POST",
            "/api/v1/data",
            json!({"name": "b", "type": "user", "value": {"username": "canary"}}),
        ),
        (
            "POST",
            "/api/v1/data",
            json!({"name": "c", "type": "user", "metadata": {"canary": 1}}),
        ),
        ("POST", "/api/v1/interpolate", json!({"canary": "canary"})),
        ("GET", "/canary?canary=canary", json!({})),
        ("GET", "/api/v1/data/canary", json!({})),
    ] {
        service.send_json(method, path, &body).await;
    }
    let form = "grant_type=password&client_id=credhub_cli&username=canary&password=canary";
    let headers = [
        (
            "content-type",
            "application/x-www-form-urlencoded".to_owned(),
        ),
        ("x-canary", "canary".to_owned()),
    ];
    service
        .send_with("POST", "/identity/oauth/token", &headers, form)
        .await;
    service
        .get_as("/version", Some("canary.canary.canary"))
        .await;
    let log = log.text();
    assert_eq!(log.matches("responded").count(), 11);
    assert!(!log.contains("canary"), "{log}");
}

#[tokio::test]
async fn reaching_a_limit_is_not_logged_as_an_error() {
    let service = Service::new();
    service.memory.store_signed("/root", "/root");
    service.memory.store_signed("/leaf", "/root");
    service.memory.is_contended.store(true, Ordering::SeqCst);
    let (log, _guard) = LogCapture::begin();
    let body = json!({"signed_by": "/root"});
    let refused = service
        .send_json("POST", "/api/v1/bulk-regenerate", &body)
        .await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    let log = log.text();
    assert!(!log.contains("ERROR"), "{log}");
}

#[tokio::test]
async fn a_failure_of_the_server_is_logged_once_with_its_cause() {
    let service = Service::new();
    service.memory.is_unavailable.store(true, Ordering::SeqCst);
    let (log, _guard) = LogCapture::begin();
    service.get("/api/v1/data?name=a").await;
    let log = log.text();
    assert_eq!(log.matches("ERROR").count(), 1, "{log}");
    assert!(
        log.contains("the storage failed: the database is not available: cause-of-the-outage"),
        "{log}"
    );
}

/// Returns one metric.
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

async fn response(router: &Router, method: &str, path: &str) -> (StatusCode, String, String) {
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
    let (status, media_type, body) = response(&router, "GET", "/health").await;
    assert_eq!(
        (status, body.as_str()),
        (StatusCode::OK, r#"{"status":"UP"}"#)
    );
    assert_eq!(media_type, "application/json;charset=UTF-8");
    memory.is_unavailable.store(true, Ordering::SeqCst);
    let (status, _, body) = response(&router, "GET", "/health").await;
    assert_eq!(
        (status, body.as_str()),
        (StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"DOWN"}"#)
    );
    let (status, media_type, body) = response(&router, "GET", "/metrics").await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "a_total 1\n"));
    assert_eq!(media_type, "text/plain; version=0.0.4; charset=utf-8");
}

#[tokio::test]
async fn concurrent_health_checks_share_a_ping_and_later_ones_do_not() {
    let memory = Arc::new(Memory::default());
    let router = router(&memory);
    let check = || response(&router, "GET", "/health");
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
        let (status, _, _) = response(&router, method, path).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}");
    }
}
