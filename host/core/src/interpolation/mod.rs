//! Interpolation: putting stored values into the places of a document that refer to them.
//!
//! The resolver, a plugin, only says where references are and what they name. It never sees a value: authorizing,
//! fetching, decrypting and substituting is done here.

mod splice;

use std::{collections::HashMap, sync::Arc};

use crate::{
    Failure, Secret,
    authorization::Caller,
    credential::{CredentialType, Credentials, LookupName},
    permission::Operation,
    ports::{PluginFailure, PluginFault, Reference, Resolver},
};
use splice::{Fillings, PlaceRefused};

/// The most that the values put into one document may have together, in bytes of JSON.
pub const REFERENCED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Interpolates documents.
#[derive(Clone)]
pub struct Interpolation {
    /// Where the values are.
    pub credentials: Credentials,
    /// What finds the references.
    pub resolver: Arc<dyn Resolver>,
}

impl Interpolation {
    /// Replaces every reference in a document, a JSON text, by the newest value of what it names. Everything else stays
    /// as it is written.
    ///
    /// # Errors
    /// [`Failure::NotFound`] for the first reference that names nothing that the caller may read, [`Failure::ReferenceNotJson`] for the first
    /// that names a credential of another type, or when the resolver refuses or fails.
    pub async fn interpolate(&self, caller: &Caller, document: &str) -> Result<String, Failure> {
        let references = self.resolver.find_references(document).await?;
        if references.is_empty() {
            return Ok(document.to_owned());
        }
        let values = self.fetch(caller, &references).await?;
        let mut fillings = Fillings::default();
        let mut bytes = 0;
        for reference in &references {
            let value = values
                .get(LookupName::new(&reference.name).folded())
                .ok_or(Failure::NotFound)?;
            bytes += value.expose().len();
            if bytes > REFERENCED_BYTES_MAX {
                return Err(Failure::ReferencesTooLarge { limit: "16 MiB" });
            }
            fillings.put(&reference.pointer, value.expose())?;
        }
        Ok(fillings.fill(document)?)
    }

    /// The newest value of everything that is referred to, by folded name; fails for the first reference, in the
    /// document's order, that can't be filled.
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
        let stored = credentials.repository.newest_by_names(&names).await?;
        let mut by_name: HashMap<String, _> = stored
            .into_iter()
            .map(|version| (version.name.lookup().folded().to_owned(), version))
            .collect();
        let mut fetched = HashMap::new();
        for name in in_order {
            if fetched.contains_key(name.folded()) {
                continue;
            }
            let permit = rules.permit(caller, Operation::Read, &name)?;
            let version = by_name.remove(name.folded()).ok_or(Failure::NotFound)?;
            if version.credential_type.as_str() != CredentialType::JSON {
                return Err(Failure::ReferenceNotJson(version.name));
            }
            permit.touched_version(version.credential_id, version.id);
            let value = credentials.open(&permit, version)?.content.value;
            fetched.insert(name.folded().to_owned(), value);
        }
        Ok(fetched)
    }
}

/// The resolver names places that the document does not have, or one twice.
impl From<PlaceRefused> for Failure {
    fn from(_: PlaceRefused) -> Self {
        Self::Plugin(PluginFailure::Faulted {
            plugin: "resolver".to_owned(),
            fault: PluginFault::OutputMalformed,
        })
    }
}
