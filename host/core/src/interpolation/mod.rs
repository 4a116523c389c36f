//! Interpolation: replacing the references in a document with stored values.
//!
//! The resolver, a plugin, only returns the positions and the names of the references. It never receives a value: the host
//! authorizes the caller, fetches and decrypts the values, and substitutes the references.

mod substitute;

use std::{collections::HashMap, sync::Arc};

use keywright_json::{Checked, is_control_or_invisible};

use crate::{
    Secret, UseCaseError,
    authorization::{Authorization, Caller, EffectivePermissions},
    credential::{
        CredentialType, LookupName, NAME_CHARACTERS_MAX, Pace, StoredVersion, VersionStore,
    },
    permission::Operation,
    ports::{PluginCallError, PluginFaultError, Reference, Resolvers},
};
use substitute::{PointerError, Substitutions};

/// The maximum total size of the versions substituted into one document, in bytes of ciphertext. A version counts once per
/// reference.
pub const REFERENCED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Interpolates documents.
#[derive(Clone)]
pub struct Interpolation {
    /// Decides which credentials the caller may read.
    pub authorization: Authorization,
    /// The stored values.
    pub store: VersionStore,
    /// Finds the references.
    pub resolvers: Arc<dyn Resolvers>,
}

impl Interpolation {
    /// Replaces every reference in a document with the active value of the named credential, or a part of it. The rest of the
    /// document stays as written.
    ///
    /// # Errors
    /// - [`UseCaseError::NoResolver`], or the error of the resolver.
    /// - [`UseCaseError::ReferenceNotFound`] for the first reference to a credential that does not exist or that the caller may not
    ///   read.
    /// - [`UseCaseError::ReferenceNotJson`] for the first reference that does not allow the type of its credential.
    /// - [`UseCaseError::ReferencesTooLarge`] beyond [`REFERENCED_BYTES_MAX`].
    /// - [`UseCaseError::ReferencedFieldMissing`] and [`UseCaseError::ReferenceNotScalar`], only after all other checks.
    pub async fn interpolate(
        &self,
        caller: &Caller,
        document: Checked<'_>,
    ) -> Result<String, UseCaseError> {
        let resolver = self.resolvers.resolver().ok_or(UseCaseError::NoResolver)?;
        let references = resolver
            .find_references(caller.actor(), document.text())
            .await?;
        if references.is_empty() {
            return Ok(document.text().to_owned());
        }
        caller.reserve(substitution_bytes(&references))?;
        let values = self.fetch(caller, &references).await?;
        let mut substitutions = Substitutions::default();
        let mut pace = Pace::default();
        for reference in &references {
            pace.step().await;
            let name = LookupName::new(&reference.name);
            let value = values.get(name.folded()).ok_or(UseCaseError::NotFound)?;
            let text = substitute(reference, value)?;
            substitutions.add(&reference.pointer, reference.range.clone(), text);
        }
        Ok(substitutions.apply(document)?)
    }

