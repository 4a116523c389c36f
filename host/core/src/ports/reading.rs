//! Reading versions of credentials: selections, sizes, and records of a read for detecting later changes.

use std::ops::ControlFlow;

use async_trait::async_trait;
use uuid::Uuid;

use crate::{
    credential::{CredentialName, LookupName, StoredVersion},
    permission::{Actor, Operation, Permission, PermissionPath},
    ports::RepositoryError,
};

/// Reads versions together with the permissions that control access to them, in one step: in one read transaction on the
/// calling thread, or in one round trip to a database server.
#[async_trait]
pub trait PermittedReads: Send + Sync {
    /// Reads the actor's permissions on the paths, passes them to `permits`, and reads the versions if that returns `true`.
    ///
    /// If no permission includes the operation, it reads only the credential's name. It reads no version of a credential whose
    /// stored name differs from the name in the request, even if only in casing. The duration therefore does not reveal
    /// whether a credential or a version exists.
    ///
    /// # Errors
    /// If the database query fails. A retry calls `permits` again.
    async fn read(
        &self,
        read: PermittedRead<'_>,
        permits: &mut (dyn FnMut(Vec<Permission>) -> bool + Send),
    ) -> Result<PermittedVersions, RepositoryError>;
}

/// The versions to read, and the permissions that control access to them.
#[derive(Clone, Copy, Debug)]
pub struct PermittedRead<'a> {
    /// The calling actor.
    pub actor: &'a Actor,
    /// The required operation.
    pub operation: Operation,
    /// The paths that cover the name, as [`PermissionPath::covering`] returns them.
    pub paths: &'a [PermissionPath],
    /// The credential's name in this casing.
    pub name: &'a LookupName,
    /// The versions.
    pub versions: VersionKey,
}

/// Selects a small number of versions of one credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionKey {
    /// The versions that [`VersionSelection::Current`] selects.
    Current,
    /// The version with this id.
    Id(Uuid),
    /// At most this many, newest first.
    Newest(u32),
}

/// The result of a permitted read.
#[derive(Clone, Debug, Default)]
pub struct PermittedVersions {
    /// The versions, in the order of [`VersionSelection`].
    pub versions: Vec<StoredVersion>,
    /// The stored name of the credential, if it exists and no versions were read.
    pub stored_name: Option<CredentialName>,
}

/// Receives the rows of a query one by one and can stop the query, so that memory use stays bounded.
pub type Receive<'a, T> = &'a mut (dyn FnMut(T) -> ControlFlow<()> + Send);

/// The key of a credential.
#[derive(Clone, Copy, Debug)]
pub enum CredentialKey<'a> {
    /// By its id.
    Id(Uuid),
    /// By its name.
    Name(&'a LookupName),
}

/// The size of versions of one credential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VersionsSize {
    /// The number of versions.
    pub count: u32,
    /// The total size of their ciphertexts, in bytes.
    pub ciphertext_bytes: usize,
}

/// The size of the newest version of a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestSize {
    /// The credential's name, in the casing of its first writer.
    pub name: CredentialName,
    /// The size of its ciphertext, in bytes.
    pub ciphertext_bytes: usize,
}

/// A selection of versions of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionSelection {
    /// All, newest first.
    All,
    /// The newest version that is not transitional, then the transitional version; either may be absent.
    Current,
    /// At most this many, newest first.
    Newest(u32),
}

/// The record of a read of one credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadVersions {
    /// The credential's name.
    pub name: LookupName,
    /// The selection.
    pub selection: VersionSelection,
    /// The ids of the existing versions, in the order of the selection.
    pub ids: Vec<Uuid>,
}
