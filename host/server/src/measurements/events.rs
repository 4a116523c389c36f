//! Metrics of TLS handshakes, retention and key rotation, recorded where the events happen.

use std::io;

use chrono::{DateTime, Utc};
use metrics::{counter, gauge};
use rustls::{CertificateError, OtherError};
use strum::IntoStaticStr;

/// Counts a handshake that failed or timed out.
pub(crate) fn handshake_failed(cause: &io::Error) {
    if cause.kind() == io::ErrorKind::TimedOut {
        return count_handshake_failure("timed_out");
    }
    let cause = cause
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    count_handshake_failure(cause.map_or("connection_lost", reason_of));
}

fn count_handshake_failure(reason: &'static str) {
    counter!(HANDSHAKE_FAILURES, "reason" => reason).increment(1);
}

fn reason_of(cause: &rustls::Error) -> &'static str {
    match cause {
        rustls::Error::InvalidCertificate(cause) => reason_of_certificate(cause),
        rustls::Error::AlertReceived(_) => "refused_by_client",
        rustls::Error::PeerIncompatible(_) => "incompatible",
        _ => "malformed",
    }
}

/// Returns the reason for an invalid client certificate. The verifier hides the details from clients in
/// [`OtherError`].
fn reason_of_certificate(cause: &CertificateError) -> &'static str {
    match cause {
        CertificateError::UnknownIssuer => "client_certificate_issuer_unknown",
        CertificateError::Other(OtherError(hidden)) => match hidden.downcast_ref() {
            Some(webpki::Error::CertExpired { .. }) => "client_certificate_expired",
            Some(webpki::Error::CertNotValidYet { .. }) => "client_certificate_not_yet_valid",
            _ => "client_certificate_invalid",
        },
        _ => "client_certificate_invalid",
    }
}

/// The outcome of a retention run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum RetentionOutcome {
    Completed,
    /// The search for the versions of a credential failed.
    Incomplete,
    /// The database or the audit trail failed.
    Failed,
    /// The server was shut down, another server has taken over, or read-only mode is on.
    Stopped,
}

pub(crate) fn retention_versions_deleted(count: u64) {
    counter!(VERSIONS_DELETED).increment(count);
}

/// Counts a run that ended at `now`.
pub(crate) fn retention_run(outcome: RetentionOutcome, now: DateTime<Utc>) {
    counter!(RETENTION_RUNS, "outcome" => <&str>::from(outcome)).increment(1);
    if outcome == RetentionOutcome::Completed {
        let seconds = u64::try_from(now.timestamp()).unwrap_or_default();
        gauge!(RETENTION_LAST_RUN).set(gauge_value(seconds));
    }
}

/// Records whether retention trusts the clock.
pub(crate) fn retention_clock_checked(is_trusted: bool) {
    gauge!(RETENTION_CLOCK_TRUSTED).set(if is_trusted { 1.0 } else { 0.0 });
}

/// Counts the versions of a batch that were rotated, or failed for the first time.
pub(crate) fn rotation_batch_done(rotated: u64, failed: u64) {
    counter!(ROTATION_VERSIONS, "outcome" => "rotated").increment(rotated);
    counter!(ROTATION_VERSIONS, "outcome" => "failed").increment(failed);
}

/// Sets the number of versions that this server has left to rotate.
pub(crate) fn rotation_versions_remain(count: u64) {
    gauge!(ROTATION_VERSIONS_REMAINING).set(gauge_value(count));
}

/// Records the outcome of a reload at SIGHUP. The part is `tls` or `plugins`.
pub(crate) fn reloaded(part: &'static str, has_succeeded: bool) {
    gauge!(RELOAD_SUCCEEDED, "part" => part).set(if has_succeeded { 1.0 } else { 0.0 });
}

/// Converts a number to a gauge value, at most `u32::MAX`.
pub(super) fn gauge_value(number: impl TryInto<u32>) -> f64 {
    f64::from(number.try_into().unwrap_or(u32::MAX))
}

/// Registers the descriptions of these metrics, and the initial values of rotation and reloads.
pub(super) fn describe_metrics() {
    register_descriptions();
    for outcome in ["rotated", "failed"] {
        counter!(ROTATION_VERSIONS, "outcome" => outcome).increment(0);
    }
    gauge!(ROTATION_VERSIONS_REMAINING).set(0);
    for part in ["tls", "plugins"] {
        reloaded(part, true);
    }
}

metrics! {
    describe_counter HANDSHAKE_FAILURES = "keywright_tls_handshake_failures_total",
        "Failed TLS handshakes by reason; reasons that start with client_certificate are about mutual TLS.";
    describe_counter VERSIONS_DELETED = "keywright_retention_versions_deleted_total",
        "Credential versions that this server deleted according to retention policies.";
    describe_counter RETENTION_RUNS = "keywright_retention_runs_total",
        "Retention runs on this server, by outcome.";
    describe_gauge RETENTION_CLOCK_TRUSTED = "keywright_retention_clock_trusted",
        "Whether retention trusts the clock: 0 while nothing is deleted by age because the clock has jumped.";
    describe_gauge RETENTION_LAST_RUN = "keywright_retention_last_run_timestamp_seconds",
        "Unix time at which this server last completed a retention run. If several servers share a database, use the largest value.";
    describe_gauge RELOAD_SUCCEEDED = "keywright_reload_succeeded",
        "Whether the last reload succeeded: 0 while the server uses the previous TLS files or plugins.";
    describe_counter ROTATION_VERSIONS = "keywright_key_rotation_versions_total",
        "Credential versions that this server tried to re-encrypt with the active key, by outcome.";
    describe_gauge ROTATION_VERSIONS_REMAINING = "keywright_key_rotation_versions_remaining",
        "Credential versions that this server has left to re-encrypt with the active key, while rotating.";
}

#[cfg(test)]
mod tests {
    use rustls::{AlertDescription, InvalidMessage};

    use super::*;

    #[test]
    fn each_cause_of_a_failed_handshake_has_its_reason() {
        for (cause, word) in [
            (
                rustls::Error::AlertReceived(AlertDescription::UnknownCA),
                "refused_by_client",
            ),
            (
                rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType),
                "malformed",
            ),
            (
                rustls::Error::InvalidCertificate(CertificateError::BadSignature),
                "client_certificate_invalid",
            ),
        ] {
            assert_eq!(reason_of(&cause), word);
        }
    }
}
