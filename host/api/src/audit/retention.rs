//! Audit events of deletions by retention.
//!
//! Such an event has no request: no method, path, source or peer. The request id is the id of the run. The event is written
//! before the version is deleted, so that no event is ever missing. If the version is not deleted after all, a second event with
//! another status reports it.

use async_trait::async_trait;
use axum::http::StatusCode;
use keywright_core::{
    permission::Operation,
    ports::{AuditTrailError, NotDeleted, RetentionDeletion, RetentionTrail},
};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    AuditTrail,
    event::{Event, push_line},
    writer::UnwrittenError,
};

#[async_trait]
impl RetentionTrail for AuditTrail {
    async fn announce(&self, deletion: &RetentionDeletion<'_>) -> Result<(), AuditTrailError> {
        self.probe().await?;
        let (lines, count) = self.lines_of(deletion, DELETED);
        let mut unwritten = Unwritten(Some((self, deletion)));
        self.write(ACTOR, lines, count).await?;
        unwritten.0 = None;
        Ok(())
    }

    fn retract(&self, deletion: &RetentionDeletion<'_>, reason: NotDeleted) {
        let outcome = match reason {
            NotDeleted::Changed => CHANGED,
            NotDeleted::Unconfirmed => UNCONFIRMED,
        };
        let (lines, count) = self.lines_of(deletion, outcome);
        self.write_later(ACTOR, &lines, count);
    }
}

impl AuditTrail {
    fn lines_of(
        &self,
        deletion: &RetentionDeletion<'_>,
        (status, not_deleted): Outcome,
    ) -> (Vec<u8>, u64) {
        let time = self.clock.now();
        let details = details_of(deletion, not_deleted);
        let event = |version_id: &Uuid| Event {
            time: time.timestamp_millis(),
            request_id: Some(deletion.run_id),
            actor: ACTOR,
            subject: SUBJECT,
            authentication: AUTHENTICATION,
            method: None,
            request: None,
            status: status.as_u16(),
            source: None,
            peer: None,
            destination: &self.settings.host,
            action: ACTION,
            operation: Some(Operation::Delete.as_str()),
            resource_name: Some(deletion.credential.name.as_str()),
            resource_id: Some(deletion.credential.id),
            version_id: Some(*version_id),
            request_details: Some(&details),
        };
        let mut lines = Vec::new();
        for version_id in deletion.version_ids {
            push_line(&mut lines, &event(version_id), self.settings.format);
        }
        let count = u64::try_from(deletion.version_ids.len()).unwrap_or(u64::MAX);
        (lines, count)
    }
}

/// Queued events. They may still be written after the announcement failed or its future was dropped, so this drop corrects them.
struct Unwritten<'a>(Option<(&'a AuditTrail, &'a RetentionDeletion<'a>)>);

impl Drop for Unwritten<'_> {
    fn drop(&mut self) {
        if let Some((trail, deletion)) = self.0 {
            let (lines, count) = trail.lines_of(deletion, WRITTEN_TOO_LATE);
            trail.write_later(ACTOR, &lines, count);
        }
    }
}

impl From<UnwrittenError> for AuditTrailError {
    fn from(_: UnwrittenError) -> Self {
        Self
    }
}

fn details_of(deletion: &RetentionDeletion<'_>, not_deleted: Option<&str>) -> Value {
    let mut details = Map::new();
    details.insert("policy".to_owned(), Value::from(deletion.policy_path));
    let limits = deletion.limits;
    for (name, limit) in [
        ("versions_max", limits.versions_max()),
        ("age_days_max", limits.age_days_max()),
    ] {
        details.extend(limit.map(|limit| (name.to_owned(), Value::from(limit))));
    }
    details.extend(not_deleted.map(|reason| ("not_deleted".to_owned(), Value::from(reason))));
    Value::Object(details)
}

/// The HTTP status of an event, and the reason if the version was not deleted.
type Outcome = (StatusCode, Option<&'static str>);

const DELETED: Outcome = (StatusCode::OK, None);
const CHANGED: Outcome = (
    StatusCode::CONFLICT,
    Some("the version is still needed or was already deleted"),
);
const UNCONFIRMED: Outcome = (
    StatusCode::SERVICE_UNAVAILABLE,
    Some("the database did not confirm the deletion"),
);
const WRITTEN_TOO_LATE: Outcome = (
    StatusCode::SERVICE_UNAVAILABLE,
    Some("the audit trail could not be written in time"),
);

/// The actor in the trail. No caller can have it: the actors of callers have other prefixes.
const ACTOR: &str = "keywright:retention";
const SUBJECT: &str = "retention";

/// The method of authentication in the trail: the server itself deletes.
const AUTHENTICATION: &str = "server";

const ACTION: &str = "DELETE_BY_RETENTION";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_caller_can_have_the_actor_of_retention() {
        let actor = keywright_core::permission::Actor::parse(ACTOR);
        assert!(!actor.is_ok_and(|actor| actor.can_log_in()));
    }
}
