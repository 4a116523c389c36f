//! Implements the domain's port for resolvers.

use std::sync::Arc;

use async_trait::async_trait;
use keywright_core::{
    permission::Actor,
    ports::{
        POINTER_SEGMENTS_MAX, PluginCallError, PluginFaultError, PluginState, REFERENCE_FIELDS_MAX,
        Reference, Resolver,
    },
    text::for_caller,
};
use wasmtime::{Store, component::Instance};

use crate::{
    breaker::{Attempt, Breaker},
    call::Plugin,
    host::{
        CallState,
        exports::keywright::interpolation::{
            any_type_resolver,
            resolver::{self, Failure},
        },
    },
    interfaces::{Exported, functions},
    lane::{Flow, Lanes},
    load_error::PluginRefusedError,
    schema::SettingsSchema,
};

/// The interfaces that find references. A component needs one of them; the host calls the last.
pub(crate) const RESOLVERS: [&str; 2] = [RESOLVER, ANY_TYPE_RESOLVER];
const RESOLVER: &str = "keywright:interpolation/resolver";
const ANY_TYPE_RESOLVER: &str = "keywright:interpolation/any-type-resolver";

/// The maximum number of references in a document.
const REFERENCES_MAX: usize = 1_000;

/// The maximum length of a reference's pointer, in bytes.
const POINTER_BYTES_MAX: usize = 8 * 1_024;

const FUNCTION: &str = "find-references";

pub(crate) struct WasmResolver {
    guest: Arc<ResolverGuest>,
    lanes: Arc<Lanes>,
    breaker: Arc<Breaker>,
}

pub(crate) struct ResolverGuest {
    pub(crate) plugin: Plugin,
    function: FindReferences,
}

/// The guest's function.
enum FindReferences {
    OfJson(Exported<OfJson>),
    OfAnyType(Exported<OfAnyType>),
}

impl WasmResolver {
    pub(crate) fn new(guest: ResolverGuest, lanes: Arc<Lanes>, breaker: Arc<Breaker>) -> Self {
        Self {
            guest: Arc::new(guest),
            lanes,
            breaker,
        }
    }

    pub(crate) fn state(&self, actor: &Actor) -> PluginState {
        self.breaker.state(&self.guest.plugin, actor)
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
        let attempt = Attempt::begin(plugin, &self.breaker, Some(actor), FUNCTION)?;
        let guest = Arc::clone(&self.guest);
        let document = document.to_owned();
        let work = move || attempt.make(&guest.plugin, || guest.find_references(&document));
        let outcome = self.lanes.short.run(Flow::Actor(actor.clone()), work).await;
        outcome.unwrap_or_else(|not_run| Err(plugin.not_run(FUNCTION, not_run)))
    }
}

impl ResolverGuest {
    /// Finds the guest's functions in a first instance. The caller must check the settings.
    pub(crate) fn new(mut plugin: Plugin) -> Result<Self, PluginRefusedError> {
        let version = plugin.wit_version;
        let found = plugin.call("instantiate", 0, None, |store, instance| {
            Ok(find(store, instance, version))
        });
        let (function, settings_descriptor) =
            found.map_err(PluginRefusedError::InstantiationFailed)??;
        plugin.settings_schema = SettingsSchema::of(&plugin, settings_descriptor.as_ref())?;
        Ok(Self { plugin, function })
    }

    /// Creates and drops an instance without a call.
    pub(crate) fn instantiate(&self) -> Result<(), PluginCallError> {
        let outcome = self.plugin.instantiate();
        outcome.map_err(|fault| self.plugin.faulted(fault))
    }

