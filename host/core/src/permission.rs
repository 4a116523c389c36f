//! Permissions: which actor may perform which operations, on one credential name or on all names below a path.
//!
//! Permissions are independent of credentials: a permission can exist before the credential does, and remains when the
//! credential is deleted. Permissions are additive, and only deleting a permission revokes it. Only
//! [`crate::authorization`] evaluates them. [`crate::permission_management`] has the use cases.

use std::{fmt, sync::Arc};

use strum::{Display, EnumString, IntoStaticStr};
use uuid::Uuid;

use crate::credential::{CredentialName, LookupName, NAME_CHARACTERS_MAX, NameError, PathPrefix};

/// The operations that an actor may perform on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The id.
    pub id: Uuid,
    /// The path.
    pub path: PermissionPath,
    /// The actor.
    pub actor: Actor,
    /// The allowed operations.
    pub operations: Operations,
}

/// A permission to grant, without an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The path.
    pub path: PermissionPath,
    /// The actor.
    pub actor: Actor,
    /// The operations to allow.
    pub operations: Operations,
}

/// An operation on a credential, or on its permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Operation {
    /// Read, find and reference the credential.
    Read,
    /// Set, generate and regenerate the credential.
    Write,
    /// Delete the credential or one of its versions.
    Delete,
    /// Read the permissions on the credential.
    ReadAcl,
    /// Change the permissions on the credential.
    WriteAcl,
}

