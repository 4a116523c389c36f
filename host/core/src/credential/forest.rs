//! The CAs as a forest: below each CA, the CAs that it signed. The size of a page does not depend on the number of CAs.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    ops::ControlFlow,
};

use chrono::{DateTime, Utc};

use crate::{
    UseCaseError,
    authorization::{Caller, EffectivePermissions},
    certificate::CertificateDetails,
    credential::{
        CertificateCredentials, CredentialName, ListedCertificate, SignedCredential,
        certificates::ChainExpiries, listing::ReadableList,
    },
    permission::Operation,
};

/// A page of the forest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForestPage {
    /// The trees, in the order of the names of their first CA. At most [`FOREST_AUTHORITIES_MAX`] CAs altogether.
    pub trees: Vec<AuthorityTree>,
    /// The name of the first CA of the next page; `None` for the last page.
    pub next: Option<CredentialName>,
    /// Whether there are more than [`AUTHORITIES_MAX`] CAs. If so, only the newest CAs are in the forest.
    pub has_more: bool,
}

/// A CA and the CAs below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorityTree {
    /// The name of its credential, with the casing of its first version.
    pub name: CredentialName,
    /// The contents of the certificate of its active version; `None` if it is missing, malformed, or can't be decrypted.
    pub details: Option<CertificateDetails>,
    /// The earliest expiry in the chain of that version.
    pub effective_expires_at: Option<DateTime<Utc>>,
    /// Whether it has a transitional version.
    pub is_in_rotation: bool,
    /// The credentials that it signed and that are not CAs below it, at most [`FOREST_SIGNED_MAX`].
    pub signed: Vec<SignedCredential>,
    /// Whether it signed more credentials.
    pub has_more_signed: bool,
    /// The CAs below it.
    pub below: Vec<AuthorityTree>,
    /// The number of CAs directly below it that are not on the page.
    pub more_below: usize,
}

impl CertificateCredentials {
    /// Returns a page of the CAs that the caller may read. `from` is the name of the page's first CA, from the previous page, or
    /// empty for the first page.
    ///
    /// A CA is below the signer of its latest version, if the caller may read the signer. CAs that signed each other are below the
    /// first of them. The names of signed credentials are returned even if the caller may not read them, as by
    /// [`CertificateCredentials::one`].
    pub async fn forest(&self, caller: &Caller, from: &str) -> Result<ForestPage, UseCaseError> {
        let permissions = self.authorization.permissions_of(caller).await?;
        let Some(mut readable) = ReadableList::new(caller, permissions) else {
            return Ok(ForestPage::default());
        };
        let mut count = 0;
        let mut receive = |authority| {
            let flow = readable.add_versions(authority);
            count = readable.len();
            if count > AUTHORITIES_MAX {
                return ControlFlow::Break(());
            }
            flow
        };
        let repository = self.store.repository.as_ref();
        repository.authorities(caller.actor(), &mut receive).await?;
        let mut authorities = readable.finish()?;
        authorities.truncate(AUTHORITIES_MAX);
        authorities.sort_by_cached_key(|authority| authority.name.folded());
        let forest = Forest::of(&authorities);
        let (shown, next) = forest.page(&from.to_ascii_lowercase());
        let permissions = self.authorization.permissions_of(caller).await?;
        let mut expiries = ChainExpiries::new(repository);
        let mut trees = HashMap::new();
        for index in &shown.order {
            if let Some(authority) = authorities.get(*index) {
                let tree = self.tree(caller, &permissions, authority, &mut expiries);
                trees.insert(*index, tree.await?);
            }
        }
        Ok(ForestPage {
            trees: forest.assemble(&shown, &mut trees),
            next: next
                .and_then(|index| authorities.get(index))
                .map(|authority| authority.name.clone()),
            has_more: count > AUTHORITIES_MAX,
        })
    }

    /// Reads one CA, without the CAs below it.
    async fn tree(
        &self,
        caller: &Caller,
        permissions: &EffectivePermissions,
        authority: &ListedCertificate,
        expiries: &mut ChainExpiries<'_>,
    ) -> Result<AuthorityTree, UseCaseError> {
        let repository = &self.store.repository;
        let name = &authority.name;
        let permit = permissions.permit(caller, Operation::Read, &name.lookup())?;
        let stored = match authority.active() {
            Some(active) => repository.version_by_id(active.id).await?,
            None => None,
        };
        let (mut details, mut effective_expires_at) = (None, None);
        if let Some(stored) = stored {
            effective_expires_at = expiries.of(stored.id, &stored.attributes).await?;
            permit.record_version(stored.credential_id, stored.id);
            details = match self.store.certificate_of(&permit, stored).await {
                Ok(fields) => {
                    let certificate = fields.certificate.as_deref();
                    certificate.and_then(|pem| self.certificates.details(pem))
                }
                // One damaged value must not hide all other CAs.
                Err(UseCaseError::Seal(_) | UseCaseError::StoredValueMalformed) => None,
                Err(failure) => return Err(failure),
            };
        }
        let lookup = name.lookup();
        let signed = self.first_signed(caller.actor(), permissions, &lookup, SIGNED_READ_MAX);
        let (signed, has_more_signed) = signed.await?;
        Ok(AuthorityTree {
            name: name.clone(),
            details,
            effective_expires_at,
            is_in_rotation: authority.transitional().is_some(),
            signed,
            has_more_signed,
            below: Vec::new(),
            more_below: 0,
        })
    }
}

