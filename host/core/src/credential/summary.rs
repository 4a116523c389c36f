//! Summaries of all credentials that a caller may read: their numbers by type, and the CAs that are being rotated.

use std::{collections::BTreeMap, ops::ControlFlow};

use crate::{
    UseCaseError,
    authorization::Caller,
    credential::{CredentialName, CredentialType, ReadCredentials},
    permission::{Operation, PermissionPath},
};

/// The numbers of credentials by type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CredentialCounts {
    /// The number of credentials of each type. Types without credentials are absent.
    pub by_type: BTreeMap<CredentialType, u64>,
    /// Whether all credentials were counted.
    pub is_complete: bool,
}

/// The CAs with a transitional version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RotatingAuthorities {
    /// At most [`ROTATING_AUTHORITIES_MAX`] of them, in the order in which they were created.
    pub names: Vec<CredentialName>,
    /// Whether there are more.
    pub has_more: bool,
}

impl CredentialCounts {
    /// Returns the number of counted credentials.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_type.values().sum()
    }

    /// Adds counted credentials. Returns whether the total does not exceed a maximum.
    fn add(&mut self, counted: Vec<(CredentialType, u64)>, count_max: u64) -> bool {
        for (credential_type, count) in counted {
            *self.by_type.entry(credential_type).or_default() += count;
        }
        self.is_complete &= self.total() <= count_max;
        self.is_complete
    }
}

impl ReadCredentials {
    /// Counts the credentials that the caller may read, by type. Stops after [`COUNTED_CREDENTIALS_MAX`], or, for a caller that
    /// may not read all credentials, after [`COUNTED_BELOW_PATHS_MAX`] or on [`COUNTED_PATHS_MAX`] paths.
    pub async fn count_by_type(&self, caller: &Caller) -> Result<CredentialCounts, UseCaseError> {
        let permissions = self.authorization.permissions_of(caller).await?;
        let paths = permissions.outermost(Operation::Read);
        let may_read_all = paths.iter().any(PermissionPath::covers_everything);
        let count_max = if may_read_all {
            COUNTED_CREDENTIALS_MAX
        } else {
            COUNTED_BELOW_PATHS_MAX
        };
        let mut counts = CredentialCounts {
            is_complete: true,
            ..CredentialCounts::default()
        };
        let repository = &self.store.repository;
        for path in paths.iter().take(COUNTED_PATHS_MAX) {
            // One more than the remaining number, to detect that there are more.
            let left = count_max - counts.total() + 1;
            let counted = repository.count_by_type(caller.actor(), path, left).await?;
            if !counts.add(counted, count_max) {
                return Ok(counts);
            }
        }
        counts.is_complete = paths.len() <= COUNTED_PATHS_MAX;
        Ok(counts)
    }

    /// Returns the CAs with a transitional version that the caller may read.
    pub async fn rotating_authorities(
        &self,
        caller: &Caller,
    ) -> Result<RotatingAuthorities, UseCaseError> {
        let permissions = self.authorization.permissions_of(caller).await?;
        let mut rotating = RotatingAuthorities::default();
        if !permissions.allow_somewhere(Operation::Read) {
            return Ok(rotating);
        }
        let mut receive = |name: CredentialName| {
            if !permissions.allow(Operation::Read, name.as_str()) {
                return ControlFlow::Continue(());
            }
            if rotating.names.len() == ROTATING_AUTHORITIES_MAX {
                rotating.has_more = true;
                return ControlFlow::Break(());
            }
            rotating.names.push(name);
            ControlFlow::Continue(())
        };
        let repository = &self.store.repository;
        repository
            .transitional_authorities(caller.actor(), &mut receive)
            .await?;
        Ok(rotating)
    }
}

/// The maximum number of credentials to count for a caller that may read all of them: a scan of the table takes less than a second.
pub const COUNTED_CREDENTIALS_MAX: u64 = 1_000_000;

/// The maximum number of credentials to count for other callers: each is looked up in an index and in the table.
pub const COUNTED_BELOW_PATHS_MAX: u64 = 100_000;

/// The maximum number of paths below which credentials are counted, each with one query.
pub const COUNTED_PATHS_MAX: usize = 256;

/// The maximum number of CAs in a list of rotations.
pub const ROTATING_AUTHORITIES_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_past_the_maximum_are_not_complete() {
        let counted = |of: &str, count| vec![(CredentialType::parse(of).unwrap(), count)];
        let mut counts = CredentialCounts {
            is_complete: true,
            ..CredentialCounts::default()
        };
        for (of, count, total, is_complete) in [
            ("value", 2, 2, true),
            ("json", 1, 3, true),
            ("value", 1, 4, false),
        ] {
            assert_eq!(counts.add(counted(of, count), 3), is_complete);
            assert_eq!((counts.total(), counts.is_complete), (total, is_complete));
        }
    }
}
