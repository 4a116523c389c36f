//! TLS handshakes that fail: among them those with client certificates that are not trusted, before there is any request.

use std::io;

use metrics::{counter, describe_counter};
use rustls::{CertificateError, OtherError};

/// Counts a handshake that failed.
pub(crate) fn handshake_failed(cause: &io::Error) {
    let cause = cause
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    count(cause.map_or("connection_lost", word_of));
}

/// Counts a handshake that took too long.
pub(crate) fn handshake_timed_out() {
    count("timed_out");
}

/// Tells the process's recorder what this measurement means.
pub(super) fn describe_metrics() {
    describe_counter!(
        HANDSHAKE_FAILURES,
        "TLS handshakes that failed, by reason; those that begin with client_certificate are of mutual TLS."
    );
}

fn count(reason: &'static str) {
    counter!(HANDSHAKE_FAILURES, "reason" => reason).increment(1);
}

fn word_of(cause: &rustls::Error) -> &'static str {
    match cause {
        rustls::Error::InvalidCertificate(cause) => word_of_certificate(cause),
        rustls::Error::AlertReceived(_) => "refused_by_client",
        rustls::Error::PeerIncompatible(_) => "incompatible",
        _ => "malformed",
    }
}

/// One word for what is wrong with a client certificate. The verifier hides from clients what is wrong with its validity.
fn word_of_certificate(cause: &CertificateError) -> &'static str {
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
    fn causes_are_told_apart() {
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
            assert_eq!(word_of(&cause), word);
        }
    }
}
