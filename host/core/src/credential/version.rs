//! One immutable stored value, as the database has it and as a caller gets it.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    Secret,
    certificate::CertificateFacts,
    credential::{CredentialName, CredentialType, Metadata},
    ports::Envelope,
};

/// A credential version as callers get it: decrypted.
#[derive(Clone, Debug)]
pub struct CredentialVersion {
    /// Identifies this version.
    pub id: Uuid,
    /// The credential's name, in the casing of its first writer.
    pub name: CredentialName,
    /// The credential's type.
    pub credential_type: CredentialType,
    /// When the version was made. For people: order is by sequence.
    pub created_at: DateTime<Utc>,
    /// What the caller keeps beside it.
    pub metadata: Option<Metadata>,
    /// The value, as JSON text.
    pub value: Secret,
    /// What the host knows of it besides, when it is a certificate.
    pub certificate: Option<CertificateMarks>,
}

/// What stands beside a certificate's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateMarks {
    /// Whether the version carries the transitional flag.
    pub is_transitional: bool,
    /// Whether the service made it; unknown for versions that were added as they are.
    pub is_generated: Option<bool>,
    /// What the certificate says of itself; absent when the version has none.
    pub facts: Option<CertificateFacts>,
}

/// What a generate or a regenerate answers.
#[derive(Clone, Debug)]
pub struct Written {
    /// The version that is now in use: the new one, or the one that was kept.
    pub version: CredentialVersion,
    /// How it was issued, when it is a certificate.
    pub issuance: Option<Issuance>,
}

/// How a certificate was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issuance {
    /// Whether a server-wide minimum raised the duration.
    pub is_duration_overridden: bool,
    /// The duration that was used, in days; 0 when nothing was issued.
    pub duration_used_days: u32,
    /// The length of the certificate's key, in bits; 0 when it is not known.
    pub key_length_bits: u32,
}

/// A version as the database has it: encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVersion {
    /// Identifies this version.
    pub id: Uuid,
    /// Its place in the order of all versions of all credentials: a newer one has a greater number.
    pub sequence: i64,
    /// Identifies the credential whose version it is.
    pub credential_id: Uuid,
    /// The credential's name, in the casing of its first writer.
    pub name: CredentialName,
    /// The credential's type.
    pub credential_type: CredentialType,
    /// When the version was made.
    pub created_at: DateTime<Utc>,
    /// Whether the version carries the transitional flag.
    pub is_transitional: bool,
    /// Whether the service made it; unknown for versions that were added as they are.
    pub is_generated: Option<bool>,
    /// The facts of the certificate in its value; for another type, of the certificate that its issuer signed for it.
    pub certificate: Option<CertificateFacts>,
    /// The name of the credential whose certificate signed it, as far as that is known. A self-signed one names itself. For
    /// another type than certificate, the name of its issuer.
    pub signed_by: Option<CredentialName>,
    /// The version that signed it, when another did and that is known.
    pub issuer: Option<IssuerVersion>,
    /// Which plugin made it; absent when it was set.
    pub provenance: Option<PluginIdentity>,
    /// Value, parameters and metadata, encrypted.
    pub envelope: Envelope,
}

impl StoredVersion {
    /// Whether it may sign others: a certificate may, if its basic constraints say so.
    pub(crate) fn is_authority(&self) -> bool {
        is_authority(&self.credential_type, self.certificate.as_ref())
    }

    /// What it is to those that it signs.
    pub(super) fn as_issuer(&self) -> Option<IssuerVersion> {
        self.certificate.as_ref().map(|facts| IssuerVersion {
            version_id: Some(self.id),
            expires_at: facts.expires_at,
        })
    }
}

/// Whether a version with these facts may sign others.
pub(crate) fn is_authority(
    credential_type: &CredentialType,
    facts: Option<&CertificateFacts>,
) -> bool {
    credential_type.is_certificate() && facts.is_some_and(|facts| facts.is_certificate_authority)
}

/// What signed a certificate, as it was when the certificate's version was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IssuerVersion {
    /// The authority's version, where it was a stored one. It need not exist any more.
    pub version_id: Option<Uuid>,
    /// The end of the validity of its certificate.
    pub expires_at: DateTime<Utc>,
}

/// Which plugin, exactly, made a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginIdentity {
    /// The name under which the operator configured it.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// SHA-256 of its component, in lower-case hexadecimal.
    pub digest: String,
    /// The version of the WIT package that it was built against.
    pub interface_version: String,
}
