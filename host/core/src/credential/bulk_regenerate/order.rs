//! The order in which certificates are regenerated: each after its signer.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, HashSet, VecDeque},
};

use crate::credential::{CredentialName, LookupName, StoredVersion, regenerate::signer_of};

/// The certificates that are still to be checked or regenerated, as their latest versions.
///
/// Some are ready. The others wait until their signer is finished. If certificates wait for each other in a cycle, because
/// each was once signed by the next, one of them is started, and its stored signer signs it.
pub(super) struct Order<T> {
    ready: VecDeque<T>,
    /// By the folded name of the signer.
    waiting: BTreeMap<String, Vec<T>>,
    in_progress: usize,
}

impl<T: Borrow<StoredVersion>> Order<T> {
    pub(super) fn new(found: Vec<T>) -> Self {
        let names: HashSet<String> = found
            .iter()
            .map(|version| version.borrow().name.folded())
            .collect();
        let mut order = Self {
            ready: VecDeque::new(),
            waiting: BTreeMap::new(),
            in_progress: 0,
        };
        for version in found {
            match folded_signer(version.borrow()).filter(|signer| names.contains(signer)) {
                Some(signer) => order.waiting.entry(signer).or_default().push(version),
                None => order.ready.push_back(version),
            }
        }
        order
    }

    /// Starts a certificate that is ready. `None` if there are no more, or the others wait for certificates in progress.
    pub(super) fn next(&mut self) -> Option<T> {
        if self.ready.is_empty() && self.in_progress == 0 {
            let first = self.take_from_cycle();
            self.ready.extend(first);
        }
        let next = self.ready.pop_front()?;
        self.in_progress += 1;
        Some(next)
    }

    /// Finishes a certificate, whether or not it failed. The certificates that waited for it are ready then.
    pub(super) fn finish(&mut self, name: &LookupName) {
        self.in_progress = self.in_progress.saturating_sub(1);
        let released = self.waiting.remove(name.folded()).unwrap_or_default();
        self.ready.extend(released);
    }

    /// Takes a certificate of a cycle. All remaining certificates wait, so from each of them the signers lead into a cycle.
    fn take_from_cycle(&mut self) -> Option<T> {
        let folded = |version: &T| version.borrow().name.folded();
        let waiting = self.waiting.iter();
        let signers: BTreeMap<String, &String> = waiting
            .flat_map(|(signer, all)| all.iter().map(move |version| (folded(version), signer)))
            .collect();
        let mut name = signers.keys().next()?;
        // After as many steps as there are names, the walk is on a cycle.
        for _ in 0..signers.len() {
            name = signers.get(name)?;
        }
        // The start does not depend on other certificates, so that a dry run and a real run start the same one.
        let mut first = name;
        for _ in 0..signers.len() {
            name = signers.get(name)?;
            first = first.min(name);
        }
        let (name, signer) = (first.clone(), (*signers.get(first)?).clone());
        let all = self.waiting.get_mut(&signer)?;
        let position = all.iter().position(|version| folded(version) == name)?;
        let taken = all.remove(position);
        if all.is_empty() {
            self.waiting.remove(&signer);
        }
        Some(taken)
    }
}

/// Returns the folded name of another credential that signed the version, or `None`.
pub(super) fn folded_signer(version: &StoredVersion) -> Option<String> {
    signer_of(&version.name, &version.attributes)
        .map(CredentialName::lookup)
        .filter(|signer| !signer.is(&version.name))
        .map(|signer| signer.folded().to_owned())
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;
    use crate::{
        credential::{CredentialType, VersionAttributes},
        ports::Envelope,
    };

    fn version(name: &str, signer: &str) -> StoredVersion {
        StoredVersion {
            id: Uuid::nil(),
            sequence: 0,
            credential_id: Uuid::nil(),
            name: CredentialName::parse(name).unwrap(),
            credential_type: CredentialType::parse("certificate").unwrap(),
            created_at: DateTime::UNIX_EPOCH,
            attributes: VersionAttributes {
                signed_by: Some(CredentialName::parse(signer).unwrap()),
                ..VersionAttributes::default()
            },
            envelope: Envelope {
                key_id: Uuid::nil(),
                nonce: Vec::new(),
                ciphertext: Vec::new(),
            },
        }
    }

    fn order(found: &[(&str, &str)]) -> Order<StoredVersion> {
        let found = found.iter().map(|(name, signer)| version(name, signer));
        Order::new(found.collect())
    }

    /// Returns all names in the order in which they are started, if each is finished before the next one is started.
    fn one_by_one(found: &[(&str, &str)]) -> Vec<String> {
        let mut order = order(found);
        let mut started = Vec::new();
        while let Some(next) = order.next() {
            order.finish(&next.name.lookup());
            started.push(next.name.to_string());
        }
        started
    }

    #[test]
    fn a_cycle_is_broken_and_certificates_below_it_follow() {
        for (found, started) in [
            (vec![("/b", "/a"), ("/a", "/b")], vec!["/a", "/b"]),
            (
                vec![("/leaf", "/x"), ("/y", "/x"), ("/x", "/y")],
                vec!["/x", "/leaf", "/y"],
            ),
            (
                vec![("/leaf", "/b"), ("/a", "/b"), ("/b", "/a")],
                vec!["/a", "/b", "/leaf"],
            ),
            (
                vec![("/a", "/b"), ("/b", "/a"), ("/c", "/d"), ("/d", "/c")],
                vec!["/a", "/b", "/c", "/d"],
            ),
        ] {
            assert_eq!(one_by_one(&found), started);
        }
    }

    #[test]
    fn a_certificate_waits_while_its_signer_is_in_progress() {
        let mut order = order(&[("/a", "/root"), ("/b", "/root"), ("/c", "/a")]);
        let first = order.next().unwrap();
        assert_eq!(order.next().unwrap().name.as_str(), "/b");
        assert!(order.next().is_none());
        order.finish(&first.name.lookup());
        assert_eq!(order.next().unwrap().name.as_str(), "/c");
        assert!(order.next().is_none());
    }
}
