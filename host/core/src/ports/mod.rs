//! The ports of the domain: traits for its external dependencies.

mod certificates;
mod check;
mod encryption;
mod key_management;
mod key_rotation;
mod leases;
mod permissions;
mod plugins;
mod reading;
mod retention;
mod signed;
mod storage;

use chrono::{DateTime, Utc};
use uuid::Uuid;

pub use certificates::{
    CertificateIssuer, CertificateMembers, CertificateRefused, Certificates, CheckedMembers,
    NOT_AN_AUTHORITY, SigningRefused,
};
pub use check::{
    CheckEnds, CheckRepository, CheckedCredential, CheckedIndexEntry, CheckedPermission,
    CheckedRow, CheckedVersion, PointedVersion, SequenceRange,
};
pub use encryption::{
    EncryptionKeyRepository, Envelope, KeyStanding, RecognitionFailure, SealFailure, SealedPlace,
    Sealer,
};
pub use key_management::{KeyManagement, KeyManagementFailure};
pub use key_rotation::{KeyRotationRepository, ResealedVersion, SealedVersion};
pub use leases::{Lease, Leases};
pub use permissions::PermissionRepository;
pub use plugins::{
    Generator, GeneratorDescription, Generators, HostWork, POINTER_SEGMENTS_MAX, PluginFailure,
    PluginFault, Recovered, Reference, Resolver, Resolvers, Violation,
};
pub use reading::{
    CredentialKey, NewestSize, PermittedRead, PermittedReads, PermittedVersions, ReadVersions,
    Receive, VersionKey, VersionSelection, VersionsSize,
};
pub use retention::{
    ClockRecord, DeletableVersion, ExceedingCredential, NotDeleted, RetentionClock,
    RetentionDeletion, RetentionPage, RetentionRepository, RetentionTrail, TrailUnwritten,
};
pub use signed::{ReadSigned, SignedName, SignedTypes};
pub use storage::{
    Additions, AllAppended, AppendCondition, Appended, CredentialRepository, EXPIRY_MOMENTS,
    NewVersion, RepositoryFailure, TransitionalMoved, TransitionalVersion, VersionDeleted,
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