    pub(crate) fn find_references(
        &self,
        document: &str,
    ) -> Result<Vec<Reference>, PluginCallError> {
        let outcome = self
            .plugin
            .call(FUNCTION, document.len(), None, |store, instance| {
                let parameters = (document, self.plugin.settings.as_str());
                Ok(match &self.function {
                    FindReferences::OfJson(function) => function
                        .call(store, instance, parameters)?
                        .map(|found| found.into_iter().map(of_json).collect()),
                    FindReferences::OfAnyType(function) => function
                        .call(store, instance, parameters)?
                        .map(|found| found.into_iter().map(of_any_type).collect()),
                })
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
            PluginFaultError::OutputTooLarge(bytes_max) => PluginCallError::DocumentRefused(
                format!("its references are larger than {bytes_max} bytes in total"),
            ),
            other => self.plugin.faulted(other),
        }
    }

    /// Returns the references if they are within the limits and do not overlap. Runs on the lane's thread, like the call itself.
    fn checked(&self, found: Vec<Reference>) -> Result<Vec<Reference>, PluginCallError> {
        let bytes = found
            .iter()
            .flat_map(|one| [&one.pointer, &one.name].into_iter().chain(&one.fields))
            .map(String::len)
            .sum();
        self.plugin
            .check_output(FUNCTION, bytes)
            .map_err(|fault| self.refused_or_faulted(fault))?;
        let any = |is_beyond: fn(&Reference) -> bool| found.iter().any(is_beyond);
        let exceeded = if found.len() > REFERENCES_MAX {
            Some(format!("it has more than {REFERENCES_MAX} references"))
        } else if any(|one| one.pointer.len() > POINTER_BYTES_MAX) {
            Some(format!(
                "the JSON Pointer of a reference is longer than {POINTER_BYTES_MAX} bytes"
            ))
        } else if any(|one| one.fields.len() > REFERENCE_FIELDS_MAX) {
            Some(format!(
                "a reference has more than {REFERENCE_FIELDS_MAX} fields"
            ))
        } else {
            None
        };
        if let Some(exceeded) = exceeded {
            return Err(PluginCallError::DocumentRefused(exceeded));
        }
        if !are_disjoint(&found) {
            return Err(self.plugin.malformed(
                FUNCTION,
                "has malformed or overlapping JSON Pointers, or ranges that are empty, overlap or do not ascend",
            ));
        }
        Ok(found)
    }
}

fn find(
    store: &mut Store<CallState>,
    instance: &Instance,
    version: &'static str,
) -> Result<(FindReferences, Option<Exported<DescribeSettings>>), PluginRefusedError> {
    let function = match Exported::find(store, instance, version)? {
        Some(function) => FindReferences::OfAnyType(function),
        None => FindReferences::OfJson(Exported::expect(store, instance, version)?),
    };
    Ok((function, Exported::find(store, instance, version)?))
}

functions! {
    DescribeSettings = "keywright:interpolation/settings-descriptor", "describe-settings", () => String;

    OfJson = RESOLVER, FUNCTION,
        (&'a str, &'a str) => Result<Vec<resolver::Reference>, Failure>;

    /// Its failure has the type of `resolver`'s.
    OfAnyType = ANY_TYPE_RESOLVER, FUNCTION,
        (&'a str, &'a str) => Result<Vec<any_type_resolver::Reference>, Failure>;
}

fn of_json(found: resolver::Reference) -> Reference {
    Reference {
        pointer: found.pointer,
        name: found.name,
        ..Reference::default()
    }
}

fn of_any_type(found: any_type_resolver::Reference) -> Reference {
    Reference {
        pointer: found.pointer,
        range: found
            .range
            .map(|range| range.start as usize..range.end as usize),
        name: found.name,
        fields: found.fields,
        is_any_type: found.any_type,
    }
}

/// Returns whether all pointers are JSON Pointers (RFC 6901) within the limits, and no pointer equals another or is a prefix of
/// it, except the pointers of ranges that ascend without overlapping.
fn are_disjoint(references: &[Reference]) -> bool {
    let is_valid = |one: &Reference| {
        is_pointer(&one.pointer) && one.range.as_ref().is_none_or(|range| !range.is_empty())
    };
    if !references.iter().all(is_valid) {
        return false;
    }
    let mut sorted: Vec<&Reference> = references.iter().collect();
    // In this order, a pointer is directly followed by a pointer of which it is a prefix, if there is one. Equal pointers stay
    // in the guest's order.
    sorted.sort_by(|one, other| one.pointer.split('/').cmp(other.pointer.split('/')));
    sorted.iter().zip(sorted.iter().skip(1)).all(|(one, next)| {
        match next.pointer.strip_prefix(&one.pointer) {
            Some("") => match (&one.range, &next.range) {
                (Some(range), Some(next)) => range.end <= next.start,
                _ => false,
            },
            Some(rest) => !rest.starts_with('/'),
            None => true,
        }
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

    fn reference(pointer: &str) -> Reference {
        Reference {
            pointer: pointer.to_owned(),
            ..Reference::default()
        }
    }

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
            let found: Vec<_> = pointers.iter().map(|one| reference(one)).collect();
            assert_eq!(are_disjoint(&found), expected, "{pointers:?}");
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
                are_disjoint(&[reference(&pointer)]),
                expected,
                "{} bytes",
                pointer.len()
            );
        }
    }
}
