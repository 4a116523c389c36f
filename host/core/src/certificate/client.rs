//! What a certificate says of the client that presents it.

use chrono::{DateTime, Utc};

/// What a certificate says of the client that presents it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCertificateFacts {
    /// The Organization Units of its subject, in their order, those of multi-valued names included. One that is not written
    /// in UTF-8 or a part of it is left out.
    pub organization_units: Vec<String>,
    /// Whether its extended key usage names client authentication (RFC 5280, section 4.2.1.12). One that is absent, or that
    /// names any purpose, does not.
    pub is_for_client_authentication: bool,
    /// The last second in which it is valid. A connection may be open for longer.
    pub expires_at: DateTime<Utc>,
}

/// What the certificate of an authority says that clients' certificates come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAuthorityFacts {
    /// Whether it is an authority's at all (RFC 5280, section 4.2.1.9).
    pub is_certificate_authority: bool,
    /// The first second in which it is valid.
    pub valid_from: DateTime<Utc>,
    /// The last second in which it is valid.
    pub expires_at: DateTime<Utc>,
}

impl ClientAuthorityFacts {
    /// Whether it is valid at this time.
    #[must_use]
    pub fn is_valid_at(&self, time: DateTime<Utc>) -> bool {
        let second = time.timestamp();
        self.valid_from.timestamp() <= second && second <= self.expires_at.timestamp()
    }
}