impl Operation {
    /// All operations, in listing order.
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Write,
        Self::Delete,
        Self::ReadAcl,
        Self::WriteAcl,
    ];

    /// Returns the operation's name in requests and responses.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Parses an operation's name. Case-sensitive.
    pub fn parse(name: &str) -> Result<Self, UnknownOperationError> {
        name.parse().map_err(|_| {
            UnknownOperationError(name.chars().take(REPORTED_CHARACTERS_MAX).collect())
        })
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// An unknown operation name, truncated if it is long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown operation {0}; it must be one of read, write, delete, read_acl, write_acl")]
pub struct UnknownOperationError(pub String);

/// A non-empty set of operations.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Operations(u8);

impl Operations {
    /// Returns the set of these operations, or `None` if there are none.
    pub fn of(operations: impl IntoIterator<Item = Operation>) -> Option<Self> {
        let bits = operations
            .into_iter()
            .fold(0, |bits, operation| bits | operation.bit());
        Self::from_bits(bits)
    }

    /// Returns the set from its stored form: the sum of 1 `read`, 2 `write`, 4 `delete`, 8 `read_acl`, 16 `write_acl`.
    /// `None` if the sum is 0 or contains other bits.
    pub fn from_bits(bits: u8) -> Option<Self> {
        (1..=ALL_BITS).contains(&bits).then_some(Self(bits))
    }

    /// Returns the stored form of the set.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Returns whether the set contains the operation.
    pub fn contain(self, operation: Operation) -> bool {
        self.0 & operation.bit() != 0
    }

    /// Returns the union of both sets.
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the operations in listing order.
    pub fn iter(self) -> impl Iterator<Item = Operation> {
        Operation::ALL
            .into_iter()
            .filter(move |operation| self.contain(*operation))
    }
}

impl fmt::Debug for Operations {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

const ALL_BITS: u8 = 31;

/// The maximum length of an unknown name in an error message, in characters.
const REPORTED_CHARACTERS_MAX: usize = 100;

/// The maximum length of an actor, in characters.
pub const ACTOR_CHARACTERS_MAX: usize = 255;

/// The prefixes of actors that can authenticate. An id follows the prefix.
pub const ACTOR_KINDS: [&str; 3] = [CLIENT, USER, APPLICATION];

const CLIENT: &str = "uaa-client:";
const USER: &str = "uaa-user:";
const APPLICATION: &str = "mtls-app:";

/// The actor of a request or a permission: `uaa-client:<client id>`, `uaa-user:<user id>`, `mtls-app:<application id>`, or
/// any other text that a permission names. Clones share the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Actor(Arc<str>);

impl Actor {
    /// Returns the actor for a client of the identity provider that acts for itself.
    pub fn client(client_id: &str) -> Result<Self, ActorError> {
        Self::of_kind(CLIENT, client_id)
    }

    /// Returns the actor for a user of the identity provider, by its immutable id.
    pub fn user(user_id: &str) -> Result<Self, ActorError> {
        Self::of_kind(USER, user_id)
    }

    /// Returns the actor for an application that authenticates with a certificate.
    pub fn application(application_id: Uuid) -> Self {
        Self(format!("{APPLICATION}{application_id}").into())
    }

    /// Parses the actor of a permission. It need not be able to authenticate.
    pub fn parse(text: &str) -> Result<Self, ActorError> {
        if text.is_empty() {
            return Err(ActorError::Missing);
        }
        if text.chars().count() > ACTOR_CHARACTERS_MAX {
            return Err(ActorError::TooLong);
        }
        if text.contains('\0') {
            return Err(ActorError::Character);
        }
        Ok(Self(text.into()))
    }

    /// Wraps a stored actor without checking it.
    pub fn from_stored(text: String) -> Self {
        Self(text.into())
    }

    /// Returns the actor for a lookup, without checking it. A malformed actor matches no permission.
    pub fn of_lookup(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the actor's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether a caller can log in as this actor: it must be one of [`ACTOR_KINDS`] followed by an id. Permissions of
    /// other actors have no effect.
    pub fn can_log_in(&self) -> bool {
        ACTOR_KINDS
            .iter()
            .filter_map(|kind| self.0.strip_prefix(kind))
            .any(|id| !id.trim().is_empty())
    }

    fn of_kind(kind: &str, id: &str) -> Result<Self, ActorError> {
        if id.is_empty() {
            return Err(ActorError::Missing);
        }
        Self::parse(&format!("{kind}{id}"))
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The rule for actors that a text breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum ActorError {
    /// The actor contains U+0000, which PostgreSQL can't store in text columns.
    #[error("an actor must not contain the character U+0000")]
    Character,
    #[error("an actor is required")]
    Missing,
    #[error("an actor must have at most {ACTOR_CHARACTERS_MAX} characters")]
    TooLong,
}

/// The maximum length of a permission's path, in characters, including its slash and asterisk.
pub const PERMISSION_PATH_CHARACTERS_MAX: usize = NAME_CHARACTERS_MAX;

/// The full name of one credential, or a path that ends in `/*` and covers all names below it, at any depth. Case-sensitive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PermissionPath(String);

impl PermissionPath {
    /// Parses a path. Prepends a missing leading slash.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let with_slash = if text.starts_with('/') {
            text.to_owned()
        } else {
            format!("/{text}")
        };
        if with_slash.chars().count() > PERMISSION_PATH_CHARACTERS_MAX {
            return Err(PathError::TooLong);
        }
        if with_slash == EVERYTHING {
            return Ok(Self::everything());
        }
        let name = with_slash.strip_suffix(BELOW).unwrap_or(&with_slash);
        CredentialName::parse(name).map_err(PathError::of)?;
        Ok(Self(with_slash))
    }

    /// Wraps a stored path without checking it.
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// Returns the path for a lookup, without checking it. A malformed path matches no permission.
    pub fn of_lookup(name: &LookupName) -> Self {
        Self(name.requested().to_owned())
    }

    /// Returns the form in which permissions are evaluated.
    pub fn lookup(&self) -> LookupName {
        LookupName::new(&self.0)
    }

    /// Returns the path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the paths of all permissions that can cover a name or a path: itself and each enclosing path, nearest first.
    /// Paths longer than [`PERMISSION_PATH_CHARACTERS_MAX`] are omitted, which bounds the number of paths for any name.
    pub fn covering(name: &str) -> Vec<Self> {
        let enclosing = Self::enclosing_each(name)
            .map(|path| [path, BELOW].concat())
            .filter(|path| path != name);
        let itself = (name.len() <= PERMISSION_PATH_CHARACTERS_MAX).then(|| name.to_owned());
        itself.into_iter().chain(enclosing).map(Self).collect()
    }

    /// Returns the path that covers all names.
    pub(crate) fn everything() -> Self {
        Self(EVERYTHING.to_owned())
    }

    /// Returns whether the path covers all names.
    pub fn covers_everything(&self) -> bool {
        self.0 == EVERYTHING
    }

    /// Returns the path without its slash and asterisk, or `None` if it is a name.
    pub fn enclosing(&self) -> Option<&str> {
        self.0.strip_suffix(BELOW)
    }

    /// Returns whether a permission on this path can apply to a name below another path, in any casing.
    pub(crate) fn applies_below(&self, prefix: &PathPrefix) -> bool {
        let path = self.0.to_ascii_lowercase();
        match path.strip_suffix('*') {
            Some(below) => below.starts_with(prefix.as_str()) || prefix.as_str().starts_with(below),
            None => path.starts_with(prefix.as_str()),
        }
    }

    /// Returns the enclosing paths of a name without their slash and asterisk, as [`PermissionPath::enclosing`] does, nearest
    /// first. Paths longer than [`PERMISSION_PATH_CHARACTERS_MAX`] are omitted.
    pub(crate) fn enclosing_each(name: &str) -> impl Iterator<Item = &str> {
        let bytes = name.bytes().enumerate().rev();
        bytes
            .filter(|(at, byte)| {
                *byte == b'/' && at + BELOW.len() <= PERMISSION_PATH_CHARACTERS_MAX
            })
            .filter_map(|(slash, _)| name.get(..slash))
    }
}

impl fmt::Display for PermissionPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The rule that a path breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum PathError {
    /// The path has a character outside the allowed set, or an asterisk that is not the last segment.
    #[error(
        "a path may contain only letters, digits, the characters _ - / . : ( ) [ ], and an asterisk as its last segment"
    )]
    Character,
    #[error("a path is required")]
    Missing,
    #[error("a path must not end with a slash or contain two slashes in a row")]
    Slashes,
    #[error(
        "a path must have at most {PERMISSION_PATH_CHARACTERS_MAX} characters, including its leading slash"
    )]
    TooLong,
}

