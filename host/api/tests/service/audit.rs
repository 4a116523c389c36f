//! The audit trail with failing or stalled sinks, with unfinished requests, and with deletions by retention.

use std::{
    future::{Future, poll_fn},
    num::NonZeroU32,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
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
    storage
        .is_stalled_after_append
        .store(true, Ordering::SeqCst);
    tokio::select! {
        _ = service.send("PUT", "/api/v1/data", VALUE) => panic!("the request is complete"),
        () = storage.has_stalled.notified() => {}
    }
    storage
        .is_stalled_after_append
        .store(false, Ordering::SeqCst);
    assert_eq!(
        service.get("/api/v1/data?name=/a").await.status,
        StatusCode::OK,
        "the write was undone"
    );
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
    let (service, trail, sink) = audited(AuditSettings {
        write_time_max: Duration::from_millis(20),
        ..settings(OnAuditFailure::Refuse)
    })
    .await;
    sink.hold();
    let withheld = service.send("PUT", "/api/v1/data", VALUE).await;
    assert_eq!(withheld.status, StatusCode::INTERNAL_SERVER_ERROR);
    for _ in 0..3 {
        let refused = service.send("PUT", "/api/v1/data", VALUE).await;
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    }
    sink.release();
    trail.close().await;
    assert_eq!(fields(&sink.events(), "status"), [&json!(200)]);
}

