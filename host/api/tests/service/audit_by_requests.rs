//! Requests write their audit events themselves, on their own threads.

use std::{
    io::{Read, Write},
    net::TcpStream,
    pin::pin,
    sync::Arc,
    thread,
    time::Duration,
};

use axum::http::StatusCode;
use keywright_api::audit::{AuditSettings, AuditTrail, OnAuditFailure};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
    time::sleep,
};

use crate::{
    audit::{begin, fields, settings},
    fakes::MemorySink,
    harness::Service,
};

const GET: &str = "/api/v1/data?name=/a";

async fn audited(settings: AuditSettings) -> (Arc<Service>, Arc<AuditTrail>, MemorySink) {
    let sink = MemorySink::prompt();
    let (service, trail) = Service::audited(settings, sink.clone()).await;
    (Arc::new(service), trail, sink)
}

/// Sends a request from its own task, because a blocked sink blocks the task.
fn spawn_get(service: &Arc<Service>) -> tokio::task::JoinHandle<StatusCode> {
    let service = Arc::clone(service);
    tokio::spawn(async move { service.get(GET).await.status })
}

/// Waits until this many appends to a sink have started.
async fn until_begun(sink: &MemorySink, appends: usize) {
    while sink.begun() < appends {
        sleep(POLL).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_ready_together_share_a_write() {
    let (service, _trail, sink) = audited(settings(OnAuditFailure::Refuse)).await;
    let mut requests: Vec<_> = (0..20).map(|_| Box::pin(service.get(GET))).collect();
    for request in &mut requests {
        begin(request.as_mut()).await;
    }
    for request in requests {
        assert_eq!(request.await.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(sink.events().len(), 20);
    assert_eq!(sink.appends(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn successive_requests_write_their_events_in_order() {
    let (service, _trail, sink) = audited(settings(OnAuditFailure::Refuse)).await;
    let mut clients = JoinSet::new();
    for client in 0..4 {
        let service = Arc::clone(&service);
        clients.spawn(async move {
            for number in 0..50 {
                service
                    .get(&format!("/api/v1/data?name=/{client}/{number}"))
                    .await;
            }
        });
    }
    clients.join_all().await;
    let events = sink.events();
    assert_eq!(events.len(), 200);
    for client in 0..4 {
        let below = format!("/{client}/");
        let names = fields(&events, "resource_name").into_iter();
        let names: Vec<_> = names
            .filter_map(|name| name.as_str()?.strip_prefix(&below))
            .collect();
        let expected: Vec<_> = (0..50).map(|number| number.to_string()).collect();
        assert_eq!(names, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_of_a_disconnected_client_are_written() {
    let (service, trail, sink) = audited(settings(OnAuditFailure::Refuse)).await;
    {
        let request = pin!(service.get(GET));
        begin(request).await;
    }
    // There is no other request that could write the events.
    while sink.events().is_empty() {
        sleep(POLL).await;
    }
    assert_eq!(fields(&sink.events(), "status"), [404]);
    trail.close().await;
    assert_eq!(sink.events().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disconnecting_client_delays_no_other_waiting_request() {
    let (service, trail, sink) = audited(settings(OnAuditFailure::Refuse)).await;
    sink.hold();
    let first = spawn_get(&service);
    until_begun(&sink, 1).await;
    let (cancelled, waiting) = (spawn_get(&service), spawn_get(&service));
    // Both wait for the sink, or have not started.
    cancelled.abort();
    first.abort();
    sink.release();
    assert_eq!(waiting.await.unwrap(), StatusCode::NOT_FOUND);
    assert!(sink.events().len() >= 2);
    trail.close().await;
    assert_eq!(trail.events_lost(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_sink_blocks_one_request_and_no_others() {
    let (service, trail, sink) = audited(AuditSettings {
        write_time_max: Duration::from_millis(200),
        ..settings(OnAuditFailure::Refuse)
    })
    .await;
    sink.hold();
    let blocked = spawn_get(&service);
    until_begun(&sink, 1).await;
    let mut waiting = JoinSet::new();
    for _ in 0..20 {
        let service = Arc::clone(&service);
        waiting.spawn(async move { service.get(GET).await.status });
    }
    for status in waiting.join_all().await {
        let withheld = [
            StatusCode::INTERNAL_SERVER_ERROR,
            StatusCode::SERVICE_UNAVAILABLE,
        ];
        assert!(withheld.contains(&status), "{status}");
    }
    let service_of_open = Arc::clone(&service);
    let open = tokio::spawn(async move { service_of_open.get_as("/info", None).await.status });
    assert_eq!(open.await.unwrap(), StatusCode::OK);
    assert!(!trail.is_written());
    assert!(!blocked.is_finished());

    sink.release();
    assert_eq!(blocked.await.unwrap(), StatusCode::NOT_FOUND);
    assert_eq!(spawn_get(&service).await.unwrap(), StatusCode::NOT_FOUND);
    assert!(trail.is_written());
}

/// If this fails, the test hangs: the sink blocks the thread that serves the network.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_network_is_served_while_a_sink_stalls() {
    let (service, _trail, sink) = audited(settings(OnAuditFailure::Refuse)).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        // On the first connection, the server makes a request, which the sink blocks. On the second, it only responds.
        for is_blocked in [true, false] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let service = Arc::clone(&service);
            tokio::spawn(async move {
                stream.read_u8().await.unwrap();
                if is_blocked {
                    service.get(GET).await;
                }
                stream.write_u8(1).await.unwrap();
            });
        }
    });
    let sink_of_client = sink.clone();
    let client = tokio::task::spawn_blocking(move || {
        sink_of_client.hold();
        let mut blocked = TcpStream::connect(address).unwrap();
        blocked.write_all(&[1]).unwrap();
        while sink_of_client.begun() == 0 {
            thread::sleep(POLL);
        }
        let mut other = TcpStream::connect(address).unwrap();
        other.write_all(&[1]).unwrap();
        other.read_exact(&mut [0]).unwrap();
        sink_of_client.release();
        blocked.read_exact(&mut [0]).unwrap();
    });
    client.await.unwrap();
    serving.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_write_is_retried_without_a_further_request() {
    let (service, trail, sink) = audited(settings(OnAuditFailure::Continue)).await;
    sink.break_after(0);
    let body = json!({"name": "/a", "type": "value", "value": "v"});
    let set = service.send_json("PUT", "/api/v1/data", &body).await;
    assert_eq!(set.status, StatusCode::OK);
    sink.repair();
    while !trail.is_written() {
        sleep(POLL).await;
    }
    assert_eq!(fields(&sink.events(), "resource_name"), ["/a"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_the_trail_writes_pending_events() {
    let (service, trail, sink) = audited(settings(OnAuditFailure::Refuse)).await;
    {
        let request = pin!(service.get(GET));
        begin(request).await;
    }
    trail.close().await;
    assert_eq!(fields(&sink.events(), "status"), [404]);
}

const POLL: Duration = Duration::from_millis(5);
