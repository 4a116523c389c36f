//! The API: one file per noun, with the requests, the responses and the methods of [`Client`](crate::Client) that send them.

mod certificates;
mod credentials;
mod permissions;
mod rotation;
mod server;

pub use certificates::{
    BulkRegenerate, BulkRegenerated, CertificateSummary, FailedCredential, IssuedCredential,
    IssuedRecord, ListedVersion, RegenerateCertificate,
};
pub use credentials::{
    CredentialVersion, DerivedFrom, ExpiringLink, Find, FoundCredential, GenerateCredential,
    GenerateMode, SetCredential,
};
pub use permissions::{AddPermission, Operation, Permission};
pub use rotation::{Rotation, RotationError, Stage, Step};
pub use server::{KeyUsage, KnownType, Plugin, ServerMode};

pub(crate) use certificates::{certificates_in, first_certificate};
