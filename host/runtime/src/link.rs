//! Linking components with the granted interfaces.

use std::sync::Arc;

use keywright_core::credential::PluginIdentity;
use serde_json::Value;
use wasmtime::{Engine, component::Component};

use crate::{
    call::Plugin,
    host::random::RandomSource,
    image, imports,
    measure::CallMeasurements,
    outline::Outline,
    refused::Refusal,
    role::Role,
    usage::Usage,
    versions::{BuiltFor, versioned},
};

/// The result of checking that a component fits its role.
pub(crate) struct Fitting<'a> {
    role: Role<'a>,
    settings: String,
    built_for: BuiltFor,
}

impl<'a> Fitting<'a> {
    /// Checks a component that must export an interface, before it is compiled.
    ///
    /// # Errors
    /// If it is built for an unsupported version, lacks the interface, has imports that are not granted, or its settings are
    /// too large.
    pub(crate) fn check(
        outline: &Outline,
        role: Role<'a>,
        interface: &'static str,
    ) -> Result<Self, Refusal> {
        let config = role.config;
        let settings = Value::Object(config.settings.clone()).to_string();
        if settings.len() > config.limits.input_bytes_max {
            return Err(Refusal::SettingsTooLarge);
        }
        let built_for = BuiltFor::of(outline)?;
        if !imports::exports_any(outline, interface) {
            let missing = versioned(interface, built_for.supported);
            return Err(Refusal::ExportMissing(missing));
        }
        imports::check_imports(outline, &config.grants)?;
        Ok(Self {
            role,
            settings,
            built_for,
        })
    }
}

/// Links a component with only the interfaces that its configuration grants.
///
/// # Errors
/// If its imports differ from the host's interfaces, or the system denies memory for its initial memory image.
pub(crate) fn link(
    engine: &Engine,
    component: &Component,
    digest: String,
    fitting: Fitting<'_>,
    random: Arc<dyn RandomSource>,
) -> Result<Plugin, Refusal> {
    let Fitting {
        role,
        settings,
        built_for,
    } = fitting;
    let config = role.config;
    image::make(component).map_err(Refusal::ImageNotMade)?;
    let component = imports::linker(engine, &config.grants)
        .and_then(|linker| linker.instantiate_pre(component))
        .map_err(Refusal::ImportDiffers)?;
    Ok(Plugin {
        identity: PluginIdentity {
            name: role.name.to_owned(),
            version: String::new(),
            digest,
            interface_version: built_for.named,
        },
        wit_version: built_for.supported,
        component,
        settings,
        limits: config.limits,
        random,
        notes: None,
        usage: Arc::new(Usage::default()),
        measurements: CallMeasurements::default(),
    })
}
