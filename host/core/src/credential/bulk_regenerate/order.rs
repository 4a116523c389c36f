//! In which order certificates are regenerated: each after the one that signs it.

use std::collections::{BTreeMap, HashSet, VecDeque};

use crate::credential::{CredentialName, LookupName, StoredVersion, regenerate::signer_of};

/// The certificates that are still to be regenerated.
///
/// Some are ready; the others wait until the one that signs them is finished. Where certificates wait for each other in a
/// circle, because each was once signed by the next, the one of them that was found first goes first, and is signed by what
/// is stored.
pub(super) struct Order {
    ready: VecDeque<StoredVersion>,
    /// By the folded name of the certificate that they wait for.
    waiting: BTreeMap<String, Vec<Waiting>>,
    under_way: usize,
}

struct Waiting {
    /// Its place among all that were found.
    place: usize,
    version: StoredVersion,
}

impl Order {
    pub(super) fn new(found: Vec<StoredVersion>) -> Self {
        let names: HashSet<String> = found.iter().map(folded_name).collect();
        let mut order = Self {
            ready: VecDeque::new(),
            waiting: BTreeMap::new(),
            under_way: 0,
        };
        for (place, version) in found.into_iter().enumerate() {
            match folded_signer(&version).filter(|signer| names.contains(signer)) {
                Some(signer) => {
                    let waiting = order.waiting.entry(signer).or_default();
                    waiting.push(Waiting { place, version });
                }
                None => order.ready.push_back(version),
            }
        }
        order
    }

    /// Begins one that is ready. None: there are no more, or those that are left wait for one that is under way.
    pub(super) fn next(&mut self) -> Option<StoredVersion> {
        if self.ready.is_empty() && self.under_way == 0 {
            let first = self.take_from_circle();
            self.ready.extend(first);
        }
        let next = self.ready.pop_front()?;
        self.under_way += 1;
        Some(next)
    }

    /// Makes those ready that waited for this one.
    pub(super) fn finish(&mut self, name: &LookupName) {
        self.under_way = self.under_way.saturating_sub(1);
        let released = self.waiting.remove(name.folded()).unwrap_or_default();
        self.ready
            .extend(released.into_iter().map(|waiting| waiting.version));
    }

    /// When all that are left wait, each of them leads into a circle.
    fn take_from_circle(&mut self) -> Option<StoredVersion> {
        let circle = self.circle();
        let (signer, place) = self
            .waiting
            .iter()
            .flat_map(|(signer, all)| all.iter().map(move |waiting| (signer, waiting)))
            .filter(|(_, waiting)| circle.contains(&folded_name(&waiting.version)))
            .map(|(signer, waiting)| (signer.clone(), waiting.place))
            .min_by_key(|(_, place)| *place)?;
        let all = self.waiting.get_mut(&signer)?;
        let index = all.iter().position(|waiting| waiting.place == place)?;
        let taken = all.remove(index).version;
        if all.is_empty() {
            self.waiting.remove(&signer);
        }
        Some(taken)
    }

    /// The folded names of one circle.
    fn circle(&self) -> HashSet<String> {
        let signers: BTreeMap<String, &String> = self
            .waiting
            .iter()
            .flat_map(|(signer, all)| {
                all.iter()
                    .map(move |waiting| (folded_name(&waiting.version), signer))
            })
            .collect();
        let step = |name: &String| signers.get(name).map(|signer| (*signer).clone());
        let mut passed = HashSet::new();
        let mut at = signers.keys().next().cloned();
        while let Some(name) = at.clone().filter(|name| !passed.contains(name)) {
            at = step(&name);
            passed.insert(name);
        }
        let mut circle = HashSet::new();
        while let Some(name) = at.clone().filter(|name| !circle.contains(name)) {
            at = step(&name);
            circle.insert(name);
        }
        circle
    }
}

fn folded_name(version: &StoredVersion) -> String {
    version.name.lookup().folded().to_owned()
}

/// Nothing waits for itself.
fn folded_signer(version: &StoredVersion) -> Option<String> {
    signer_of(version)
        .map(CredentialName::lookup)
        .filter(|signer| *signer != version.name.lookup())
        .map(|signer| signer.folded().to_owned())
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;
    use crate::{credential::CredentialType, ports::Envelope};

    fn version(name: &str, signer: &str) -> StoredVersion {
        StoredVersion {
            id: Uuid::nil(),
            sequence: 0,
            credential_id: Uuid::nil(),
            name: CredentialName::parse(name).unwrap(),
            credential_type: CredentialType::parse("certificate").unwrap(),
            created_at: DateTime::UNIX_EPOCH,
            is_transitional: false,
            is_generated: Some(true),
            certificate: None,
            signed_by: Some(CredentialName::parse(signer).unwrap()),
            issuer: None,
            provenance: None,
            envelope: Envelope {
                key_id: Uuid::nil(),
                nonce: Vec::new(),
                ciphertext: Vec::new(),
            },
        }
    }

    fn order(found: &[(&str, &str)]) -> Order {
        let found = found.iter().map(|(name, signer)| version(name, signer));
        Order::new(found.collect())
    }

    /// Everything in the order in which it is begun when each is finished before the next one.
    fn one_by_one(found: &[(&str, &str)]) -> Vec<String> {
        let mut order = order(found);
        let mut begun = Vec::new();
        while let Some(next) = order.next() {
            order.finish(&next.name.lookup());
            begun.push(next.name.to_string());
        }
        begun
    }

    #[test]
    fn each_comes_after_its_signer_wherever_it_was_found() {
        for (found, begun) in [
            (
                vec![("/a", "/root"), ("/b", "/a"), ("/c", "/b")],
                ["/a", "/b", "/c"],
            ),
            (
                vec![("/c", "/B"), ("/b", "/A"), ("/a", "/root")],
                ["/a", "/b", "/c"],
            ),
            (
                vec![("/own", "/own"), ("/b", "/a"), ("/a", "/elsewhere")],
                ["/own", "/a", "/b"],
            ),
        ] {
            assert_eq!(one_by_one(&found), begun);
        }
    }

    #[test]
    fn a_circle_ends_and_what_hangs_on_it_comes_after_it() {
        for (found, begun) in [
            (vec![("/b", "/a"), ("/a", "/b")], vec!["/b", "/a"]),
            (
                vec![("/leaf", "/x"), ("/y", "/x"), ("/x", "/y")],
                vec!["/y", "/x", "/leaf"],
            ),
            (
                vec![("/a", "/b"), ("/b", "/a"), ("/c", "/d"), ("/d", "/c")],
                vec!["/a", "/b", "/c", "/d"],
            ),
        ] {
            assert_eq!(one_by_one(&found), begun);
        }
    }

    #[test]
    fn what_waits_for_one_under_way_is_not_begun() {
        let mut order = order(&[("/a", "/root"), ("/b", "/root"), ("/c", "/a")]);
        let first = order.next().unwrap();
        assert_eq!(order.next().unwrap().name.as_str(), "/b");
        assert!(order.next().is_none());
        order.finish(&first.name.lookup());
        assert_eq!(order.next().unwrap().name.as_str(), "/c");
        assert!(order.next().is_none());
    }
}
