//! What components import and export, checked by name before anything is linked.

use wasmtime::{
    Engine,
    component::{
        Component, HasSelf, Linker,
        types::{ComponentInstance, ComponentItem},
    },
};

use crate::{
    bindings::{keywright::signing::issuer, wasi::random::random},
    call::CallState,
    config::Grant,
    refused::Refusal,
};

/// Everything that the host offers: the interface, its version, and the grant that opens it.
const OFFERED: [(&str, &str, Grant); 2] = [
    ("wasi:random/random", "0.2.0", Grant::Random),
    ("keywright:signing/issuer", "0.1.0", Grant::Signing),
];

/// Refuses a component that imports what it was not granted. Imports that only name types carry no authority.
///
/// # Errors
/// The first import that is not allowed.
pub(crate) fn check_imports(
    engine: &Engine,
    component: &Component,
    grants: &[Grant],
) -> Result<(), Refusal> {
    for (import, item) in component.component_type().imports(engine) {
        if is_types_alone(engine, &item.ty) {
            continue;
        }
        let name = InterfaceName::parse(import);
        let offered = OFFERED
            .iter()
            .find(|(interface, ..)| *interface == name.interface);
        let Some((interface, version, grant)) = offered else {
            return Err(Refusal::ImportUnknown(import.to_owned()));
        };
        if !name.is_compatible(version) {
            return Err(name.version_differs(interface, version));
        }
        if !grants.contains(grant) {
            return Err(Refusal::ImportNotGranted {
                import: import.to_owned(),
                grant: *grant,
            });
        }
    }
    Ok(())
}

/// What a component imports that is more than types, by name.
pub(crate) fn imported(engine: &Engine, component: &Component) -> Vec<String> {
    let component_type = component.component_type();
    let imports = component_type.imports(engine);
    let with_functions = imports.filter(|(_, item)| !is_types_alone(engine, &item.ty));
    with_functions.map(|(name, _)| name.to_owned()).collect()
}

/// What a component exports, by name.
pub(crate) fn exported(engine: &Engine, component: &Component) -> Vec<String> {
    let component_type = component.component_type();
    let exports = component_type.exports(engine);
    exports.map(|(name, _)| name.to_owned()).collect()
}

/// The grants that open what a component imports, as far as there are any.
pub(crate) fn grants_needed(engine: &Engine, component: &Component) -> Vec<Grant> {
    let imported = imported(engine, component);
    let is_imported = |interface| {
        imported
            .iter()
            .any(|import| InterfaceName::parse(import).interface == interface)
    };
    let needed = OFFERED
        .iter()
        .filter(|(interface, ..)| is_imported(*interface));
    needed.map(|(_, _, grant)| *grant).collect()
}

/// A linker that defines what is granted, and nothing else.
///
/// # Errors
/// When the engine refuses the host's own definitions.
pub(crate) fn linker(engine: &Engine, grants: &[Grant]) -> wasmtime::Result<Linker<CallState>> {
    let mut linker = Linker::new(engine);
    if grants.contains(&Grant::Random) {
        random::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)?;
    }
    if grants.contains(&Grant::Signing) {
        issuer::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)?;
    }
    Ok(linker)
}

/// Whether a component exports an interface, in this version or a compatible one.
pub(crate) fn exports(component: &Component, interface: &str) -> bool {
    component.get_export_index(None, interface).is_some()
}

/// The version of the interface that a component exports.
///
/// # Errors
/// When it exports the interface in an incompatible version, or not at all.
pub(crate) fn exported_version(
    engine: &Engine,
    component: &Component,
    expected: &'static str,
) -> Result<String, Refusal> {
    let expected_name = InterfaceName::parse(expected);
    let offered = expected_name.version.unwrap_or_default();
    let component_type = component.component_type();
    let versions: Vec<InterfaceName<'_>> = component_type
        .exports(engine)
        .map(|(export, _)| InterfaceName::parse(export))
        .filter(|name| name.interface == expected_name.interface)
        .collect();
    match versions
        .iter()
        .find(|name| name.is_compatible(offered))
        .or(versions.first())
    {
        Some(name) if name.is_compatible(offered) => {
            Ok(name.version.unwrap_or_default().to_owned())
        }
        Some(name) => Err(name.version_differs(expected_name.interface, offered)),
        None => Err(Refusal::ExportMissing(expected)),
    }
}

fn is_types_alone(engine: &Engine, item: &ComponentItem) -> bool {
    let only_types = |instance: &ComponentInstance| {
        instance
            .exports(engine)
            .all(|(_, export)| matches!(export.ty, ComponentItem::Type(_)))
    };
    matches!(item, ComponentItem::ComponentInstance(instance) if only_types(instance))
}

/// The name of an import or export, taken apart.
struct InterfaceName<'a> {
    interface: &'a str,
    version: Option<&'a str>,
}

impl<'a> InterfaceName<'a> {
    fn parse(name: &'a str) -> Self {
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

    fn is_compatible(&self, offered: &str) -> bool {
        self.version
            .is_some_and(|version| track(version) == track(offered))
    }

    fn version_differs(&self, interface: &str, offered: &'static str) -> Refusal {
        Refusal::InterfaceVersionDiffers {
            interface: interface.to_owned(),
            wanted: self.version.unwrap_or("without a version").to_owned(),
            offered,
        }
    }
}

/// The part of a version that two compatible ones share: the major one, or before 1.0.0 also the minor one.
fn track(version: &str) -> (&str, Option<&str>) {
    let mut parts = version.split('.');
    let major = parts.next().unwrap_or_default();
    (major, parts.next().filter(|_| major == "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compatible_within_a_minor_before_1_and_within_a_major_after() {
        for (wanted, offered, is_compatible) in [
            ("0.1.0", "0.1.0", true),
            ("0.1.7", "0.1.0", true),
            ("0.2.0", "0.1.0", false),
            ("1.2.0", "1.0.0", true),
            ("2.0.0", "1.0.0", false),
        ] {
            let name = format!("a:b/c@{wanted}");
            assert_eq!(
                InterfaceName::parse(&name).is_compatible(offered),
                is_compatible,
                "{name}"
            );
        }
        assert!(!InterfaceName::parse("a:b/c").is_compatible("0.1.0"));
    }
}
