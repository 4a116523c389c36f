//! Functions that guests export, found by the name and version of their interface.
//!
//! The engine compares types structurally, so the Rust types generated from the current `wit/` serve every version in which an
//! interface has the same shape. A version with another shape needs its own types, and a [`Function`] that converts them to the
//! current types.

use std::marker::PhantomData;

use wasmtime::{
    Store,
    component::{ComponentExportIndex, ComponentNamedList, Instance, Lift, Lower, TypedFunc},
};

use crate::{host::CallState, interfaces::versioned, load_error::PluginRefusedError};

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

        impl $crate::exported::Function for $function {
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

    /// Calls the function of an instance.
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
