//! The interfaces of a component: the versions that it may be built for, the imports that may be granted, and the exported
//! functions. Versions and grants are checked by name, before compiling and linking.
//!
//! The engine compares types structurally, so the Rust types generated from the current `wit/` serve every version in which an
//! interface has the same shape. A version with another shape needs its own types, and a [`Function`] that converts them to the
//! current types.

use std::{collections::BTreeSet, marker::PhantomData};

use wasmtime::{
    Engine, Store,
    component::{
        ComponentExportIndex, ComponentNamedList, HasSelf, Instance, Lift, Linker, Lower, TypedFunc,
    },
};

use crate::{
    config::Grant,
    host::{CallState, add_issuer_to_linker, add_notes_to_linker, wasi::random::random},
    load_error::PluginRefusedError,
    outline::Outline,
};

/// The supported versions of Keywright's packages, oldest first. A component is built for one of them, or for a later patch.
pub(crate) const SUPPORTED: [&str; 2] = ["0.1.0", "0.2.0"];

/// The maximum length of the version that a component was built for. It is stored with each generated version.
const VERSION_CHARACTERS_MAX: usize = 64;

/// Keywright's packages, which are released together.
const PACKAGES: [&str; 3] = [
    "keywright:generator/",
    "keywright:interpolation/",
    "keywright:signing/",
];

/// The version that a component was built for.
pub(crate) struct BuiltFor {
    /// The host's compatible version.
    pub(crate) supported: &'static str,
    /// The version in the component's imports and exports.
    pub(crate) named: String,
}

impl BuiltFor {
    /// Finds the version in the names of all Keywright interfaces that a component imports or exports. Without any, returns the
    /// current version.
    pub(crate) fn of(component: &Outline) -> Result<Self, PluginRefusedError> {
        let mut built_for: Option<Self> = None;
        for name in component.interface_names().map(InterfaceName::parse) {
            if !name.is_ours() {
                continue;
            }
            let supported = name.compatible(&SUPPORTED);
            let supported = supported.ok_or_else(|| name.version_differs(&SUPPORTED))?;
            if built_for
                .as_ref()
                .is_some_and(|built| built.supported != supported)
            {
                return Err(PluginRefusedError::InterfaceVersionsMixed {
                    versions: named_versions(component).join(" and "),
                    offered: &SUPPORTED,
                });
            }
            built_for.get_or_insert(Self {
                supported,
                named: name.version.unwrap_or_default().to_owned(),
            });
        }
        Ok(built_for.unwrap_or_else(|| Self {
            supported: current(),
            named: current().to_owned(),
        }))
    }
}

/// Returns the versions of Keywright's interfaces in a component, in alphabetical order. A valid component has at most one.
pub(crate) fn named_versions(component: &Outline) -> Vec<String> {
    let names = component.interface_names().map(InterfaceName::parse);
    let versions = names
        .filter(InterfaceName::is_ours)
        .map(|name| name.wanted());
    let versions: BTreeSet<String> = versions.collect();
    versions.into_iter().collect()
}

pub(crate) fn versioned(interface: &str, version: &str) -> String {
    format!("{interface}@{version}")
}

fn current() -> &'static str {
    let [.., current] = SUPPORTED;
    current
}

/// The parsed name of an import or export.
pub(crate) struct InterfaceName<'a> {
    pub(crate) interface: &'a str,
    version: Option<&'a str>,
}

impl<'a> InterfaceName<'a> {
    pub(crate) fn parse(name: &'a str) -> Self {
        match name.split_once('@') {
            Some((interface, version)) => Self {
                interface,
                version: Some(version),
            },
            None => Self {
                interface: name,
                version: None,
            },
        }
    }

