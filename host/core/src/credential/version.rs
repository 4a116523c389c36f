//! Versions as they are stored, with their attributes, metadata and plugin.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{
    Secret,
    certificate::CertificateFacts,
    credential::{CredentialName, CredentialType},
    ports::Envelope,
};

/// The attributes of a version that are stored unencrypted. Only the transitional flag changes later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionAttributes {
    /// Whether the version has the transitional flag.
    pub is_transitional: bool,
    /// Whether the server generated it; `None` (unknown) for versions that a caller added by the certificate's id.
    pub is_generated: Option<bool>,
    /// The facts of the certificate in its value; for another type, of the certificate that its issuer signed or that the
    /// plugin's value schema names.
    pub certificate: Option<CertificateFacts>,
    /// The name of the credential that signed it, if known. A self-signed certificate names itself. For types other than
    /// certificate, the name of its issuer.
    pub signed_by: Option<CredentialName>,
    /// The issuer; `None` if the version is self-signed or its issuer is unknown.
    pub issuer: Option<IssuerVersion>,
    /// The lifetime that the plugin returned for the value. Empty if there is a certificate.
    pub lifetime: Lifetime,
    /// The plugin that generated it; `None` if it was set without provenance. The claim of a caller if `is_generated` is not
    /// `Some(true)`.
    pub provenance: Option<PluginIdentity>,
}

impl VersionAttributes {
    /// Returns the time from which the value should not be used any more: when it should be rotated, or else its expiry.
    pub fn due_at(&self) -> Option<DateTime<Utc>> {
        let Lifetime {
            expires_at,
            rotate_at,
        } = self.lifetime;
        let certificate = self.certificate.as_ref().map(|facts| facts.expires_at);
        rotate_at.or(expires_at).or(certificate)
    }
}

/// When a value expires and when it should be rotated, according to its plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// The time from which it must not be used; `None` if it does not expire.
    pub expires_at: Option<DateTime<Utc>>,
    /// The time from which it should be replaced, not after its expiry; `None` if it need not be replaced before.
    pub rotate_at: Option<DateTime<Utc>>,
}

/// An encrypted version, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredVersion {
    /// The id of the version.
    pub id: Uuid,
    /// Its position in the order of all versions of all credentials. Newer versions have greater numbers.
    pub sequence: i64,
    /// The id of the credential.
    pub credential_id: Uuid,
    /// The credential's name, with the casing of its first version.
    pub name: CredentialName,
    /// The credential's type.
    pub credential_type: CredentialType,
    /// The time of its creation.
    pub created_at: DateTime<Utc>,
    /// Its unencrypted attributes.
    pub attributes: VersionAttributes,
    /// Value, parameters and metadata, encrypted.
    pub envelope: Envelope,
}

impl StoredVersion {
    /// Returns whether it is a CA certificate according to its basic constraints.
    pub(super) fn is_authority(&self) -> bool {
        let facts = self.attributes.certificate.as_ref();
        self.credential_type.is_certificate()
            && facts.is_some_and(|facts| facts.is_certificate_authority)
    }

    pub(super) fn as_issuer(&self) -> Option<IssuerVersion> {
        let facts = self.attributes.certificate.as_ref();
        facts.map(|facts| IssuerVersion {
            version_id: Some(self.id),
            expires_at: facts.expires_at,
        })
    }
}

/// The issuer of a certificate at the time when the certificate's version was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IssuerVersion {
    /// The CA version, if it was stored. It may have been deleted.
    pub version_id: Option<Uuid>,
    /// The end of the CA certificate's validity.
    pub expires_at: DateTime<Utc>,
}

/// The exact identity of the plugin that generated a value. An imported identity is a digest; its other fields are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginIdentity {
    /// Its configured name.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// SHA-256 of its component, in lower-case hexadecimal.
    pub digest: String,
    /// The version of the WIT package that it was built against.
    pub interface_version: String,
}

impl PluginIdentity {
    /// Returns the identity of a plugin of which only the digest is known.
    pub(super) fn of_digest(digest: PluginDigest) -> Self {
        Self {
            name: String::new(),
            version: String::new(),
            digest: digest.0,
            interface_version: String::new(),
        }
    }
}

/// The maximum length of metadata, in characters of JSON text.
pub const METADATA_CHARACTERS_MAX: usize = 7_000;

/// The metadata of one version: JSON text within the limit.
#[derive(Clone, Debug)]
pub struct Metadata(Secret);

impl Metadata {
    /// Wraps a caller's metadata, JSON text without insignificant whitespace. It is stored as written, so that numbers keep
    /// all their digits.
    pub fn parse(json: Secret) -> Result<Self, MetadataError> {
        if json.expose().chars().count() > METADATA_CHARACTERS_MAX {
            return Err(MetadataError);
        }
        Ok(Self(json))
    }

    pub(crate) fn from_stored(text: Secret) -> Self {
        Self(text)
    }

    /// Returns the metadata as JSON text.
    pub fn json(&self) -> &Secret {
        &self.0
    }
}

/// Metadata longer than [`METADATA_CHARACTERS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("metadata must have at most {METADATA_CHARACTERS_MAX} characters")]
pub struct MetadataError;

/// SHA-256 of a plugin's component, in lower-case hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginDigest(String);

/// A malformed digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest must be {EXPECTED}")]
pub struct DigestError;

impl PluginDigest {
    /// Parses 64 hexadecimal digits in any case, with or without the prefix `sha256:`.
    pub fn parse(text: &str) -> Result<Self, DigestError> {
        let digits = text.strip_prefix(PREFIX).unwrap_or(text);
        if digits.len() != DIGITS || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(DigestError);
        }
        Ok(Self(digits.to_ascii_lowercase()))
    }

    /// Returns the digits in lower case, their stored form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl DigestError {
    /// The expected form, for error messages.
    pub const EXPECTED: &str = EXPECTED;
}

const EXPECTED: &str = "`sha256:` followed by 64 hexadecimal digits";
const PREFIX: &str = "sha256:";
const DIGITS: usize = 64;
