//! The audit trail with failing or stalled sinks, with unfinished requests, and with deletions by retention.

use std::{
    future::{Future, poll_fn},
    num::NonZeroU32,
    pin::pin,
    sync::{Arc, atomic::AtomicI64},
    task::Poll,
    time::Duration,
};

use axum::http::StatusCode;
use keywright_api::{
    RequestLimits,
    audit::{AuditFormat, AuditSettings, AuditTrail, OnAuditFailure},
};
use keywright_core::{
    credential::CredentialName,
    ports::{ExceedingCredential, NotDeleted, RetentionDeletion, RetentionTrail},
    retention::RetentionLimits,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    fakes::{FixedClock, MemorySink},
    harness::{REQUEST_LIMITS, Service},
};

const VALUE: &str = r#"{"name":"/a","type":"value","value":"v"}"#;

pub(crate) fn settings(on_failure: OnAuditFailure) -> AuditSettings {
    AuditSettings {
        format: AuditFormat::Json,
        on_failure,
        host: "vault-1".to_owned(),
        write_time_max: AuditSettings::WRITE_TIME_MAX,
        unwritten_bytes_max: AuditSettings::UNWRITTEN_BYTES_MAX,
    }
}

/// Returns settings with which a request waits only briefly for the sink.
fn impatient(on_failure: OnAuditFailure) -> AuditSettings {
    AuditSettings {
        write_time_max: Duration::from_millis(200),
        ..settings(on_failure)
    }
}

/// Returns settings with a queue of this size.
fn queue(unwritten_bytes_max: usize, on_failure: OnAuditFailure) -> AuditSettings {
    AuditSettings {
        unwritten_bytes_max,
        ..settings(on_failure)
    }
}

async fn read(service: &Service) -> StatusCode {
    service.get("/api/v1/data?name=/a").await.status
}

async fn set(service: &Service) -> StatusCode {
    service.send("PUT", "/api/v1/data", VALUE).await.status
}

async fn audited(settings: AuditSettings) -> (Service, Arc<AuditTrail>, MemorySink) {
    let sink = MemorySink::default();
    let (service, trail) = Service::audited(settings, sink.clone()).await;
    (service, trail, sink)
}

pub(crate) fn fields<'a>(events: &'a [Value], field: &str) -> Vec<&'a Value> {
    events.iter().map(|event| &event[field]).collect()
}

/// Polls a future once; it must still be pending.
pub(crate) async fn begin(mut future: std::pin::Pin<&mut impl Future>) {
    let is_pending = poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending()));
    assert!(is_pending.await, "the future is complete");
}

/// Returns the result of a future that does not wait.
async fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(outcome) => Poll::Ready(outcome),
        Poll::Pending => panic!("the future is pending"),
    })
    .await
}

#[tokio::test]
async fn disconnected_requests_are_audited_with_their_changes() {
    let (service, trail, sink) = audited(settings(OnAuditFailure::Refuse)).await;
    let storage = &service.storage;
    storage.stall(true);
    tokio::select! {
        _ = set(&service) => panic!("the request is complete"),
        () = storage.has_stalled.notified() => {}
    }
    storage.stall(false);
    assert_eq!(read(&service).await, StatusCode::OK, "the write was undone");
    trail.close().await;
    let events = sink.events();
    assert_eq!(fields(&events, "status"), [&json!(499), &json!(200)]);
    assert_eq!(events[0]["action"], "SET");
    assert_eq!(events[0]["operation"], "write");
    assert_eq!(events[0]["resource_name"], "/a");
}

