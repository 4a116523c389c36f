//! Implements the domain's port for resolvers.

use std::sync::Arc;

use async_trait::async_trait;
use keywright_core::{
    permission::Actor,
    ports::{POINTER_SEGMENTS_MAX, PluginCallError, PluginFaultError, Reference, Resolver},
};

use crate::{
    bindings::exports::keywright::interpolation::resolver::{self, Failure},
    breaker::{Attempt, Breaker},
    call::Plugin,
    exported::{Exported, Function},
    lane::{Flow, Lanes},
    refused::Refusal,
    text::for_caller,
};

/// The interface that finds references.
pub(crate) const RESOLVER: &str = "keywright:interpolation/resolver";

/// The maximum number of references in a document.
const REFERENCES_MAX: usize = 1_000;

/// The maximum length of a reference's pointer, in bytes.
const POINTER_BYTES_MAX: usize = 8 * 1_024;

/// The message for a document with too many or too long references.
const TOO_LARGE: &str = "it has too many references, or references that are too long";

const FUNCTION: &str = "find-references";

/// The resolver.
pub(crate) struct WasmResolver {
    guest: Arc<ResolverGuest>,
    lanes: Arc<Lanes>,
    breaker: Arc<Breaker>,
}

/// A resolver's guest.
pub(crate) struct ResolverGuest {
    plugin: Plugin,
    resolver: Exported<FindReferences>,
}

impl WasmResolver {
    pub(crate) fn new(guest: ResolverGuest, lanes: Arc<Lanes>, breaker: Arc<Breaker>) -> Self {
        Self {
            guest: Arc::new(guest),
            lanes,
            breaker,
        }
    }
}

#[async_trait]
impl Resolver for WasmResolver {
    async fn find_references(
        &self,
        actor: &Actor,
        document: &str,
    ) -> Result<Vec<Reference>, PluginCallError> {
        let plugin = &self.guest.plugin;
        let inputs = [document];
        let attempt = Attempt::begin(plugin, &self.breaker, Some(actor), FUNCTION, &inputs)?;
        let guest = Arc::clone(&self.guest);
        let document = document.to_owned();
        let work = move || attempt.make(&guest.plugin, || guest.find_references(&document));
        let outcome = self.lanes.short.run(Flow::Actor(actor.clone()), work).await;
        outcome.unwrap_or_else(|not_run| Err(plugin.not_run(FUNCTION, not_run)))
    }
}

impl ResolverGuest {
    /// Finds the guest's function and checks its type in a first instance.
    ///
    /// # Errors
    /// If its type differs from the interface, or the guest can't be instantiated.
    pub(crate) fn new(plugin: Plugin) -> Result<Self, Refusal> {
        let resolver = Exported::<FindReferences>::expect(&plugin.component, plugin.wit_version)?;
        plugin
            .call("instantiate", 0, None, |store, instance| {
                Ok(resolver.check(store, instance))
            })
            .map_err(Refusal::DescribeFailed)??;
        Ok(Self { plugin, resolver })
    }

    fn find_references(&self, document: &str) -> Result<Vec<Reference>, PluginCallError> {
        let outcome = self
            .plugin
            .call(FUNCTION, document.len(), None, |store, instance| {
                let parameters = (document, self.plugin.settings.as_str());
                self.resolver.call(store, instance, parameters)
            });
        match outcome.map_err(|fault| self.refused_or_faulted(fault))? {
            Ok(references) => self.checked(references),
            Err(Failure::InvalidDocument(text)) => {
                Err(PluginCallError::DocumentRefused(for_caller(&text)))
            }
            Err(Failure::Misconfigured(text)) => Err(self.plugin.misconfigured(FUNCTION, &text)),
            Err(Failure::Other(text)) => Err(self.plugin.reported(FUNCTION, &text)),
        }
    }