    /// Returns the values of all referenced credentials, by folded name. Fails for the first reference, in document
    /// order, that can't be resolved. Decrypts no value before all references are authorized and within the size limit.
    async fn fetch(
        &self,
        caller: &Caller,
        references: &[Reference],
    ) -> Result<HashMap<String, Secret>, UseCaseError> {
        let in_order: Vec<LookupName> = references
            .iter()
            .map(|reference| LookupName::new(&reference.name))
            .collect();
        let mut permissions = self
            .authorization
            .permissions_covering_all(caller, &in_order)
            .await?;
        // Stops at the first reference that the caller may not read: otherwise the response time would reveal whether that
        // credential exists.
        let mut names: Vec<LookupName> = in_order
            .iter()
            .take_while(|name| permissions.allow(Operation::Read, name.requested()))
            .cloned()
            .collect();
        names.sort_unstable_by(|one, other| one.folded().cmp(other.folded()));
        names.dedup();
        let mut by_name = HashMap::new();
        if names.len() <= NAMES_READ_FIRST {
            by_name = self.versions_by_folded_name(caller, &names).await?;
            names.retain(|name| !by_name.contains_key(name.folded()));
        }
        let mut reserved = 0;
        if !names.is_empty() {
            let readable;
            (readable, reserved) = self
                .readable_names(caller, &mut permissions, &in_order, &names)
                .await?;
            by_name.extend(self.versions_by_folded_name(caller, &readable).await?);
        }
        // An active version may be larger than the latest one.
        caller.reserve(referenced_bytes(&in_order, &by_name).saturating_sub(reserved))?;
        let mut permits = HashMap::new();
        let mut size = ReferencedSize::default();
        let mut pace = Pace::default();
        for (reference, name) in references.iter().zip(&in_order) {
            pace.step().await;
            // For each requested casing of a name: permissions can differ by casing.
            let permit = permissions.permit(caller, Operation::Read, name);
            let permit = permit.map_err(|failure| not_found(failure, name))?;
            let version = by_name.get(name.folded());
            let version = version.ok_or_else(|| not_found(UseCaseError::NotFound, name))?;
            let is_json = version.credential_type.as_str() == CredentialType::JSON;
            if !is_json && !reference.is_any_type {
                return Err(UseCaseError::ReferenceNotJson(version.name.clone()));
            }
            permit.record_version(version.credential_id, version.id);
            size.add(version)?;
            permits.insert(name.folded(), permit);
        }
        let mut opened = HashMap::with_capacity(permits.len());
        for (folded, permit) in permits {
            pace.step().await;
            let version = by_name.remove(folded).ok_or(UseCaseError::NotFound)?;
            let value = self.store.open(&permit, version).await?.content.value;
            opened.insert(folded.to_owned(), value);
        }
        Ok(opened)
    }

    /// Returns the stored names of the credentials that exist, if the caller may also read these names, and adds the permissions on
    /// them. Reserves memory for a document with their latest values, once per reference, and returns its size.
    async fn readable_names(
        &self,
        caller: &Caller,
        permissions: &mut EffectivePermissions,
        in_order: &[LookupName],
        names: &[LookupName],
    ) -> Result<(Vec<LookupName>, usize), UseCaseError> {
        let mut sizes = HashMap::new();
        for names in names.chunks(NAMES_AT_ONCE) {
            let repository = &self.store.repository;
            for newest in repository
                .newest_sizes_by_names(caller.actor(), names)
                .await?
            {
                sizes.insert(newest.name.folded(), newest);
            }
        }
        // Looks up permissions for names that do not exist, too, so that both refusals take the same time.
        let in_other_casing = |name: &LookupName| match sizes.get(name.folded()) {
            Some(newest) if newest.name.as_str() == name.requested() => None,
            Some(newest) => Some(newest.name.lookup()),
            None => Some(name.clone()),
        };
        let in_other_casing: Vec<_> = names.iter().filter_map(in_other_casing).collect();
        if !in_other_casing.is_empty() {
            let authorization = &self.authorization;
            let on_stored = authorization.permissions_covering_all(caller, &in_other_casing);
            *permissions = permissions.and(&on_stored.await?);
        }
        sizes.retain(|_, newest| permissions.allow(Operation::Read, newest.name.as_str()));
        let referenced = in_order.iter().filter_map(|name| sizes.get(name.folded()));
        let bytes = referenced.fold(0, |sum: usize, newest| {
            sum.saturating_add(newest.ciphertext_bytes)
        });
        // `versions_by_folded_name` refuses larger sizes.
        let bytes = bytes.min(REFERENCED_BYTES_MAX);
        caller.reserve(bytes)?;
        let readable = sizes.values().map(|newest| newest.name.lookup());
        Ok((readable.collect(), bytes))
    }

    /// Returns the active version of each of these credentials that exists in this casing, or the transitional version if it is
    /// the only one. Reads them in chunks, so that at most [`REFERENCED_BYTES_MAX`] plus one chunk is in memory.
    async fn versions_by_folded_name(
        &self,
        caller: &Caller,
        names: &[LookupName],
    ) -> Result<HashMap<String, StoredVersion>, UseCaseError> {
        let mut by_name = HashMap::new();
        let mut size = ReferencedSize::default();
        for names in names.chunks(NAMES_AT_ONCE) {
            let repository = &self.store.repository;
            for mut version in repository.newest_by_names(caller.actor(), names).await? {
                if version.attributes.is_transitional {
                    let current = self.store.active_versions(&version.name.lookup()).await?;
                    version = current.active.unwrap_or(version);
                }
                size.add(&version)?;
                by_name.insert(version.name.folded(), version);
            }
        }
        Ok(by_name)
    }
}

