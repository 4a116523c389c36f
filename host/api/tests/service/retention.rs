//! Audit events for versions that retention does not delete after all.

use std::{
    num::NonZeroU32,
    sync::{Arc, atomic::AtomicI64},
    time::Duration,
};

use keywright_api::audit::{AuditFormat, AuditSettings, AuditTrail, OnAuditFailure};
use keywright_core::{
    credential::CredentialName,
    ports::{ExceedingCredential, NotDeleted, RetentionDeletion, RetentionTrail},
    retention::RetentionLimits,
};
use serde_json::Value;
use uuid::Uuid;

use crate::{fakes::StandingClock, kept_sink::KeptSink};

/// A trail with this write timeout, and its sink.
fn trail(on_failure: OnAuditFailure) -> (AuditTrail, KeptSink) {
    let settings = AuditSettings {
        format: AuditFormat::Json,
        on_failure,
        host: "vault-1".to_owned(),
        trusted_proxies: Vec::new(),
        write_time_max: Duration::from_secs(10),
        unwritten_bytes_max: AuditSettings::UNWRITTEN_BYTES_MAX,
    };
    let sink = KeptSink::default();
    let clock = Arc::new(StandingClock(AtomicI64::new(0)));
    let trail = AuditTrail::start(settings, Box::new(sink.clone()), clock);
    (trail.unwrap(), sink)
}

fn outcomes(sink: &KeptSink) -> Vec<(u64, Option<String>)> {
    let outcomes = sink.events().into_iter().map(|event| {
        let reason = event["request_details"]["not_deleted"].as_str();
        (event["status"].as_u64().unwrap(), reason.map(str::to_owned))
    });
    outcomes.collect()
}

#[tokio::test]
async fn an_undone_deletion_has_an_event_with_the_reason() {
    let (trail, sink) = trail(OnAuditFailure::Refuse);
    let credential = credential();
    let version_ids = [Uuid::from_u128(7)];
    let deletion = deletion(&credential, &version_ids);
    trail.announce(&deletion).await.unwrap();
    trail.take_back(&deletion, NotDeleted::Changed);
    trail.take_back(&deletion, NotDeleted::Unconfirmed);
    trail.close().await;
    let expected = [
        (200, None),
        (
            409,
            Some(String::from(
                "the version is still needed or was already deleted",
            )),
        ),
        (503, Some(String::from("the database did not confirm it"))),
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