    /// Converts a fault to a failure. The document determines the references, so too many references are an error in the
    /// document.
    fn refused_or_faulted(&self, fault: PluginFaultError) -> PluginCallError {
        match fault {
            PluginFaultError::OutputTooLarge => {
                PluginCallError::DocumentRefused(TOO_LARGE.to_owned())
            }
            other => self.plugin.faulted(other),
        }
    }

    /// Returns the references if they are within the limits and no pointer equals or contains another. Runs on the lane's thread,
    /// like the call itself.
    fn checked(&self, found: Vec<resolver::Reference>) -> Result<Vec<Reference>, PluginCallError> {
        let bytes = found
            .iter()
            .map(|reference| reference.pointer.len() + reference.name.len())
            .sum();
        self.plugin
            .check_output(FUNCTION, bytes)
            .map_err(|fault| self.refused_or_faulted(fault))?;
        let pointers: Vec<&str> = found.iter().map(|found| found.pointer.as_str()).collect();
        let has_long_pointer = pointers.iter().any(|one| one.len() > POINTER_BYTES_MAX);
        if found.len() > REFERENCES_MAX || has_long_pointer {
            let fault = PluginFaultError::OutputTooLarge;
            let cause = "it found more than 1,000 references, or returned a JSON Pointer of more than 8 KiB";
            return Err(self.refused_or_faulted(self.plugin.fault(FUNCTION, fault, cause)));
        }
        if !are_disjoint(&pointers) {
            return Err(self
                .plugin
                .malformed(FUNCTION, "has malformed or overlapping JSON Pointers"));
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

/// Returns whether all are JSON Pointers (RFC 6901) within the limits, and no pointer equals another or is a prefix of it.
fn are_disjoint(pointers: &[&str]) -> bool {
    let are_pointers = pointers.iter().all(|pointer| is_pointer(pointer));
    if !are_pointers {
        return false;
    }
    let mut sorted = pointers.to_vec();
    // In this order, a pointer is directly followed by a pointer of which it is a prefix, if there is one.
    sorted.sort_unstable_by(|one, other| one.split('/').cmp(other.split('/')));
    sorted.iter().zip(sorted.iter().skip(1)).all(|(one, next)| {
        let rest = next.strip_prefix(one);
        !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Returns whether a text is a JSON Pointer of no more than [`POINTER_BYTES_MAX`] and [`POINTER_SEGMENTS_MAX`].
fn is_pointer(text: &str) -> bool {
    let starts_well = text.is_empty() || text.starts_with('/');
    let escapes = || text.match_indices('~');
    starts_well
        && text.len() <= POINTER_BYTES_MAX
        && text.matches('/').nth(POINTER_SEGMENTS_MAX).is_none()
        && escapes().all(|(at, _)| matches!(text.as_bytes().get(at + 1), Some(b'0' | b'1')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_and_nested_pointers_are_refused() {
        for (pointers, expected) in [
            (vec!["/a", "/b"], true),
            (vec!["/a", "/a-b", "/ab/c"], true),
            (vec![""], true),
            (vec![], true),
            (vec!["/a", "/a"], false),
            (vec!["/a/b/c", "/a"], false),
            (vec!["/a/b", "/a-b", "/a"], false),
            (vec!["", "/a"], false),
            (vec!["a"], false),
            (vec!["/~"], false),
            (vec!["/~2"], false),
            (vec!["/~0~1"], true),
        ] {
            assert_eq!(are_disjoint(&pointers), expected, "{pointers:?}");
        }
    }

    #[test]
    fn a_pointer_has_at_most_128_segments_and_8_kib() {
        for (pointer, expected) in [
            ("/0".repeat(POINTER_SEGMENTS_MAX), true),
            ("/0".repeat(POINTER_SEGMENTS_MAX + 1), false),
            (format!("/{}", "a".repeat(POINTER_BYTES_MAX - 1)), true),
            (format!("/{}", "a".repeat(POINTER_BYTES_MAX)), false),
        ] {
            assert_eq!(
                are_disjoint(&[&pointer]),
                expected,
                "{} bytes",
                pointer.len()
            );
        }
    }
}
