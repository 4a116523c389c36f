//! Metrics of failed TLS handshakes, including those with untrusted client certificates.

use std::io;

use metrics::{counter, describe_counter};
use rustls::{CertificateError, OtherError};

/// Counts a handshake that failed or timed out.
pub(crate) fn handshake_failed(cause: &io::Error) {
    if cause.kind() == io::ErrorKind::TimedOut {
        return count("timed_out");
    }
    let cause = cause
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    count(cause.map_or("connection_lost", reason_of));
}

/// Registers the description of this metric.
pub(super) fn describe_metrics() {
    describe_counter!(
        HANDSHAKE_FAILURES,
        "Failed TLS handshakes by reason; reasons that start with client_certificate are about mutual TLS."
    );
}

fn count(reason: &'static str) {
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

/// Returns the reason for an invalid client certificate. The verifier hides details about its validity from clients.
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

const HANDSHAKE_FAILURES: &str = "keywright_tls_handshake_failures_total";

#[cfg(test)]
mod tests {
    use rustls::{AlertDescription, InvalidMessage};

    use super::*;

    #[test]
    fn causes_have_different_reasons() {
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