    /// Returns the version among `offered` that it is compatible with, if any.
    pub(crate) fn compatible(&self, offered: &[&'static str]) -> Option<&'static str> {
        let version = self.version?;
        if version.len() > VERSION_CHARACTERS_MAX {
            return None;
        }
        let mut offered = offered.iter();
        offered
            .find(|offered| track(version) == track(offered))
            .copied()
    }

    /// Returns the refusal for an interface that is not compatible with `offered`.
    pub(crate) fn version_differs(&self, offered: &'static [&'static str]) -> PluginRefusedError {
        PluginRefusedError::InterfaceVersionDiffers {
            interface: self.interface.to_owned(),
            wanted: self.wanted(),
            offered,
        }
    }

    fn wanted(&self) -> String {
        self.version.unwrap_or("without a version").to_owned()
    }

    fn is_ours(&self) -> bool {
        PACKAGES
            .iter()
            .any(|package| self.interface.starts_with(package))
    }
}

/// Returns the part that compatible versions share: the major version, and before 1.0.0 also the minor version.
fn track(version: &str) -> (&str, Option<&str>) {
    let mut parts = version.split('.');
    let major = parts.next().unwrap_or_default();
    (major, parts.next().filter(|_| major == "0"))
}

/// An interface that the host provides.
struct Offered {
    interface: &'static str,
    versions: &'static [&'static str],
    /// The required grant; `None` for harmless interfaces.
    grant: Option<Grant>,
}

/// All interfaces that the host provides.
const OFFERED: [Offered; 3] = [
    Offered {
        interface: "wasi:random/random",
        versions: &["0.2.0"],
        grant: Some(Grant::Random),
    },
    Offered {
        interface: ISSUER,
        versions: &SUPPORTED,
        grant: Some(Grant::Signing),
    },
    Offered {
        interface: NOTES,
        versions: &["0.2.0"],
        grant: None,
    },
];
const ISSUER: &str = "keywright:signing/issuer";
const NOTES: &str = "keywright:generator/notes";

/// The exported interface that gets the values of inputs, and needs a grant for them.
pub(crate) const DERIVED_GENERATOR: &str = "keywright:generator/derived-generator";

