//! The ports of the domain: traits for its external dependencies.

mod background;
mod certificates;
mod check;
mod encryption;
mod permissions;
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
    EncryptionKeyRepository, Envelope, KeyManagement, KeyManagementError, KeyStatus,
    RecognitionError, SealContext, SealError, Sealer,
};
pub use permissions::PermissionRepository;
pub use plugins::{
    Generator, GeneratorDescription, Generators, HostWork, POINTER_SEGMENTS_MAX, PluginCallError,
    PluginFaultError, REFERENCE_FIELDS_MAX, Recovered, Reference, Resolver, Resolvers, Violation,
};
pub use storage::{
    Additions, AllAppended, AppendCondition, Appended, CredentialKey, CredentialRepository,
    EXPIRY_MOMENTS, NewVersion, NewestSize, PermittedRead, PermittedReads, PermittedVersions,
    ReadSigned, ReadVersions, Receive, RepositoryError, SignedName, SignedTypes, TransitionalMoved,
    TransitionalVersion, VersionDeleted, VersionKey, VersionSelection, VersionsSize,
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
