//! What is read of credentials: which versions, how large they are, and what must still be read the same later.

use std::ops::ControlFlow;

use uuid::Uuid;

use crate::credential::{CredentialName, LookupName};

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