#[tokio::test]
async fn events_of_simultaneous_requests_share_a_write() {
    let (service, _trail, sink) = audited(settings(OnAuditFailure::Refuse)).await;
    sink.hold();
    let mut requests: Vec<_> = (0..20)
        .map(|_| Box::pin(service.get("/api/v1/data?name=/a")))
        .collect();
    for request in &mut requests {
        begin(request.as_mut()).await;
    }
    sink.release();
    for request in requests {
        assert_eq!(request.await.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(sink.events().len(), 20);
    // The first may be written alone, before the others arrive.
    assert!(sink.appends() <= 2, "{}", sink.appends());
}

#[tokio::test]
async fn events_after_closing_are_counted_as_lost() {
    let (service, trail, sink) = audited(settings(OnAuditFailure::Continue)).await;
    trail.close().await;
    service.send("PUT", "/api/v1/data", VALUE).await;
    assert!(sink.events().is_empty());
    assert_eq!(trail.events_lost(), 1);
}

#[tokio::test]
async fn events_beyond_the_queue_limit_are_lost_and_counted() {
    let (service, _, sink) = audited(settings(OnAuditFailure::Continue)).await;
    service.get("/api/v1/data?name=/a").await;
    let line_bytes = sink.events()[0].to_string().len() + 1;

    let (service, trail, sink) = audited(AuditSettings {
        unwritten_bytes_max: 2 * line_bytes,
        ..settings(OnAuditFailure::Continue)
    })
    .await;
    sink.break_after(0);
    for lost in [0, 0, 1, 2] {
        service.get("/api/v1/data?name=/a").await;
        assert_eq!(trail.events_lost(), lost);
    }
    sink.repair();
    trail.close().await;
    assert_eq!(sink.events().len(), 2);
}

#[tokio::test]
async fn a_request_waits_for_room_in_the_queue_or_is_refused() {
    let (service, trail, sink) = audited(AuditSettings {
        unwritten_bytes_max: 1,
        ..settings(OnAuditFailure::Refuse)
    })
    .await;
    for _ in 0..2 {
        let response = service.get("/api/v1/data?name=/a").await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{}", response.text);
    }
    assert_eq!(sink.events().len(), 2);
    sink.hold();
    let mut first = Box::pin(service.get("/api/v1/data?name=/a"));
    begin(first.as_mut()).await;
    let refused = service.send("PUT", "/api/v1/data", VALUE).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(
        trail.is_written(),
        "a full queue does not count as a failure"
    );
    let mut waiting = Box::pin(service.get("/api/v1/data?name=/a"));
    begin(waiting.as_mut()).await;
    sink.release();
    for read in [first, waiting] {
        assert_eq!(read.await.status, StatusCode::NOT_FOUND, "the PUT was done");
    }
    assert_eq!(trail.events_lost(), 0);
}

#[tokio::test]
async fn no_event_of_a_started_request_is_lost_if_the_queue_is_full() {
    let (service, trail, sink) = audited(AuditSettings {
        unwritten_bytes_max: 1,
        ..settings(OnAuditFailure::Refuse)
    })
    .await;
    let storage = &service.storage;
    storage
        .is_stalled_after_append
        .store(true, Ordering::SeqCst);
    let mut change = Box::pin(service.send("PUT", "/api/v1/data", VALUE));
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
        service.send("PUT", "/api/v1/data", VALUE).await;
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
    let (service, trail, sink) = audited(AuditSettings {
        write_time_max: Duration::from_millis(20),
        ..settings(OnAuditFailure::Continue)
    })
    .await;
    sink.hold();
    service.get("/api/v1/data?name=/a").await;
    for _ in 0..3 {
        let response = at_once(service.get("/api/v1/data?name=/a")).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND);
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
    let refused = at_once(service.get("/api/v1/data?name=/a")).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
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
        let (service, trail, sink) = audited(AuditSettings {
            write_time_max: Duration::from_millis(20),
            ..settings(OnAuditFailure::Refuse)
        })
        .await;
        sink.hold();
        let withheld = service.get("/api/v1/data?name=/a").await;
        assert_eq!(withheld.status, StatusCode::INTERNAL_SERVER_ERROR);
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

fn outcomes(sink: &MemorySink) -> Vec<(u64, Option<String>)> {
    let outcomes = sink.events().into_iter().map(|event| {
        let reason = event["request_details"]["not_deleted"].as_str();
        (event["status"].as_u64().unwrap(), reason.map(str::to_owned))
    });
    outcomes.collect()
}

#[tokio::test]
async fn a_failed_deletion_is_audited_with_the_reason() {
    let (trail, sink) = trail(OnAuditFailure::Refuse);
    let credential = credential();
    let version_ids = [Uuid::from_u128(7)];
    let deletion = deletion(&credential, &version_ids);
    trail.announce(&deletion).await.unwrap();
    trail.retract(&deletion, NotDeleted::Changed);
    trail.retract(&deletion, NotDeleted::Unconfirmed);
    trail.close().await;
    let expected = [
        (200, None),
        (
            409,
            Some(String::from(
                "the version is still needed or was already deleted",
            )),
        ),
        (
            503,
            Some(String::from("the database did not confirm the deletion")),
        ),
    ];
    assert_eq!(outcomes(&sink), expected);
    let version = Value::String(version_ids[0].to_string());
    assert!(
        sink.events()
            .iter()
            .all(|event| event["version_id"] == version)
    );
}

#[tokio::test]
async fn a_late_audit_event_prevents_the_deletion() {
    for on_failure in [OnAuditFailure::Refuse, OnAuditFailure::Continue] {
        let (trail, sink) = trail(on_failure);
        let credential = credential();
        let version_ids = [Uuid::from_u128(7)];
        let deletion = deletion(&credential, &version_ids);
        sink.break_after(0);
        for _ in 0..3 {
            assert!(trail.announce(&deletion).await.is_err());
        }
        sink.repair();
        trail.announce(&deletion).await.unwrap();
        trail.close().await;
        let late = Some(String::from("the audit trail could not be written in time"));
        assert_eq!(outcomes(&sink), [(200, None), (503, late), (200, None)]);
    }
}

#[tokio::test]
async fn a_dropped_announcement_is_corrected() {
    let (trail, sink) = trail(OnAuditFailure::Refuse);
    let credential = credential();
    let version_ids = [Uuid::from_u128(7)];
    let deletion = deletion(&credential, &version_ids);
    sink.hold();
    {
        let announcing = pin!(trail.announce(&deletion));
        begin(announcing).await;
    }
    sink.release();
    trail.close().await;
    let statuses: Vec<_> = outcomes(&sink)
        .into_iter()
        .map(|(status, _)| status)
        .collect();
    assert_eq!(statuses, [200, 503]);
}

fn credential() -> ExceedingCredential {
    ExceedingCredential {
        id: Uuid::from_u128(1),
        name: CredentialName::parse("/a").unwrap(),
    }
}

fn deletion<'a>(
    credential: &'a ExceedingCredential,
    version_ids: &'a [Uuid],
) -> RetentionDeletion<'a> {
    RetentionDeletion {
        run_id: Uuid::from_u128(2),
        credential,
        policy_path: "/a",
        limits: RetentionLimits::new(NonZeroU32::new(1), None).unwrap(),
        version_ids,
    }
}
