//! The facts of client certificates and of their CAs.

use chrono::{DateTime, Utc};

/// The facts of a client certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCertificateFacts {
    /// The Organizational Units of its subject in order, including those of multi-valued names. Units that are not encoded
    /// in UTF-8 or a subset of it are omitted.
    pub organization_units: Vec<String>,
    /// Whether its extended key usage names client authentication (RFC 5280, section 4.2.1.12). A missing extension or the
    /// purpose `anyExtendedKeyUsage` does not count.
    pub is_for_client_authentication: bool,
    /// The last second of its validity. A connection may stay open longer.
    pub expires_at: DateTime<Utc>,
}

/// The facts of the CA certificate that issues client certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAuthorityFacts {
    /// Whether it is a CA certificate (RFC 5280, section 4.2.1.9).
    pub is_certificate_authority: bool,
    /// The first second of its validity.
    pub valid_from: DateTime<Utc>,
    /// The last second of its validity.
    pub expires_at: DateTime<Utc>,
}

impl ClientAuthorityFacts {
    /// Returns whether the certificate is valid at this time.
    #[must_use]
    pub fn is_valid_at(&self, time: DateTime<Utc>) -> bool {
        let second = time.timestamp();
        self.valid_from.timestamp() <= second && second <= self.expires_at.timestamp()
    }
}
