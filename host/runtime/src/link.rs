//! Linking components with what they are granted.

use std::sync::Arc;

use keywright_core::credential::PluginIdentity;
use serde_json::Value;
use wasmtime::{Engine, component::Component};

use crate::{
    breaker::Breaker,
    call::Plugin,
    host::random::RandomSource,
    image, imports,
    refused::Refusal,
    role::Role,
    usage::Usage,
    versions::{BuiltFor, versioned},
};

/// Links a component that must export an interface with what its configuration grants, and nothing else.
///
/// # Errors
/// When it is built for no version that there is, lacks the interface, imports more than it is granted, its settings are too
/// large, or the system denies what its instances begin with.
pub(crate) fn link(
    engine: &Engine,
    component: &Component,
    digest: String,
    role: Role<'_>,
    interface: &'static str,
    random: Arc<dyn RandomSource>,
    breaker: Arc<Breaker>,
) -> Result<Plugin, Refusal> {
    let config = role.config;
    let settings = Value::Object(config.settings.clone()).to_string();
    if settings.len() > config.limits.input_bytes_max {
        return Err(Refusal::SettingsTooLarge);
    }
    let built_for = BuiltFor::of(engine, component)?;
    if !imports::exports_any(engine, component, interface) {
        let missing = versioned(interface, built_for.supported);
        return Err(Refusal::ExportMissing(missing));
    }
    imports::check_imports(engine, component, &config.grants)?;
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
        breaker,
        usage: Arc::new(Usage::default()),
    })
}
