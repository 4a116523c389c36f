//! Interpolation: putting stored values into the places of a document that refer to them.
//!
//! The resolver, a plugin, only says where references are and what they name. It never sees a value: authorizing,
//! fetching, decrypting and substituting is done here.

mod splice;

use std::{collections::HashMap, sync::Arc};

use crate::{
    Failure, Secret,
    authorization::{Caller, Rules},
    credential::{CredentialType, Credentials, LookupName, StoredVersion},
    permission::Operation,
    ports::{PluginFailure, PluginFault, Reference, Resolvers},
};
use splice::{Fillings, PlaceRefused};

/// The most that the versions put into one document may have together, each as often as it is referred to, in bytes as they
/// are sealed: their values, and what little is kept beside each.
pub const REFERENCED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Interpolates documents.
#[derive(Clone)]
pub struct Interpolation {
    /// Where the values are.
    pub credentials: Credentials,
    /// What finds the references.
    pub resolvers: Arc<dyn Resolvers>,
}

impl Interpolation {
    /// Replaces every reference in a document, a JSON text, by the newest value of what it names. Everything else stays
    /// as it is written.
    ///
    /// # Errors
    /// [`Failure::NoResolver`] where none is configured, [`Failure::NotFound`] for the first reference that names nothing that the caller may read,
    /// [`Failure::ReferenceNotJson`] for the first that names a credential of another type,
    /// [`Failure::ReferencesTooLarge`] beyond [`REFERENCED_BYTES_MAX`]; or when the resolver refuses or fails.
    pub async fn interpolate(&self, caller: &Caller, document: &str) -> Result<String, Failure> {
        let resolver = self.resolvers.resolver().ok_or(Failure::NoResolver)?;
        let references = resolver.find_references(caller.actor(), document).await?;
        if references.is_empty() {
            return Ok(document.to_owned());
        }
        let values = self.fetch(caller, &references).await?;
        let mut fillings = Fillings::default();
        for reference in &references {
            let value = values
                .get(LookupName::new(&reference.name).folded())
                .ok_or(Failure::NotFound)?;
            fillings.put(&reference.pointer, value.expose())?;
        }
        Ok(fillings.fill(document)?)
    }

    /// The newest value of everything that is referred to, by folded name; fails for the first reference, in the
    /// document's order, that can't be filled. Nothing is decrypted before all of it may be, and is not too much.
    async fn fetch(
        &self,
        caller: &Caller,
        references: &[Reference],
    ) -> Result<HashMap<String, Secret>, Failure> {
        let in_order: Vec<LookupName> = references
            .iter()
            .map(|reference| LookupName::new(&reference.name))
            .collect();
        let credentials = &self.credentials;
        let rules = credentials.authorization.rules_of(caller).await?;
        // Nothing is read from the first on that the caller may not: how long that takes would tell that it is there.
        let mut names: Vec<LookupName> = in_order
            .iter()
            .take_while(|name| rules.allow(Operation::Read, name.asked()))
            .cloned()
            .collect();
        names.sort_unstable_by(|one, other| one.folded().cmp(other.folded()));
        names.dedup();
        let readable = self
            .readable_names(caller, &rules, &in_order, names)
            .await?;
        let mut by_name = self.newest_by_folded_name(&readable).await?;
        let mut permits = HashMap::new();
        let mut size = ReferencedSize::default();
        for name in &in_order {
            // For each casing in which a name is asked for: another one may be permitted where this is not.
            let permit = rules.permit(caller, Operation::Read, name)?;
            let version = by_name.get(name.folded()).ok_or(Failure::NotFound)?;
            if version.credential_type.as_str() != CredentialType::JSON {
                return Err(Failure::ReferenceNotJson(version.name.clone()));
            }
            permit.touched_version(version.credential_id, version.id);
            size.add(version)?;
            permits.insert(name.folded(), permit);
        }
        let mut opened = HashMap::with_capacity(permits.len());
        for (folded, permit) in permits {
            let version = by_name.remove(folded).ok_or(Failure::NotFound)?;
            let value = credentials.open(&permit, version).await?.content.value;
            opened.insert(folded.to_owned(), value);
        }
        Ok(opened)
    }

    /// The names of those of these credentials that exist, and whose stored names the caller may read as well, with memory
    /// reserved for a document that has their values as often as it refers to them.
    async fn readable_names(
        &self,
        caller: &Caller,
        rules: &Rules,
        in_order: &[LookupName],
        names: Vec<LookupName>,
    ) -> Result<Vec<LookupName>, Failure> {
        let mut sizes = HashMap::new();
        for names in names.chunks(NAMES_AT_ONCE) {
            let repository = &self.credentials.repository;
            for newest in repository.newest_sizes_by_names(names).await? {
                if rules.allow(Operation::Read, newest.name.as_str()) {
                    let name = newest.name.lookup().folded().to_owned();
                    sizes.insert(name, newest.ciphertext_bytes);
                }
            }
        }
        let referenced = in_order.iter().filter_map(|name| sizes.get(name.folded()));
        let bytes = referenced.fold(0, |sum: usize, size| sum.saturating_add(*size));
        // What is more than may be put into one document is refused below.
        caller.reserve(bytes.min(REFERENCED_BYTES_MAX))?;
        let is_readable = |name: &LookupName| sizes.contains_key(name.folded());
        Ok(names.into_iter().filter(is_readable).collect())
    }

    /// The newest version of each of these credentials that exists, some at a time, so that no more is ever held than may
    /// be filled in, and what is read in one go.
    async fn newest_by_folded_name(
        &self,
        names: &[LookupName],
    ) -> Result<HashMap<String, StoredVersion>, Failure> {
        let mut by_name = HashMap::new();
        let mut size = ReferencedSize::default();
        for names in names.chunks(NAMES_AT_ONCE) {
            let repository = &self.credentials.repository;
            for version in repository.newest_by_names(names).await? {
                size.add(&version)?;
                by_name.insert(version.name.lookup().folded().to_owned(), version);
            }
        }
        Ok(by_name)
    }
}

/// The bytes of versions that are to be put into one document.
#[derive(Default)]
struct ReferencedSize(usize);

impl ReferencedSize {
    /// Adds one version, still encrypted.
    fn add(&mut self, version: &StoredVersion) -> Result<(), Failure> {
        self.0 += version.envelope.ciphertext.len();
        if self.0 > REFERENCED_BYTES_MAX {
            return Err(Failure::ReferencesTooLarge { limit: "16 MiB" });
        }
        Ok(())
    }
}

/// How many credentials are read by one query.
const NAMES_AT_ONCE: usize = 256;

/// The resolver names places that the document does not have, or one twice.
impl From<PlaceRefused> for Failure {
    fn from(_: PlaceRefused) -> Self {
        Self::Plugin(PluginFailure::Faulted {
            plugin: "resolver".to_owned(),
            fault: PluginFault::OutputMalformed,
        })
    }
}