/// Refuses a component with imports, or an export for inputs, that are not granted. Imports that only name types other than
/// resources need no grant, because they give no access.
pub(crate) fn check_grants(
    component: &Outline,
    grants: &[Grant],
) -> Result<(), PluginRefusedError> {
    if exports_any(component, &[DERIVED_GENERATOR]) && !grants.contains(&Grant::Inputs) {
        return Err(PluginRefusedError::InputsNotGranted);
    }
    for import in component.imported() {
        let name = InterfaceName::parse(import);
        let offered = OFFERED
            .iter()
            .find(|offered| offered.interface == name.interface);
        let Some(offered) = offered else {
            return Err(PluginRefusedError::ImportUnknown(import.to_owned()));
        };
        if name.compatible(offered.versions).is_none() {
            return Err(name.version_differs(offered.versions));
        }
        match offered.grant {
            Some(grant) if !grants.contains(&grant) => {
                return Err(PluginRefusedError::ImportNotGranted {
                    import: import.to_owned(),
                    grant,
                });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the grants that a component's imports and exports require.
pub(crate) fn grants_needed(component: &Outline) -> Vec<Grant> {
    let is_imported = |interface| {
        let mut imported = component.imported();
        imported.any(|import| InterfaceName::parse(import).interface == interface)
    };
    let needed = OFFERED
        .iter()
        .filter(|offered| is_imported(offered.interface));
    let takes_inputs = exports_any(component, &[DERIVED_GENERATOR]);
    needed
        .filter_map(|offered| offered.grant)
        .chain(takes_inputs.then_some(Grant::Inputs))
        .collect()
}

/// Returns a linker that defines only the granted interfaces and the interfaces that need no grant.
pub(crate) fn linker(engine: &Engine, grants: &[Grant]) -> wasmtime::Result<Linker<CallState>> {
    let mut linker = Linker::new(engine);
    if grants.contains(&Grant::Random) {
        random::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)?;
    }
    let mut define = |interface, add: fn(&mut Linker<CallState>, &str) -> wasmtime::Result<()>| {
        let offered = OFFERED
            .iter()
            .filter(|offered| offered.interface == interface);
        let granted =
            offered.filter(|offered| offered.grant.is_none_or(|grant| grants.contains(&grant)));
        granted
            .flat_map(|offered| offered.versions)
            .try_for_each(|version| add(&mut linker, &versioned(interface, version)))
    };
    define(ISSUER, add_issuer_to_linker)?;
    define(NOTES, add_notes_to_linker)?;
    Ok(linker)
}

/// Returns whether a component exports one of these interfaces, in any version.
pub(crate) fn exports_any(component: &Outline, interfaces: &[&str]) -> bool {
    component
        .exports
        .iter()
        .any(|export| interfaces.contains(&InterfaceName::parse(export).interface))
}

/// A function of an interface in `wit/`.
pub(crate) trait Function {
    type Parameters<'a>: ComponentNamedList + Lower;
    type Result;
    /// Its interface, without a version.
    const INTERFACE: &'static str;
    const NAME: &'static str;
}

/// Declares functions: the type that represents each one, its interface and its name, its parameters, and its result.
macro_rules! functions {
    ($(
        $(#[$documentation:meta])*
        $visibility:vis $function:ident = $interface:expr, $name:expr, $parameters:ty => $result:ty;
    )*) => {$(
        $(#[$documentation])*
        $visibility struct $function;

        impl $crate::interfaces::Function for $function {
            type Parameters<'a> = $parameters;
            type Result = $result;
            const INTERFACE: &'static str = $interface;
            const NAME: &'static str = $name;
        }
    )*};
}
pub(crate) use functions;

/// A function exported by a component.
pub(crate) struct Exported<F> {
    index: ComponentExportIndex,
    function: PhantomData<F>,
}

impl<F: Function> Exported<F>
where
    (F::Result,): ComponentNamedList + Lift,
{
    /// Finds the function in this version of its interface, and checks its type; `None` if the component does not export the
    /// interface.
    pub(crate) fn find(
        store: &mut Store<CallState>,
        instance: &Instance,
        version: &'static str,
    ) -> Result<Option<Self>, PluginRefusedError> {
        let interface = versioned(F::INTERFACE, version);
        let Some(exported) = instance.get_export_index(&mut *store, None, &interface) else {
            return Ok(None);
        };
        let index = instance.get_export_index(&mut *store, Some(&exported), F::NAME);
        let found = index.map(|index| Self {
            index,
            function: PhantomData,
        });
        let found = found.filter(|found| {
            let typed = found.typed::<F::Parameters<'static>>(store, instance);
            typed.is_ok()
        });
        let differs = || PluginRefusedError::ExportDiffers(interface);
        found.map(Some).ok_or_else(differs)
    }

    /// Like [`Self::find`], for an interface that the component must export.
    pub(crate) fn expect(
        store: &mut Store<CallState>,
        instance: &Instance,
        version: &'static str,
    ) -> Result<Self, PluginRefusedError> {
        let missing = || PluginRefusedError::ExportMissing {
            is_generator: F::INTERFACE.starts_with("keywright:generator/"),
            interface: versioned(F::INTERFACE, version),
        };
        Self::find(store, instance, version)?.ok_or_else(missing)
    }

    pub(crate) fn call(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        parameters: F::Parameters<'_>,
    ) -> wasmtime::Result<F::Result> {
        let (result,) = self.typed(store, instance)?.call(store, parameters)?;
        Ok(result)
    }

    fn typed<Parameters: ComponentNamedList + Lower>(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
    ) -> wasmtime::Result<TypedFunc<Parameters, (F::Result,)>> {
        instance.get_typed_func(store, self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compatible_by_major_or_by_minor_before_1() {
        for (wanted, offered, is_compatible) in [
            ("0.1.0", "0.1.0", true),
            ("0.1.7", "0.1.0", true),
            ("0.2.0", "0.1.0", false),
            ("1.2.0", "1.0.0", true),
            ("2.0.0", "1.0.0", false),
        ] {
            let name = format!("a:b/c@{wanted}");
            assert_eq!(
                InterfaceName::parse(&name).compatible(&[offered]).is_some(),
                is_compatible,
                "{name}"
            );
        }
        assert!(
            InterfaceName::parse("a:b/c")
                .compatible(&["0.1.0"])
                .is_none()
        );
    }

    #[test]
    fn a_version_of_more_than_64_characters_is_unsupported() {
        for (length, is_supported) in [(64, true), (65, false)] {
            let version = format!("{:a<length$}", "0.2.0+");
            let component = Outline {
                imports: Vec::new(),
                exports: vec![versioned(DERIVED_GENERATOR, &version)],
            };
            assert_eq!(BuiltFor::of(&component).is_ok(), is_supported);
        }
    }
}
