//! What is read of credentials: which versions, how large they are, and what must still be read the same later.

use std::ops::ControlFlow;

use async_trait::async_trait;
use uuid::Uuid;

use crate::{
    credential::{CredentialName, LookupName, StoredVersion},
    permission::{Actor, Operation, Permission, PermissionPath},
    ports::RepositoryFailure,
};

/// Reads versions for a caller together with the permissions that decide about them, in one step: in one read transaction on the
/// thread that asks, or in one round trip to a server.
#[async_trait]
pub trait PermittedReads: Send + Sync {
    /// Reads the actor's permissions on the paths, passes them to `permits`, and reads the versions if that returns `true`.
    ///
    /// It reads nothing of the credential but its name if none of the permissions has the operation, and no version of a credential
    /// whose stored name differs from the name in the request, in casing at least. So how long it takes does not show what
    /// exists.
    ///
    /// # Errors
    /// When the database can't answer. `permits` may be called again when the read is repeated.
    async fn read(
        &self,
        read: PermittedRead<'_>,
        permits: &mut (dyn FnMut(Vec<Permission>) -> bool + Send),
    ) -> Result<PermittedVersions, RepositoryFailure>;
}

/// Which versions to read, and which permissions decide about that.
#[derive(Clone, Copy, Debug)]
pub struct PermittedRead<'a> {
    /// Who asks.
    pub actor: &'a Actor,
    /// What the actor must be allowed to do.
    pub operation: Operation,
    /// The paths that cover the name, as [`PermissionPath::covering`] returns them.
    pub paths: &'a [PermissionPath],
    /// The credential's name in this casing.
    pub name: &'a LookupName,
    /// The versions.
    pub versions: VersionKey,
}

/// Names versions of one credential: a small number of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionKey {
    /// Those that [`VersionSelection::Current`] chooses.
    Current,
    /// The version with this id.
    Id(Uuid),
    /// At most this many, newest first.
    Newest(u32),
}

/// What a permitted read found.
#[derive(Clone, Debug, Default)]
pub struct PermittedVersions {
    /// The versions, in the order of [`VersionSelection`].
    pub versions: Vec<StoredVersion>,
    /// If there are no such versions: the name of the credential as it is stored, if it exists.
    pub stored_name: Option<CredentialName>,
}

/// Receives what a query finds, one by one, until it breaks off. So a result that is too large is never in memory.
pub type Receive<'a, T> = &'a mut (dyn FnMut(T) -> ControlFlow<()> + Send);

/// How a credential is named.
#[derive(Clone, Copy, Debug)]
pub enum CredentialKey<'a> {
    /// By its id.
    Id(Uuid),
    /// By its name.
    Name(&'a LookupName),
}

/// How large versions of one credential are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VersionsSize {
    /// How many there are.
    pub count: u32,
    /// The bytes that are encrypted, of all of them together.
    pub ciphertext_bytes: usize,
}

/// How large the newest version of a credential is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestSize {
    /// The credential's name, in the casing of its first writer.
    pub name: CredentialName,
    /// The bytes that are encrypted.
    pub ciphertext_bytes: usize,
}

/// Which versions of a credential to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionSelection {
    /// All, newest first.
    All,
    /// The newest one that is not transitional, then the transitional one; either may be absent.
    Current,
    /// At most this many, newest first.
    Newest(u32),
}

/// What was read of one credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadVersions {
    /// The credential's name.
    pub name: LookupName,
    /// Which versions were read.
    pub selection: VersionSelection,
    /// The ids of those that there were, in the order of the selection.
    pub ids: Vec<Uuid>,
}
