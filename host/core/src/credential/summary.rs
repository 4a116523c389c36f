//! Summaries of all credentials that a caller may read: their numbers by type, the CAs that are being rotated, and the
//! credentials that expire or should be rotated.

use std::{
    collections::{BTreeMap, BinaryHeap, HashMap, hash_map::RandomState},
    hash::BuildHasher,
    ops::ControlFlow,
    sync::Arc,
};

use chrono::{DateTime, Utc};

use crate::{
    UseCaseError,
    authorization::Caller,
    credential::{
        CredentialName, CredentialType, Credentials, EffectiveExpiry, Find, FindNames,
        FoundCredential, ReadCredentials, read::in_days,
    },
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
        if !permissions.allow_reading() {
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

/// A credential that expires, or should be rotated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueCredential {
    /// Its name, with the casing of its first version.
    pub name: CredentialName,
    /// The time at which it should be rotated, or otherwise the first expiry in its chain.
    pub at: DateTime<Utc>,
    /// Whether a CA above it expires first.
    pub is_by_authority: bool,
}

/// The credentials that are due, with the memory that is reserved for them. Names are kept only for the first credentials, and
/// times for all, so that hundreds of thousands of credentials fit into this memory.
pub struct DueCredentials {
    caller: Arc<Caller>,
    hasher: RandomState,
    /// The times by the hash of the name.
    times: HashMap<u64, DateTime<Utc>>,
    /// The first selected credentials, the latest on top: their times, their names, and whether a CA expires first.
    first: BinaryHeap<(DateTime<Utc>, String, bool)>,
    refused: Option<UseCaseError>,
}

impl Credentials {
    /// Returns the credentials that the caller may read and that are due within this many periods of 24 hours, or earlier. A certificate
    /// is due when the first certificate in the chain of its active version expires, or its latest version if that is earlier. Keeps the
    /// names of the first [`DUE_LISTED_MAX`] credentials with a selected time.
    pub async fn due(
        &self,
        caller: &Arc<Caller>,
        within_days: i64,
        selects: impl Fn(DateTime<Utc>) -> bool + Send + Sync,
    ) -> Result<DueCredentials, UseCaseError> {
        let mut due = DueCredentials::new(Arc::clone(caller));
        let permissions = self.read.authorization.permissions_of(caller).await?;
        let may_read = |name: &CredentialName| permissions.allow(Operation::Read, name.as_str());
        if !permissions.allow_reading() {
            return Ok(due);
        }
        let names = FindNames::below("/");
        let until = in_days(self.store.clock.now(), within_days);
        let mut receive = |expiry: EffectiveExpiry| {
            let at = expiry.link.expires_at;
            if !may_read(&expiry.name) {
                return ControlFlow::Continue(());
            }
            due.add(&expiry.name, at, expiry.link.depth > 0, &selects)
        };
        let repository = &self.store.repository;
        let reading = repository.effective_expiries(caller.actor(), &names, until, &mut receive);
        reading.await?;
        let mut receive = |found: FoundCredential| match found.rotate_at.or(found.expires_at) {
            Some(at) if may_read(&found.name) => due.add(&found.name, at, false, &selects),
            _ => ControlFlow::Continue(()),
        };
        let find = Find {
            names,
            expires_until: Some(until),
        };
        repository.find(caller.actor(), &find, &mut receive).await?;
        match due.refused.take() {
            Some(refused) => Err(refused),
            None => Ok(due),
        }
    }
}

impl DueCredentials {
    fn new(caller: Arc<Caller>) -> Self {
        Self {
            caller,
            hasher: RandomState::new(),
            times: HashMap::new(),
            first: BinaryHeap::new(),
            refused: None,
        }
    }

    /// Adds a credential, unless it is known with an earlier time. Stops the query if the memory for it can't be reserved.
    fn add(
        &mut self,
        name: &CredentialName,
        at: DateTime<Utc>,
        is_by_authority: bool,
        selects: &(dyn Fn(DateTime<Utc>) -> bool + Send + Sync),
    ) -> ControlFlow<()> {
        let hash = self.hasher.hash_one(name.as_str());
        if self.times.get(&hash).is_some_and(|known| *known <= at) {
            return ControlFlow::Continue(());
        }
        if self.times.len() == self.times.capacity() {
            let bytes = TIME_BYTES * self.times.len().max(TIMES_RESERVED_FIRST);
            if let Err(refused) = self.caller.reserve(bytes) {
                self.refused = Some(refused);
                return ControlFlow::Break(());
            }
        }
        self.times.insert(hash, at);
        if selects(at) {
            self.first
                .push((at, name.as_str().to_owned(), is_by_authority));
            // A credential can be added twice.
            if self.first.len() > 2 * DUE_LISTED_MAX {
                self.first.pop();
            }
        }
        ControlFlow::Continue(())
    }

    /// Returns the times of all credentials, and the first selected credentials, both in order. Takes more than linear time.
    pub fn in_order(self) -> (Vec<DateTime<Utc>>, Vec<DueCredential>) {
        let first = self.first.into_sorted_vec().into_iter();
        let first = first.filter(|(at, name, _)| {
            let hash = self.hasher.hash_one(name.as_str());
            self.times.get(&hash) == Some(at)
        });
        let first = first.take(DUE_LISTED_MAX);
        let first = first.map(|(at, name, is_by_authority)| DueCredential {
            name: CredentialName::from_stored(name),
            at,
            is_by_authority,
        });
        let first = first.collect();
        let mut times: Vec<_> = self.times.into_values().collect();
        times.sort_unstable();
        (times, first)
    }
}

/// The maximum number of due credentials that are returned with their names.
pub const DUE_LISTED_MAX: usize = 1_000;

/// The memory for the time of a credential, in bytes. A table is copied when it grows.
const TIME_BYTES: usize = 64;

/// The number of times for which memory is reserved initially.
const TIMES_RESERVED_FIRST: usize = 1_024;

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::{authorization::Authentication, permission::Actor};

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

    fn time(days: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(days)
    }

    fn empty() -> DueCredentials {
        let subject = String::new();
        let caller = Caller::new(
            Actor::parse("a").unwrap(),
            Authentication::Token { subject },
        );
        DueCredentials::new(Arc::new(caller))
    }

    #[test]
    fn the_first_expiry_of_a_chain_counts() {
        let mut due = empty();
        for (name, days, is_by_authority) in [
            ("/below", 1, true),
            ("/leaf", 5, true),
            ("/new", 8, false),
            ("/leaf", 9, false),
            ("/token", 3, false),
            ("/new", 4, false),
        ] {
            let name = CredentialName::parse(name).unwrap();
            let selects = |at| at > time(1);
            assert!(
                due.add(&name, time(days), is_by_authority, &selects)
                    .is_continue()
            );
        }
        let (times, first) = due.in_order();
        assert_eq!(times, [1, 3, 4, 5].map(time));
        let first: Vec<_> = first
            .iter()
            .map(|due| (due.name.as_str(), due.at, due.is_by_authority))
            .collect();
        let expected = [
            ("/token", time(3), false),
            ("/new", time(4), false),
            ("/leaf", time(5), true),
        ];
        assert_eq!(first, expected);
    }

    #[test]
    fn names_past_the_maximum_are_dropped() {
        let mut due = empty();
        for number in 0..=3 * i64::try_from(DUE_LISTED_MAX).unwrap() {
            let name = CredentialName::parse(&format!("/{number}")).unwrap();
            assert!(due.add(&name, time(number), false, &|_| true).is_continue());
        }
        let (times, first) = due.in_order();
        assert_eq!(times.len(), 3 * DUE_LISTED_MAX + 1);
        assert_eq!(first.len(), DUE_LISTED_MAX);
        assert_eq!(first[DUE_LISTED_MAX - 1].at, time(999));
    }
}
