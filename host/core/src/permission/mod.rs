//! Permissions: which actor may perform which operations, on one credential name or on all names below a path.
//!
//! Permissions are independent of credentials: a permission can exist before the credential does, and remains when the
//! credential is deleted. Permissions are additive, and only deleting a permission revokes it. Only
//! [`crate::authorization`] evaluates them. [`crate::permission_management`] has the use cases.

mod actor;
mod path;

use std::fmt;

use uuid::Uuid;

pub use actor::{ACTOR_CHARACTERS_MAX, ACTOR_KINDS, Actor, ActorError};
pub use path::{PERMISSION_PATH_CHARACTERS_MAX, PathError, PermissionPath};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::ReadAcl => "read_acl",
            Self::WriteAcl => "write_acl",
        }
    }

    /// Parses an operation's name. Case-sensitive.
    pub fn parse(name: &str) -> Result<Self, UnknownOperationError> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.as_str() == name)
            .ok_or_else(|| {
                UnknownOperationError(name.chars().take(REPORTED_CHARACTERS_MAX).collect())
            })
    }

    fn bit(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Write => 2,
            Self::Delete => 4,
            Self::ReadAcl => 8,
            Self::WriteAcl => 16,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
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
    #[must_use]
    pub fn of(operations: impl IntoIterator<Item = Operation>) -> Option<Self> {
        let bits = operations
            .into_iter()
            .fold(0, |bits, operation| bits | operation.bit());
        Self::from_bits(bits)
    }

    /// Returns the set from its stored form: the sum of 1 `read`, 2 `write`, 4 `delete`, 8 `read_acl`, 16 `write_acl`.
    /// `None` if the sum is 0 or contains other bits.
    #[must_use]
    pub fn from_bits(bits: u8) -> Option<Self> {
        (1..=ALL_BITS).contains(&bits).then_some(Self(bits))
    }

    /// Returns the stored form of the set.
    #[must_use]
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Returns whether the set contains the operation.
    #[must_use]
    pub fn contain(self, operation: Operation) -> bool {
        self.0 & operation.bit() != 0
    }

    /// Returns the union of both sets.
    #[must_use]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_listed_once_and_in_listing_order() {
        let given = [Operation::WriteAcl, Operation::Read, Operation::Read];
        let operations = Operations::of(given).unwrap();
        let listed: Vec<_> = operations.iter().collect();
        assert_eq!(listed, [Operation::Read, Operation::WriteAcl]);
    }

    #[test]
    fn a_set_is_stored_as_a_sum_and_never_empty() {
        let all = Operations::of(Operation::ALL).unwrap();
        assert_eq!(all.bits(), 31);
        assert_eq!(Operations::from_bits(31), Some(all));
        assert_eq!(Operations::of([]), None);
        assert_eq!(Operations::from_bits(0), None);
        assert_eq!(Operations::from_bits(32), None);
    }

    #[test]
    fn unknown_operation_names_are_rejected() {
        for operation in Operation::ALL {
            assert_eq!(Operation::parse(operation.as_str()), Ok(operation));
        }
        for name in ["", "Read", "read-acl", "execute"] {
            assert!(Operation::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_long_unknown_name_is_truncated_in_the_error() {
        let beginning = "ä".repeat(REPORTED_CHARACTERS_MAX);
        let refused = Operation::parse(&format!("{beginning}ä")).unwrap_err();
        assert_eq!(refused, UnknownOperationError(beginning));
    }
}
