//! The order in which certificates are regenerated: each after its signer.

use std::{
    borrow::Borrow,
    collections::{HashMap, HashSet, VecDeque},
    iter,
};

use crate::credential::{CredentialName, LookupName, StoredVersion, regenerate::signer_of};

/// The certificates that are still to be checked or regenerated, as their latest versions.
///
/// Some are ready. The others wait until their signer is finished. If certificates would wait for each other in a cycle, because
/// each was once signed by the next, one of them is ready, and its stored signer signs it.
pub(super) struct Order<T> {
    ready: VecDeque<T>,
    /// By the folded name of the signer.
    waiting: HashMap<String, Vec<T>>,
}

impl<T: Borrow<StoredVersion>> Order<T> {
    pub(super) fn new(found: Vec<T>) -> Self {
        let folded = |version: &T| version.borrow().name.folded();
        let names: HashSet<String> = found.iter().map(folded).collect();
        let mut signers = HashMap::new();
        for version in &found {
            let signer = folded_signer(version.borrow());
            if let Some(signer) = signer.filter(|signer| names.contains(signer)) {
                signers.insert(folded(version), signer);
            }
        }
        let starts = cycle_starts(&signers);
        let mut order = Self {
            ready: VecDeque::new(),
            waiting: HashMap::new(),
        };
        for version in found {
            let name = folded(&version);
            match signers.get(&name).filter(|_| !starts.contains(&name)) {
                Some(signer) => order
                    .waiting
                    .entry(signer.clone())
                    .or_default()
                    .push(version),
                None => order.ready.push_back(version),
            }
        }
        order
    }

    /// Starts a certificate that is ready. `None` if there are no more, or the others wait for certificates in progress.
    pub(super) fn next(&mut self) -> Option<T> {
        self.ready.pop_front()
    }

    /// Finishes a certificate, whether or not it failed. The certificates that waited for it are ready then.
    pub(super) fn finish(&mut self, name: &LookupName) {
        let released = self.waiting.remove(name.folded()).unwrap_or_default();
        self.ready.extend(released);
    }
}

/// Returns the first name of each cycle of signers. It does not depend on the order in which the certificates were found, so a dry
/// run and a real run start the same one.
fn cycle_starts(signers: &HashMap<String, String>) -> HashSet<&String> {
    let mut starts = HashSet::new();
    // The beginning of the walk that first reached a name.
    let mut reached = HashMap::new();
    for begin in signers.keys() {
        let mut name = begin;
        while let Some(signer) = signers.get(name)
            && !reached.contains_key(name)
        {
            reached.insert(name, begin);
            name = signer;
        }
        if reached.get(name) == Some(&begin) {
            let following = |member: &&String| signers.get(*member).filter(|next| *next != name);
            starts.extend(iter::successors(Some(name), following).min());
        }
    }
    starts
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
                vec!["/a", "/c", "/b", "/d"],
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