#[tokio::test]
async fn a_panicking_request_is_audited() {
    let (service, _trail, sink) = audited(settings(OnAuditFailure::Refuse)).await;
    let body = r#"{"name":"/a","type":"password","parameters":{"fault":"panic"}}"#;
    let response = service.send("POST", "/api/v1/data", body).await;
    assert_eq!(response.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(!response.error().contains("canary"));
    assert!(response.headers.contains_key("x-request-id"));
    let events = sink.events();
    assert_eq!(fields(&events, "status"), [&json!(500)]);
    assert_eq!(events[0]["action"], "GENERATE");
}

#[tokio::test]
async fn lines_already_written_are_not_written_again() {
    let (service, trail, sink) = audited(settings(OnAuditFailure::Continue)).await;
    let set = |name: &str| json!({"name": name, "type": "value", "value": "v"});
    service.send_json("PUT", "/api/v1/data", &set("/a")).await;
    let line = sink.events()[0].to_string().len();
    sink.break_after(line + line / 2);
    let body = json!({"name": "/leaf", "type": "certificate", "parameters": {"ca": "/missing"}});
    service.send_json("POST", "/api/v1/data", &body).await;
    assert_eq!(sink.events().len(), 2, "only the complete line is added");
    sink.repair();
    trail.close().await;
    let events = sink.events();
    let mut names = fields(&events, "resource_name");
    names.sort_by_key(ToString::to_string);
    assert_eq!(names, ["/a", "/leaf", "/missing"]);
}

#[tokio::test]
async fn a_sink_that_times_out_counts_as_failing() {
    let (service, trail, sink) = audited(impatient(OnAuditFailure::Refuse)).await;
    sink.hold();
    assert_eq!(set(&service).await, StatusCode::INTERNAL_SERVER_ERROR);
    for _ in 0..3 {
        assert_eq!(set(&service).await, StatusCode::SERVICE_UNAVAILABLE);
    }
    sink.release();
    trail.close().await;
    assert_eq!(fields(&sink.events(), "status"), [&json!(200)]);
}

#[tokio::test]
async fn events_of_simultaneous_requests_share_a_write() {
    let (service, _trail, sink) = audited(settings(OnAuditFailure::Refuse)).await;
    sink.hold();
    let mut requests: Vec<_> = (0..20).map(|_| Box::pin(read(&service))).collect();
    for request in &mut requests {
        begin(request.as_mut()).await;
    }
    sink.release();
    for request in requests {
        assert_eq!(request.await, StatusCode::NOT_FOUND);
    }
    assert_eq!(sink.events().len(), 20);
    // The first may be written alone, before the others arrive.
    assert!(sink.appends() <= 2, "{}", sink.appends());
}

#[tokio::test]
async fn events_after_closing_are_counted_as_lost() {
    let (service, trail, sink) = audited(settings(OnAuditFailure::Continue)).await;
    trail.close().await;
    set(&service).await;
    assert!(sink.events().is_empty());
    assert_eq!(trail.events_lost(), 1);
}

#[tokio::test]
async fn events_beyond_the_queue_limit_are_lost_and_counted() {
    let (service, _, sink) = audited(settings(OnAuditFailure::Continue)).await;
    read(&service).await;
    let line_bytes = sink.events()[0].to_string().len() + 1;

    let (service, trail, sink) = audited(queue(2 * line_bytes, OnAuditFailure::Continue)).await;
    sink.break_after(0);
    for lost in [0, 0, 1, 2] {
        read(&service).await;
        assert_eq!(trail.events_lost(), lost);
    }
    sink.repair();
    trail.close().await;
    assert_eq!(sink.events().len(), 2);
}

#[tokio::test]
async fn a_request_waits_for_room_in_the_queue_or_is_refused() {
    let (service, trail, sink) = audited(queue(1, OnAuditFailure::Refuse)).await;
    for _ in 0..2 {
        assert_eq!(read(&service).await, StatusCode::NOT_FOUND);
    }
    assert_eq!(sink.events().len(), 2);
    sink.hold();
    let mut first = Box::pin(read(&service));
    begin(first.as_mut()).await;
    while sink.begun() < 3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(set(&service).await, StatusCode::SERVICE_UNAVAILABLE);
    assert!(
        trail.is_written(),
        "a full queue does not count as a failure"
    );
    let mut waiting = Box::pin(read(&service));
    begin(waiting.as_mut()).await;
    sink.release();
    for status in [first.await, waiting.await] {
        assert_eq!(status, StatusCode::NOT_FOUND, "the PUT was done");
    }
    assert_eq!(trail.events_lost(), 0);
}

#[tokio::test]
async fn no_event_of_a_started_request_is_lost_if_the_queue_is_full() {
    let (service, trail, sink) = audited(queue(1, OnAuditFailure::Refuse)).await;
    let storage = &service.storage;
    storage.stall(true);
    let mut change = Box::pin(set(&service));
    tokio::select! {
        _ = change.as_mut() => panic!("the request is complete"),
        () = storage.has_stalled.notified() => {}
    }
    sink.hold();
    let mut filling = Box::pin(service.get("/api/v1/data?name=/b"));
    begin(filling.as_mut()).await;
    drop(change);
    sink.release();
    filling.await;
    trail.close().await;
    let events = sink.events();
    assert_eq!(fields(&events, "status"), [&json!(404), &json!(499)]);
    assert_eq!(trail.events_lost(), 0);
}

#[tokio::test]
async fn a_long_target_is_logged_in_full_only_once() {
    let (service, _trail, sink) = audited(settings(OnAuditFailure::Refuse)).await;
    for _ in 0..3 {
        set(&service).await;
    }
    let address = |parameter: &str| {
        let parameters = vec![parameter; 60].join("&");
        format!("/api/v1/data?{parameters}&name=/a")
    };
    let read = service.get(&address("x")).await;
    assert_eq!(read.status, StatusCode::OK, "{}", read.text);
    let events = sink.events().split_off(3);
    let lengths: Vec<_> = fields(&events, "request")
        .into_iter()
        .map(|request| request.as_str().unwrap().len())
        .collect();
    let whole = address("not-shown").len();
    assert_eq!(lengths, [whole, 256 + "…".len(), 256 + "…".len()]);
}

#[tokio::test]
async fn with_continue_only_one_request_waits_for_a_stalled_sink() {
    let (service, trail, sink) = audited(impatient(OnAuditFailure::Continue)).await;
    sink.hold();
    read(&service).await;
    for _ in 0..3 {
        assert_eq!(at_once(read(&service)).await, StatusCode::NOT_FOUND);
    }
    sink.release();
    trail.close().await;
    assert_eq!(sink.events().len(), 4);
}

#[tokio::test]
async fn a_request_over_the_limit_is_audited_without_waiting() {
    let sink = MemorySink::default();
    let limits = RequestLimits {
        requests_max: 0,
        ..REQUEST_LIMITS
    };
    let on_failure = settings(OnAuditFailure::Refuse);
    let (service, trail) = Service::audited_within(limits, on_failure, sink.clone()).await;
    sink.hold();
    let status = at_once(read(&service)).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    sink.release();
    trail.close().await;
    let events = sink.events();
    assert_eq!(fields(&events, "status"), [503]);
    assert_eq!(events[0]["action"], "GET");
}

/// If this fails, the test hangs.
#[test]
fn a_stalled_sink_does_not_prevent_shutdown() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (service, trail, sink) = audited(impatient(OnAuditFailure::Refuse)).await;
        sink.hold();
        assert_eq!(read(&service).await, StatusCode::INTERNAL_SERVER_ERROR);
        trail.close().await;
    });
    drop(runtime);
}

