//! The ports of the domain: traits for its external dependencies.

mod background;
mod certificates;
mod check;
mod encryption;
mod permission;
mod plugins;
mod storage;

use chrono::{DateTime, Utc};
use uuid::Uuid;

pub use background::{
    AuditTrailError, ClockRecord, DeletableVersion, ExceedingCredential, KeyRotationRepository,
    Lease, Leases, NotDeleted, ResealedVersion, RetentionClock, RetentionDeletion, RetentionPage,
    RetentionRepository, RetentionTrail, SealedVersion,
};
pub use certificates::{
    CertificateError, CertificateFields, CertificateIssuer, Certificates, CheckedFields,
    NOT_AN_AUTHORITY, SigningError,
};
pub use check::{
    CheckEnds, CheckRepository, CheckedCredential, CheckedIndexEntry, CheckedPermission,
    CheckedRow, CheckedVersion, PointedVersion, SequenceRange,
};
pub use encryption::{
    EncryptionKeyRepository, Envelope, KeyDerivation, KeyManagement, KeyManagementError, KeyRecord,
    KeyStatus, PasswordDerivation, RecognitionError, SealContext, SealError, Sealer,
};
pub use permission::PermissionRepository;
pub use plugins::{
    Generator, GeneratorDescription, Generators, HostWork, Input, POINTER_SEGMENTS_MAX,
    PluginCallError, PluginFaultError, PluginState, PluginStates, REFERENCE_FIELDS_MAX, Recovered,
    Reference, Resolver, Resolvers, Violation,
};
pub use storage::{
    Additions, AllAppended, AppendCondition, Appended, CertificateLists, CredentialKey,
    CredentialRepository, CredentialSearches, Deleted, EXPIRY_MOMENTS, ExpiryCounts, NewVersion,
    NewestSize, PermittedRead, PermittedVersions, ReadSigned, ReadVersions, Receive, SignedName,
    SignedTypes, TransitionalVersion, VersionChange, VersionChanged, VersionKey, VersionSelection,
    VersionsSize,
};

/// The source of the current time.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> DateTime<Utc>;
}

/// The source of new identifiers.
pub trait Identifiers: Send + Sync {
    /// Returns a new random (version 4) UUID.
    fn fresh(&self) -> Uuid;
}

/// A database error.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// Stored data breaks a rule of the schema. Names the column, never the data.
    #[error("the database is inconsistent: {0}; run `keywright check`")]
    Inconsistent(&'static str),
    /// The record of the encryption key with this id can't be read.
    #[error(
        "the row {0} of the table encryption_key is malformed, or was created by a newer release; restore the row from a \
         backup, or use that release"
    )]
    KeyRecordMalformed(Uuid),
    /// The database is unreachable or timed out. A retry may succeed.
    #[error("the database is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Any other error.
    #[error("the database refused a query")]
    Query(#[source] Box<dyn std::error::Error + Send + Sync>),
}