/// The structure of the forest. A CA is the index in a list that is ordered by name.
struct Forest {
    roots: Vec<usize>,
    below: Vec<Vec<usize>>,
    names: Vec<String>,
}

/// The CAs on a page.
#[derive(Default)]
struct Shown {
    roots: Vec<usize>,
    /// All CAs, each after the CA above it.
    order: Vec<usize>,
}

impl Forest {
    fn of(authorities: &[ListedCertificate]) -> Self {
        let folded = |name: &CredentialName| name.folded();
        let names: Vec<_> = authorities.iter().map(|one| folded(&one.name)).collect();
        let positions: HashMap<&str, usize> = names
            .iter()
            .enumerate()
            .map(|(index, name)| (name.as_str(), index))
            .collect();
        let mut below = vec![Vec::new(); names.len()];
        let mut candidates = Vec::new();
        for (index, authority) in authorities.iter().enumerate() {
            let newest = authority.versions.first();
            let signer = newest.and_then(|newest| newest.signed_by.as_ref());
            let above = signer.and_then(|name| positions.get(folded(name).as_str()));
            match above.filter(|above| **above != index) {
                Some(above) => below
                    .get_mut(*above)
                    .into_iter()
                    .for_each(|of| of.push(index)),
                None => candidates.push(index),
            }
        }
        let mut forest = Self {
            roots: Vec::new(),
            below,
            names,
        };
        let mut reached = HashSet::new();
        // CAs that signed each other are below no root.
        for index in candidates.into_iter().chain(0..forest.names.len()) {
            if !reached.contains(&index) {
                forest.roots.push(index);
                forest.walk(index, usize::MAX, &mut reached);
            }
        }
        forest.roots.sort_unstable();
        forest
    }

    /// Returns a CA and the CAs below it, level by level, at most `count_max`. Omits CAs that were reached before.
    fn walk(&self, root: usize, count_max: usize, reached: &mut HashSet<usize>) -> Vec<usize> {
        let mut found = Vec::new();
        let mut waiting = VecDeque::from([root]);
        while let Some(index) = waiting.pop_front() {
            if found.len() == count_max {
                break;
            }
            if reached.insert(index) {
                found.push(index);
                waiting.extend(self.below.get(index).into_iter().flatten());
            }
        }
        found
    }

    /// Returns the CAs of the page that begins at a name, and the first root of the next page.
    fn page(&self, from: &str) -> (Shown, Option<usize>) {
        let mut shown = Shown::default();
        let mut reached = HashSet::new();
        let name = |index: &usize| self.names.get(*index).map_or("", String::as_str);
        for root in self.roots.iter().filter(|root| name(root) >= from) {
            let mut with_tree = reached.clone();
            let tree = self.walk(*root, FOREST_AUTHORITIES_MAX, &mut with_tree);
            if shown.order.len() + tree.len() > FOREST_AUTHORITIES_MAX {
                return (shown, Some(*root));
            }
            shown.roots.push(*root);
            shown.order.extend(tree);
            reached = with_tree;
        }
        (shown, None)
    }

    /// Builds the trees of a page.
    fn assemble(
        &self,
        shown: &Shown,
        trees: &mut HashMap<usize, AuthorityTree>,
    ) -> Vec<AuthorityTree> {
        // In reverse order, so that the trees below a CA are complete before its own tree.
        for index in shown.order.iter().rev() {
            let Some(mut tree) = trees.remove(index) else {
                continue;
            };
            let all = self.below.get(*index).map_or(&[][..], Vec::as_slice);
            let names: HashSet<_> = all
                .iter()
                .filter_map(|index| self.names.get(*index))
                .collect();
            tree.below = all
                .iter()
                .filter(|below| !shown.roots.contains(below))
                .filter_map(|below| trees.remove(below))
                .collect();
            tree.more_below = all.len() - tree.below.len();
            tree.signed
                .retain(|signed| !names.contains(&signed.name.folded()));
            tree.has_more_signed |= tree.signed.len() > FOREST_SIGNED_MAX;
            tree.signed.truncate(FOREST_SIGNED_MAX);
            trees.insert(*index, tree);
        }
        let roots = shown.roots.iter();
        roots.filter_map(|root| trees.remove(root)).collect()
    }
}

/// The maximum number of CAs in a forest.
pub const AUTHORITIES_MAX: usize = 10_000;

/// The maximum number of CAs on a page.
pub const FOREST_AUTHORITIES_MAX: usize = 50;

/// The maximum number of other credentials that are listed below a CA.
pub const FOREST_SIGNED_MAX: usize = 10;

/// The number of signed names that are read for a CA. They include the CAs below it, which are listed separately.
const SIGNED_READ_MAX: u32 = 64;
