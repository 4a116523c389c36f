//! Functions that guests export, found by the name and version of their interface.
//!
//! The engine compares types structurally, so the Rust types generated from the current `wit/` serve every version in which an
//! interface has the same shape. A version with another shape needs its own types, and a [`Function`] that converts them to the
//! current types.

use std::marker::PhantomData;

use wasmtime::{
    Store,
    component::{
        ComponentExportIndex, ComponentNamedList, Instance, InstancePre, Lift, Lower, TypedFunc,
    },
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
    version: &'static str,
    function: PhantomData<F>,
}

impl<F: Function> Exported<F>
where
    (F::Result,): ComponentNamedList + Lift,
{
    /// Finds the function in this version of its interface; `None` if the component does not export the interface.
    pub(crate) fn find(
        component: &InstancePre<CallState>,
        version: &'static str,
    ) -> Result<Option<Self>, PluginRefusedError> {
        let component = component.component();
        let interface = versioned(F::INTERFACE, version);
        let Some(instance) = component.get_export_index(None, &interface) else {
            return Ok(None);
        };
        match component.get_export_index(Some(&instance), F::NAME) {
            Some(index) => Ok(Some(Self {
                index,
                version,
                function: PhantomData,
            })),
            None => Err(PluginRefusedError::ExportDiffers(interface)),
        }
    }

    /// Finds the function in this version of its interface.
    pub(crate) fn expect(
        component: &InstancePre<CallState>,
        version: &'static str,
    ) -> Result<Self, PluginRefusedError> {
        let missing = || PluginRefusedError::ExportMissing {
            is_generator: F::INTERFACE.starts_with("keywright:generator/"),
            interface: versioned(F::INTERFACE, version),
        };
        Self::find(component, version)?.ok_or_else(missing)
    }

    /// Checks the function's type against its interface.
    pub(crate) fn check(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
    ) -> Result<(), PluginRefusedError> {
        let typed = self.typed::<F::Parameters<'static>>(store, instance);
        typed
            .map(|_| ())
            .map_err(|_| PluginRefusedError::ExportDiffers(versioned(F::INTERFACE, self.version)))
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