/// Returns a trail without a service, and its sink.
fn trail(on_failure: OnAuditFailure) -> (AuditTrail, MemorySink) {
    let sink = MemorySink::default();
    let clock = Arc::new(FixedClock(AtomicI64::new(0)));
    let trail = AuditTrail::start(settings(on_failure), Box::new(sink.clone()), clock);
    (trail.unwrap(), sink)
}

/// Returns the status of each event, and the reason why the version was not deleted.
fn outcomes(sink: &MemorySink) -> Vec<(Value, Value)> {
    let outcomes = sink.events().into_iter().map(|mut event| {
        let reason = event["request_details"]["not_deleted"].take();
        (event["status"].take(), reason)
    });
    outcomes.collect()
}

#[tokio::test]
async fn a_failed_deletion_is_audited_with_the_reason() {
    let (trail, sink) = trail(OnAuditFailure::Refuse);
    let credential = credential();
    let deletion = deletion(&credential);
    trail.announce(&deletion).await.unwrap();
    trail.retract(&deletion, NotDeleted::Changed);
    trail.retract(&deletion, NotDeleted::Unconfirmed);
    trail.close().await;
    let changed = "the version is still needed or was already deleted";
    let unconfirmed = "the database did not confirm the deletion";
    let expected = [
        (json!(200), Value::Null),
        (json!(409), json!(changed)),
        (json!(503), json!(unconfirmed)),
    ];
    assert_eq!(outcomes(&sink), expected);
    let version = Value::String(VERSION_IDS[0].to_string());
    let events = sink.events();
    assert!(events.iter().all(|event| event["version_id"] == version));
}

#[tokio::test]
async fn a_late_audit_event_prevents_the_deletion() {
    for on_failure in [OnAuditFailure::Refuse, OnAuditFailure::Continue] {
        let (trail, sink) = trail(on_failure);
        let credential = credential();
        let deletion = deletion(&credential);
        sink.break_after(0);
        for _ in 0..3 {
            assert!(trail.announce(&deletion).await.is_err());
        }
        sink.repair();
        trail.announce(&deletion).await.unwrap();
        trail.close().await;
        let late = json!("the audit trail could not be written in time");
        let announced = (json!(200), Value::Null);
        let expected = [announced.clone(), (json!(503), late), announced];
        assert_eq!(outcomes(&sink), expected);
    }
}

#[tokio::test]
async fn a_dropped_announcement_is_corrected() {
    let (trail, sink) = trail(OnAuditFailure::Refuse);
    let credential = credential();
    let deletion = deletion(&credential);
    sink.hold();
    {
        let announcing = pin!(trail.announce(&deletion));
        begin(announcing).await;
    }
    sink.release();
    trail.close().await;
    assert_eq!(fields(&sink.events(), "status"), [200, 503]);
}

fn credential() -> ExceedingCredential {
    ExceedingCredential {
        id: Uuid::from_u128(1),
        name: CredentialName::parse("/a").unwrap(),
    }
}

fn deletion(credential: &ExceedingCredential) -> RetentionDeletion<'_> {
    RetentionDeletion {
        run_id: Uuid::from_u128(2),
        credential,
        policy_path: "/a",
        limits: RetentionLimits::new(NonZeroU32::new(1), None).unwrap(),
        version_ids: &VERSION_IDS,
    }
}

const VERSION_IDS: [Uuid; 1] = [Uuid::from_u128(7)];