impl PathError {
    fn of(name: NameError) -> Self {
        match name {
            NameError::Character => Self::Character,
            NameError::Missing => Self::Missing,
            NameError::Slashes => Self::Slashes,
            NameError::TooLong => Self::TooLong,
        }
    }
}

const BELOW: &str = "/*";

const EVERYTHING: &str = BELOW;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_stored_as_a_sum_of_bits_and_never_empty() {
        let all = Operations::of(Operation::ALL).unwrap();
        assert_eq!(all.bits(), 31);
        assert_eq!(Operations::from_bits(31), Some(all));
        assert_eq!(Operations::of([]), None);
        assert_eq!(Operations::from_bits(0), None);
        assert_eq!(Operations::from_bits(32), None);
    }

    #[test]
    fn a_long_unknown_name_is_truncated_in_the_error() {
        let beginning = "ä".repeat(REPORTED_CHARACTERS_MAX);
        let refused = Operation::parse(&format!("{beginning}ä")).unwrap_err();
        assert_eq!(refused, UnknownOperationError(beginning));
    }

    #[test]
    fn a_path_applies_below_paths_that_enclose_it_or_that_it_covers() {
        for (path, applies) in [
            ("/*", true),
            ("/a/*", true),
            ("/A/*", true),
            ("/a/B/*", true),
            ("/a/b/c", true),
            ("/a/b/c/*", true),
            ("/a/b", false),
            ("/a/bc", false),
            ("/a/bc/*", false),
            ("/a/c/*", false),
            ("/b/*", false),
        ] {
            let path = PermissionPath::parse(path).unwrap();
            assert_eq!(
                path.applies_below(&PathPrefix::new("/a/b")),
                applies,
                "{path}"
            );
            assert!(path.applies_below(&PathPrefix::new("")), "{path}");
        }
    }

    #[test]
    fn covering_paths_are_bounded_for_names_with_many_slashes() {
        let covering = PermissionPath::covering(&"/".repeat(60_000));
        assert_eq!(covering.len(), PERMISSION_PATH_CHARACTERS_MAX - 1);
        let longest = format!("/a/{}", "b".repeat(PERMISSION_PATH_CHARACTERS_MAX - 3));
        assert_eq!(PermissionPath::covering(&longest).len(), 3);
        let longer = format!("{longest}b");
        let covering = PermissionPath::covering(&longer);
        let covering: Vec<_> = covering.iter().map(PermissionPath::as_str).collect();
        assert_eq!(covering, ["/a/*", "/*"]);
    }
}
