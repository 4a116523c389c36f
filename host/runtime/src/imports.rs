//! Checks the imports and exports of components by name, before linking.

use wasmtime::{
    Engine,
    component::{HasSelf, Linker},
};

use crate::{
    bindings::wasi::random::random,
    call::CallState,
    config::Grant,
    host::{notes, signing},
    outline::Outline,
    refused::Refusal,
    versions::{InterfaceName, SUPPORTED, versioned},
};

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

/// Refuses a component with imports that are not granted. Imports that only name types grant no access.
///
/// # Errors
/// The first import that is not allowed.
pub(crate) fn check_imports(component: &Outline, grants: &[Grant]) -> Result<(), Refusal> {
    for import in component.imported() {
        let name = InterfaceName::parse(import);
        let offered = OFFERED
            .iter()
            .find(|offered| offered.interface == name.interface);
        let Some(offered) = offered else {
            return Err(Refusal::ImportUnknown(import.to_owned()));
        };
        if name.compatible(offered.versions).is_none() {
            return Err(name.version_differs(offered.versions));
        }
        match offered.grant {
            Some(grant) if !grants.contains(&grant) => {
                return Err(Refusal::ImportNotGranted {
                    import: import.to_owned(),
                    grant,
                });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the grants that a component's imports require.
pub(crate) fn grants_needed(component: &Outline) -> Vec<Grant> {
    let is_imported = |interface| {
        let mut imported = component.imported();
        imported.any(|import| InterfaceName::parse(import).interface == interface)
    };
    let needed = OFFERED
        .iter()
        .filter(|offered| is_imported(offered.interface));
    needed.filter_map(|offered| offered.grant).collect()
}

/// Returns a linker that defines only the granted interfaces, and those that need no grant.
///
/// # Errors
/// If the engine refuses the host's own definitions.
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
    define(ISSUER, signing::add_to_linker)?;
    define(NOTES, notes::add_to_linker)?;
    Ok(linker)
}

/// Whether a component exports an interface, in any version.
pub(crate) fn exports_any(component: &Outline, interface: &str) -> bool {
    component
        .exports
        .iter()
        .any(|export| InterfaceName::parse(export).interface == interface)
}
