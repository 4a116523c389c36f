//! The order of setting entries: each after the CA that it names, everything else in file order.
//!
//! The file is read in several passes. Each pass defers entries whose CA is listed but not yet attempted. If every CA precedes the
//! entries that name it, one pass is enough; otherwise the length of the longest inverted chain bounds the number of passes.
//! Between passes, only hashes of names and numbers of entries stay in memory, never a value.

use std::{
    collections::{HashSet, hash_map::RandomState},
    hash::BuildHasher,
};

use super::entry::Entry;

/// The attempted and the deferred entries.
#[derive(Default)]
pub(crate) struct Order {
    names: RandomState,
    /// The certificates in the file.
    listed: HashSet<NameHash>,
    attempted: HashSet<NameHash>,
    deferred: HashSet<NameHash>,
    /// The numbers of the attempted and the invalid entries.
    done: HashSet<usize>,
    has_progressed: bool,
    /// Whether this is the last pass: the remaining entries wait for each other.
    is_last: bool,
}

/// A hash of a name, ignoring case. The chance of a collision among 100,000 names is about 10⁻¹⁰; a collision would delay an
/// entry until another one is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NameHash(u64);

/// The action for an entry in this pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Skip it: it was attempted in an earlier pass.
    Done,
    /// Defer it to the next pass.
    Deferred,
    /// Attempt it now. If it `is_repeated`, wait for all requests in progress first.
    Now {
        /// Whether an earlier entry has the same name.
        is_repeated: bool,
    },
}

impl Order {
    pub(crate) fn hash(&self, name: &str) -> NameHash {
        NameHash(self.names.hash_one(name.to_ascii_lowercase()))
    }

    /// Registers an entry during the first reading of the file.
    pub(crate) fn register(&mut self, entry: &Entry) {
        if entry.is_certificate() {
            let name = self.hash(&entry.credential.name);
            self.listed.insert(name);
        }
    }

    pub(crate) fn contains_certificate(&self, certificate: &str) -> bool {
        self.listed.contains(&self.hash(certificate))
    }

    /// Decides on an entry. An entry to attempt counts as attempted from then on.
    pub(crate) fn decide(&mut self, entry: &Entry) -> Decision {
        let number = entry.position.entry;
        if self.done.contains(&number) {
            return Decision::Done;
        }
        let name = self.hash(&entry.credential.name);
        if self.deferred.contains(&name) || self.waits_for_authority(entry, name) {
            self.deferred.insert(name);
            return Decision::Deferred;
        }
        self.mark_done(number);
        self.has_progressed = true;
        let is_repeated = !self.attempted.insert(name);
        Decision::Now { is_repeated }
    }

    /// Marks an entry as done. Returns whether it was done before.
    pub(crate) fn mark_done(&mut self, entry: usize) -> bool {
        !self.done.insert(entry)
    }

    pub(crate) fn end_pass(&mut self) -> bool {
        let needs_another_pass = !self.deferred.is_empty();
        self.deferred.clear();
        self.is_last = !self.has_progressed;
        self.has_progressed = false;
        needs_another_pass
    }

    fn waits_for_authority(&self, entry: &Entry, name: NameHash) -> bool {
        let Some(ca_name) = &entry.ca_name else {
            return false;
        };
        let authority = self.hash(ca_name);
        let is_pending = self.listed.contains(&authority) && !self.attempted.contains(&authority);
        authority != name && !self.is_last && (is_pending || self.deferred.contains(&authority))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SetCredential, transfer::entry::Position};

    /// Returns the order of attempts and the number of passes for entries given by name and CA.
    fn attempted(listed: &[(&str, Option<&str>)]) -> (Vec<usize>, usize) {
        let entries: Vec<Entry> = (1..)
            .zip(listed)
            .map(|(entry, (name, ca_name))| Entry {
                position: Position { entry, line: None },
                credential: SetCredential::new(*name, "certificate", "").unwrap(),
                ca_name: ca_name.map(str::to_owned),
            })
            .collect();
        let mut order = Order::default();
        for entry in &entries {
            order.register(entry);
        }
        let mut attempted = Vec::new();
        let mut passes = 0;
        loop {
            passes += 1;
            for entry in &entries {
                if let Decision::Now { .. } = order.decide(entry) {
                    attempted.push(entry.position.entry);
                }
            }
            if !order.end_pass() {
                return (attempted, passes);
            }
        }
    }

    #[test]
    fn one_pass_is_enough_if_cas_come_first() {
        let listed = [
            ("/root", None),
            ("/inner", Some("/ROOT")),
            ("/leaf", Some("/inner")),
            ("/other", Some("/on-the-server")),
        ];
        assert_eq!(attempted(&listed), (vec![1, 2, 3, 4], 1));
    }

    #[test]
    fn entries_that_sign_each_other_are_attempted_too() {
        let listed = [("/a", Some("/b")), ("/b", Some("/a")), ("/c", Some("/c"))];
        let (mut entries, _) = attempted(&listed);
        entries.sort_unstable();
        assert_eq!(entries, [1, 2, 3]);
    }

    #[test]
    fn entries_with_the_same_name_are_attempted_in_file_order() {
        let listed = [
            ("/leaf", Some("/ca")),
            ("/leaf", None),
            ("/ca", None),
            ("/leaf", Some("/ca")),
        ];
        assert_eq!(attempted(&listed), (vec![3, 1, 2, 4], 2));
    }
}