/// Returns the memory for references, without their values: [`REFERENCE_BYTES`] for each, or for each array and object in which it is
/// the first if these are several.
fn substitution_bytes(references: &[Reference]) -> usize {
    let mut previous = "".split('/');
    let counts = references.iter().map(|reference| {
        let parts = reference.pointer.split('/');
        let is_shared = |part: &&str| previous.next() == Some(*part);
        let new = parts.clone().skip_while(is_shared).count();
        previous = parts;
        new.saturating_sub(1).max(1)
    });
    counts.sum::<usize>().saturating_mul(REFERENCE_BYTES)
}

/// Returns the size of a document with these versions, once per reference.
fn referenced_bytes(in_order: &[LookupName], by_name: &HashMap<String, StoredVersion>) -> usize {
    let referenced = in_order
        .iter()
        .filter_map(|name| by_name.get(name.folded()));
    let sizes = referenced.map(|version| version.envelope.ciphertext.len());
    sizes.sum::<usize>().min(REFERENCED_BYTES_MAX)
}

/// Names the reference that failed. Does not reveal whether the credential is missing or the caller may not read it.
fn not_found(failure: UseCaseError, name: &LookupName) -> UseCaseError {
    match failure {
        UseCaseError::NotFound => UseCaseError::ReferenceNotFound(shown(name.requested())),
        failure => failure,
    }
}

/// Returns the part of a credential's value that replaces a reference: JSON text or, for a reference inside a string, the text
/// of a scalar as it is written inside a JSON string.
fn substitute<'a>(reference: &Reference, value: &'a Secret) -> Result<&'a str, UseCaseError> {
    let mut part = value.expose().trim();
    for field in &reference.fields {
        let fields = keywright_json::fields(part).unwrap_or_default();
        let found = fields.into_iter().find(|(key, _)| key == field);
        let (_, value) = found.ok_or_else(|| UseCaseError::ReferencedFieldMissing {
            name: shown(&reference.name),
            field: shown(&reference.fields.join(".")),
        })?;
        part = value.get();
    }
    if reference.range.is_none() {
        return Ok(part);
    }
    match part.strip_prefix('"') {
        Some(text) => text.strip_suffix('"'),
        None => Some(part).filter(|part| !part.starts_with(['{', '[', 'n'])),
    }
    .ok_or_else(|| UseCaseError::ReferenceNotScalar(shown(&reference.name)))
}

/// Sanitizes text from a document for an error: at most as long as a name, without control and invisible
/// characters.
fn shown(text: &str) -> String {
    let printable = text
        .chars()
        .filter(|character| !is_control_or_invisible(*character));
    printable.take(NAME_CHARACTERS_MAX).collect()
}

/// The total size of the versions to substitute into one document, in bytes.
#[derive(Default)]
struct ReferencedSize(usize);

impl ReferencedSize {
    fn add(&mut self, version: &StoredVersion) -> Result<(), UseCaseError> {
        self.0 += version.envelope.ciphertext.len();
        if self.0 > REFERENCED_BYTES_MAX {
            return Err(UseCaseError::ReferencesTooLarge);
        }
        Ok(())
    }
}

/// The memory for a reference while a document is interpolated, without the value, in bytes.
const REFERENCE_BYTES: usize = 1024;

/// The maximum number of credentials per query.
const NAMES_AT_ONCE: usize = 256;

/// The maximum number of credentials in the requested casing whose latest versions are read before their size is known. A version
/// is at most slightly larger than [`VALUE_BYTES_MAX`](crate::credential::VALUE_BYTES_MAX).
const NAMES_READ_FIRST: usize = 16;

/// The resolver returned a position that the document does not have.
impl From<PointerError> for UseCaseError {
    fn from(_: PointerError) -> Self {
        Self::Plugin(PluginCallError::Faulted {
            plugin: "resolver".to_owned(),
            fault: PluginFaultError::OutputMalformed,
        })
    }
}
