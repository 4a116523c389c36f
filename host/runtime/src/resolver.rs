//! A resolver behind the domain's port.

use std::{collections::HashSet, sync::Arc};

use async_trait::async_trait;
use keywright_core::ports::{PluginFailure, PluginFault, Reference, Resolver};

use crate::{
    bindings::exports::keywright::interpolation::resolver::{self, Failure},
    call::Plugin,
    exported::{Exported, Function},
    lane::Lanes,
    measure::measured,
    refused::Refusal,
    text::for_caller,
};

/// The interface by which references are found.
pub(crate) const RESOLVER: &str = "keywright:interpolation/resolver";

/// The most references that one document may have.
const REFERENCES_MAX: usize = 1_000;

const FUNCTION: &str = "find-references";

/// The resolver.
pub(crate) struct WasmResolver {
    guest: Arc<ResolverGuest>,
    lanes: Arc<Lanes>,
}

/// A resolver's guest.
pub(crate) struct ResolverGuest {
    plugin: Plugin,
    resolver: Exported<FindReferences>,
}

impl WasmResolver {
    pub(crate) fn new(guest: ResolverGuest, lanes: Arc<Lanes>) -> Self {
        Self {
            guest: Arc::new(guest),
            lanes,
        }
    }
}

#[async_trait]
impl Resolver for WasmResolver {
    async fn find_references(&self, document: &str) -> Result<Vec<Reference>, PluginFailure> {
        self.guest.plugin.check_rested(FUNCTION)?;
        let guest = Arc::clone(&self.guest);
        let document = document.to_owned();
        match self
            .lanes
            .brief
            .run(move || {
                measured(&guest.plugin.identity.name, FUNCTION, || {
                    guest.find_references(&document)
                })
            })
            .await
        {
            Ok(outcome) => outcome,
            Err(not_run) => Err(self.guest.plugin.not_run(FUNCTION, not_run)),
        }
    }
}

impl ResolverGuest {
    /// Finds the guest's function and checks its type in a first instance.
    ///
    /// # Errors
    /// When it is not of the type that the interface says, or the guest can't be instantiated.
    pub(crate) fn new(plugin: Plugin) -> Result<Self, Refusal> {
        let resolver = Exported::<FindReferences>::expect(&plugin.component, plugin.wit_version)?;
        plugin
            .call("instantiate", &[], None, |store, instance| {
                Ok(resolver.check(store, instance))
            })
            .map_err(Refusal::DescribeFailed)??;
        Ok(Self { plugin, resolver })
    }

    fn find_references(&self, document: &str) -> Result<Vec<Reference>, PluginFailure> {
        let outcome = self
            .plugin
            .call(FUNCTION, &[document], None, |store, instance| {
                let parameters = (document, self.plugin.settings.as_str());
                self.resolver.call(store, instance, parameters)
            });
        match outcome.map_err(|fault| self.plugin.faulted(fault))? {
            Ok(references) => self.checked(references),
            Err(Failure::InvalidDocument(text)) => {
                Err(PluginFailure::DocumentRefused(for_caller(&text)))
            }
            Err(Failure::Misconfigured(text)) => Err(self.plugin.misconfigured(FUNCTION, &text)),
            Err(Failure::Other(text)) => Err(self.plugin.reported(FUNCTION, &text)),
        }
    }

    /// The references, when they are within the limits and no place is named twice or lies within another.
    fn checked(&self, found: Vec<resolver::Reference>) -> Result<Vec<Reference>, PluginFailure> {
        let bytes = found
            .iter()
            .map(|reference| reference.pointer.len() + reference.name.len())
            .sum();
        self.plugin
            .check_output(FUNCTION, bytes)
            .map_err(|fault| self.plugin.faulted(fault))?;
        if found.len() > REFERENCES_MAX {
            let fault = PluginFault::OutputTooLarge;
            let fault = self
                .plugin
                .fault(FUNCTION, fault, "it found more than 1,000 references");
            return Err(self.plugin.faulted(fault));
        }
        let pointers: Vec<&str> = found.iter().map(|found| found.pointer.as_str()).collect();
        if !are_apart(&pointers) {
            return Err(self.plugin.malformed(FUNCTION));
        }
        let references = found.into_iter().map(|found| Reference {
            pointer: found.pointer,
            name: found.name,
        });
        Ok(references.collect())
    }
}

/// `resolver.find-references`.
struct FindReferences;

impl Function for FindReferences {
    type Parameters<'a> = (&'a str, &'a str);
    type Result = Result<Vec<resolver::Reference>, Failure>;
    const INTERFACE: &'static str = RESOLVER;
    const NAME: &'static str = FUNCTION;
}

/// Whether all are JSON Pointers, none of them names the same place as another, and none a place within another's.
fn are_apart(pointers: &[&str]) -> bool {
    let mut places = HashSet::new();
    pointers
        .iter()
        .all(|pointer| pointer.is_empty() || pointer.starts_with('/'))
        && pointers.iter().all(|pointer| places.insert(*pointer))
        && pointers.iter().all(|pointer| {
            pointer
                .match_indices('/')
                .filter_map(|(end, _)| pointer.get(..end))
                .all(|outer| !places.contains(outer))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_place_is_named_twice_or_lies_within_another() {
        for (pointers, expected) in [
            (vec!["/a", "/b"], true),
            (vec!["/a", "/a-b", "/ab/c"], true),
            (vec![""], true),
            (vec![], true),
            (vec!["/a", "/a"], false),
            (vec!["/a/b/c", "/a"], false),
            (vec!["", "/a"], false),
            (vec!["a"], false),
        ] {
            assert_eq!(are_apart(&pointers), expected, "{pointers:?}");
        }
    }
}
