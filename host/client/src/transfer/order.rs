//! In which order entries are set: a certificate after the authority that signed it, everything else as it stands in
//! the file.
//!
//! The file is read as often as it takes. In each pass, an entry whose authority is listed but was not yet tried is put
//! off to the next; so there are at most as many passes as the longest chain has links that stand the wrong way round,
//! and one when authorities stand before what they signed. What is kept in memory between passes are hashes of names and
//! one bit of each entry, never a value.

use std::{
    collections::{HashSet, hash_map::RandomState},
    hash::BuildHasher,
};

use super::entry::Entry;

/// What has been tried, and what waits.
#[derive(Default)]
pub(crate) struct Order {
    names: RandomState,
    /// Certificates that the file lists.
    listed: HashSet<NameHash>,
    /// Names that were tried.
    tried: HashSet<NameHash>,
    /// Names that were put off in this pass.
    put_off: HashSet<NameHash>,
    /// Which entries were tried, by their position from 1.
    done: Vec<bool>,
    has_progressed: bool,
    /// Nothing can be waited for any more: what is left waits for itself.
    is_last: bool,
}

/// A name, its case folded, as a number. That two names share one has a chance of some 10⁻¹⁰ among 100,000, and would
/// have one credential wait for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NameHash(u64);

/// What to do with an entry in this pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It was tried in an earlier pass.
    Done,
    /// It waits for the next pass.
    PutOff,
    /// Try it, after all others that were begun when it `is_repeated`: its name was listed before.
    Now {
        /// Whether an earlier entry has the same name.
        is_repeated: bool,
    },
}

impl Order {
    /// The number that stands for a name.
    pub(crate) fn hash(&self, name: &str) -> NameHash {
        NameHash(self.names.hash_one(name.to_ascii_lowercase()))
    }

    /// Learns of an entry, in a first reading of the whole file.
    pub(crate) fn list(&mut self, entry: &Entry) {
        if entry.is_certificate() {
            let name = self.hash(&entry.name);
            self.listed.insert(name);
        }
    }

    /// Whether the file lists a certificate of this name.
    pub(crate) fn lists(&self, certificate: &str) -> bool {
        self.listed.contains(&self.hash(certificate))
    }

    /// Decides on an entry. One that may be tried counts as tried from here on.
    pub(crate) fn turn(&mut self, entry: &Entry) -> Turn {
        let position = entry.place.position;
        if self.done.get(position).is_some_and(|done| *done) {
            return Turn::Done;
        }
        let name = self.hash(&entry.name);
        if self.put_off.contains(&name) || self.waits_for_authority(entry, name) {
            self.put_off.insert(name);
            return Turn::PutOff;
        }
        self.mark_done(position);
        self.has_progressed = true;
        let is_repeated = !self.tried.insert(name);
        Turn::Now { is_repeated }
    }

    /// Marks an entry that can't be tried at all, and says whether it was marked before.
    pub(crate) fn mark_done(&mut self, position: usize) -> bool {
        if self.done.len() <= position {
            self.done.resize(position + 1, false);
        }
        self.done
            .get_mut(position)
            .is_some_and(|done| std::mem::replace(done, true))
    }

    /// Ends a pass, and says whether there must be another.
    pub(crate) fn end_pass(&mut self) -> bool {
        let is_another = !self.put_off.is_empty();
        self.put_off.clear();
        self.is_last = !self.has_progressed;
        self.has_progressed = false;
        is_another
    }

    fn waits_for_authority(&self, entry: &Entry, name: NameHash) -> bool {
        let Some(ca_name) = &entry.ca_name else {
            return false;
        };
        let authority = self.hash(ca_name);
        let is_to_come = self.listed.contains(&authority) && !self.tried.contains(&authority);
        authority != name && !self.is_last && (is_to_come || self.put_off.contains(&authority))
    }
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;
    use crate::transfer::entry::Place;

    /// The order in which entries are tried, each given as its name and its authority's.
    fn tried(listed: &[(&str, Option<&str>)]) -> (Vec<usize>, usize) {
        let entries: Vec<Entry> = (1..)
            .zip(listed)
            .map(|(position, (name, ca_name))| Entry {
                place: Place {
                    position,
                    line: None,
                },
                name: (*name).to_owned(),
                credential_type: "certificate".to_owned(),
                value: Zeroizing::default(),
                metadata: None,
                ca_name: ca_name.map(str::to_owned),
            })
            .collect();
        let mut order = Order::default();
        for entry in &entries {
            order.list(entry);
        }
        let mut tried = Vec::new();
        let mut passes = 0;
        loop {
            passes += 1;
            for entry in &entries {
                if let Turn::Now { .. } = order.turn(entry) {
                    tried.push(entry.place.position);
                }
            }
            if !order.end_pass() {
                return (tried, passes);
            }
        }
    }

    #[test]
    fn what_stands_in_order_is_tried_in_one_pass() {
        let listed = [
            ("/root", None),
            ("/inner", Some("/ROOT")),
            ("/leaf", Some("/inner")),
            ("/other", Some("/on-the-server")),
        ];
        assert_eq!(tried(&listed), (vec![1, 2, 3, 4], 1));
    }

    #[test]
    fn a_chain_the_wrong_way_round_is_tried_from_its_root() {
        let names: Vec<String> = (0..50).map(|depth| format!("/{depth}")).collect();
        let listed: Vec<_> = names
            .iter()
            .zip(
                names
                    .iter()
                    .skip(1)
                    .map(|name| Some(name.as_str()))
                    .chain([None]),
            )
            .map(|(name, ca_name)| (name.as_str(), ca_name))
            .collect();
        let expected: Vec<usize> = (1..=50).rev().collect();
        assert_eq!(tried(&listed), (expected, 50));
    }

    #[test]
    fn those_that_sign_each_other_are_tried_all_the_same() {
        let listed = [("/a", Some("/b")), ("/b", Some("/a")), ("/c", Some("/c"))];
        let (mut positions, _) = tried(&listed);
        positions.sort_unstable();
        assert_eq!(positions, [1, 2, 3]);
    }

    #[test]
    fn a_name_that_is_listed_twice_is_tried_in_the_order_of_the_file() {
        let listed = [
            ("/leaf", Some("/ca")),
            ("/leaf", None),
            ("/ca", None),
            ("/leaf", Some("/ca")),
        ];
        assert_eq!(tried(&listed), (vec![3, 1, 2, 4], 2));
    }
}
