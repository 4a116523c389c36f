//! Linking components with what they are granted.

use std::sync::Arc;

use keywright_core::credential::PluginIdentity;
use serde_json::Value;
use wasmtime::{Engine, component::Component};

use crate::{
    breaker::Breaker, call::Plugin, host::random::RandomSource, imports, refused::Refusal,
    role::Role, usage::Usage,
};

/// Links a component that must export an interface with what its configuration grants, and nothing else.
///
/// # Errors
/// When it lacks the interface, imports more than it is granted, or its settings are too large.
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
    let interface_version = imports::exported_version(engine, component, interface)?;
    imports::check_imports(engine, component, &config.grants)?;
    let component = imports::linker(engine, &config.grants)
        .and_then(|linker| linker.instantiate_pre(component))
        .map_err(Refusal::ImportDiffers)?;
    Ok(Plugin {
        identity: PluginIdentity {
            name: role.name.to_owned(),
            version: String::new(),
            digest,
            interface_version,
        },
        component,
        settings,
        limits: config.limits,
        random,
        breaker,
        usage: Usage::default(),
    })
}
