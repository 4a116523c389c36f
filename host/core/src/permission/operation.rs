//! What a permission lets an actor do.

use std::fmt;

/// One thing that an actor may do with a credential, or with the permissions on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read its versions, find it, refer to it.
    Read,
    /// Set, generate and regenerate it.
    Write,
    /// Delete it, or a version of it.
    Delete,
    /// Read the permissions on it.
    ReadAcl,
    /// Change the permissions on it.
    WriteAcl,
}

impl Operation {
    /// All operations, in the order in which they are always listed.
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Write,
        Self::Delete,
        Self::ReadAcl,
        Self::WriteAcl,
    ];

    /// The operation's name in requests and responses.
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

    /// The operation of this name; casing counts.
    ///
    /// # Errors
    /// When there is none.
    pub fn parse(name: &str) -> Result<Self, OperationUnknown> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.as_str() == name)
            .ok_or_else(|| OperationUnknown(name.chars().take(TOLD_CHARACTERS_MAX).collect()))
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

/// A name that no operation has, or the beginning of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operation {0} is not one of read, write, delete, read_acl, write_acl")]
pub struct OperationUnknown(pub String);

/// A set of operations that is not empty.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Operations(u8);

impl Operations {
    /// These operations, each once; none when there are none.
    #[must_use]
    pub fn of(operations: impl IntoIterator<Item = Operation>) -> Option<Self> {
        let bits = operations
            .into_iter()
            .fold(0, |bits, operation| bits | operation.bit());
        Self::from_bits(bits)
    }

    /// The set as it is stored: the sum of 1 read, 2 write, 4 delete, 8 `read_acl`, 16 `write_acl`. None when it is no such
    /// sum, or 0.
    #[must_use]
    pub fn from_bits(bits: u8) -> Option<Self> {
        (1..=ALL_BITS).contains(&bits).then_some(Self(bits))
    }

    /// The set as it is stored.
    #[must_use]
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Whether the operation is among them.
    #[must_use]
    pub fn contain(self, operation: Operation) -> bool {
        self.0 & operation.bit() != 0
    }

    /// Those that are in the one set or in the other.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The operations in the order in which they are always listed.
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

/// How much of an unknown name is told back, in characters.
const TOLD_CHARACTERS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_listed_once_and_in_one_order() {
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
    fn names_are_exact() {
        for operation in Operation::ALL {
            assert_eq!(Operation::parse(operation.as_str()), Ok(operation));
        }
        for name in ["", "Read", "read-acl", "execute"] {
            assert!(Operation::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn of_a_long_unknown_name_the_beginning_is_told() {
        let beginning = "ä".repeat(TOLD_CHARACTERS_MAX);
        let refused = Operation::parse(&format!("{beginning}ä")).unwrap_err();
        assert_eq!(refused, OperationUnknown(beginning));
    }
}
