//! TLS handshakes that fail: among them those with client certificates that are not trusted, before there is any request.

use std::io;

use metrics::{counter, describe_counter};
use rustls::CertificateError;

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
        rustls::Error::InvalidCertificate(cause) => match cause {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "client_certificate_expired"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "client_certificate_not_yet_valid"
            }
            CertificateError::UnknownIssuer => "client_certificate_issuer_unknown",
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                "client_certificate_purpose"
            }
            _ => "client_certificate_invalid",
        },
        rustls::Error::NoCertificatesPresented => "client_certificate_absent",
        rustls::Error::AlertReceived(_) => "refused_by_client",
        rustls::Error::PeerIncompatible(_) => "incompatible",
        _ => "malformed",
    }
}

const HANDSHAKE_FAILURES: &str = "keywright_tls_handshake_failures_total";

#[cfg(test)]
mod tests {
    use rustls::{AlertDescription, InvalidMessage};

    use super::*;

    #[test]
    fn what_is_wrong_with_a_client_certificate_has_a_word_of_its_own() {
        for (cause, word) in [
            (CertificateError::Expired, "client_certificate_expired"),
            (
                CertificateError::NotValidYet,
                "client_certificate_not_yet_valid",
            ),
            (
                CertificateError::UnknownIssuer,
                "client_certificate_issuer_unknown",
            ),
            (
                CertificateError::InvalidPurpose,
                "client_certificate_purpose",
            ),
            (CertificateError::BadSignature, "client_certificate_invalid"),
        ] {
            assert_eq!(word_of(&rustls::Error::InvalidCertificate(cause)), word);
        }
    }

    #[test]
    fn other_causes_are_told_apart() {
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
                rustls::Error::NoCertificatesPresented,
                "client_certificate_absent",
            ),
        ] {
            assert_eq!(word_of(&cause), word);
        }
    }
}
