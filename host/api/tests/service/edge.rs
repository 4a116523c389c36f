//! The handling of all requests: the clock, memory, health checks, logs.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    io::{self, Write},
    pin::pin,
    sync::{Arc, Mutex, atomic::Ordering},
};

use axum::{
    body::{Body, Bytes},
    http::{Request, StatusCode},
};
use futures_util::{FutureExt, StreamExt, stream};
use keywright_core::encryption_key::RotateKeys;
use serde_json::json;
use tracing::level_filters::LevelFilter;

use crate::{
    fakes::{OpenSealer, envelope},
    harness::{NOW_SECONDS, Service},
    storage::OtherWriter,
};

/// Returns the result of a future, and how often it yielded or waited.
async fn counting_yields<T>(future: impl Future<Output = T>) -> (T, usize) {
    let mut future = pin!(future);
    let mut yields = 0;
    let output = poll_fn(|context| {
        let polled = future.as_mut().poll(context);
        yields += usize::from(polled.is_pending());
        polled
    });
    (output.await, yields)
}

#[tokio::test]
async fn interpolation_yields_between_references() {
    let service = Service::new().await;
    let set = json!({"name": "/c", "type": "json", "value": {}});
    service.send_json("PUT", "/api/v1/data", &set).await;
    let document = json!({"a": vec![json!({"credentials": {"ref": "c"}}); 800]});
    let sending = service.send("POST", "/api/v1/interpolate", document.to_string());
    let (response, yields) = counting_yields(sending).await;
    assert_eq!(response.status, StatusCode::OK);
    assert!(yields >= 2 * 800 / 8, "{yields}");
}

#[tokio::test]
async fn a_rotation_yields_between_versions() {
    let service = Service::new().await;
    let names = (0..800).map(|number| format!("/{number}"));
    service.storage.store_all_signed(names, "/root").await;
    let rotate = RotateKeys {
        repository: Arc::new(service.storage.database.clone()),
        sealer: Arc::new(OpenSealer),
    };
    let rotating = rotate.rotate_batch(envelope("").key_id, 0, 800);
    let (batch, yields) = counting_yields(rotating).await;
    assert_eq!(batch.unwrap().rotated, 800);
    assert!(yields >= 800 / 8, "{yields}");
}

#[tokio::test]
async fn requests_get_503_if_the_clock_is_before_1970() {
    let service = Service::new().await;
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
    let service = Service::new().await;
    let names = (0..LISTED).map(|number| {
        let folder = if number == 0 { "few" } else { "many" };
        format!("/{folder}/{number:0>190}")
    });
    service.storage.store_all_signed(names, "/root").await;
    for path in [
        "/api/v1/data?path=",
        "/api/v1/data?name-like=",
        "/api/v1/data?path=/many&expires-within-days=3650",
        "/api/v1/data?path=/many&expires-within-days=3650&effective=true",
        "/api/v1/certificates",
    ] {
        let response = service.get(path).await;
        assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
        assert!(response.error().contains("1048576 bytes"), "{path}");
    }
    let part = service.get("/api/v1/data?path=/few").await;
    assert_eq!(part.status, StatusCode::OK);
}

#[tokio::test]
async fn only_large_request_bodies_count_as_response_memory() {
    let service = Service::new().await;
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

#[tokio::test]
async fn concurrent_health_checks_share_a_ping_and_later_ones_do_not() {
    let service = Service::new().await;
    let check = || service.get_as("/health", None);
    tokio::join!(check(), check(), check());
    assert_eq!(service.storage.pings.load(Ordering::SeqCst), 1);
    check().await;
    assert_eq!(service.storage.pings.load(Ordering::SeqCst), 2);
}

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
async fn reaching_a_limit_is_not_logged_as_an_error() {
    let service = Service::new().await;
    service.storage.store_signed("/root", "/root").await;
    service.storage.store_signed("/leaf", "/root").await;
    let replaces = OtherWriter::Replaces(&["/leaf"; 99]);
    service.storage.set_other_writer(replaces);
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
    let service = Service::new().await;
    service.storage.is_unavailable.store(true, Ordering::SeqCst);
    let (log, _guard) = LogCapture::begin();
    service.get("/api/v1/data?name=a").await;
    let log = log.text();
    assert_eq!(log.matches("ERROR").count(), 1, "{log}");
    assert!(
        log.contains("the storage failed: the database is not available: cause-of-the-outage"),
        "{log}"
    );
}

/// The number of credentials in a list that exceeds the maximum size of a response.
const LISTED: usize = 4_500;
