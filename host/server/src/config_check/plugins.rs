//! The plugins and their sandbox.

use std::{path::PathBuf, sync::Arc};

use keywright_registry::Cache;
use keywright_runtime::{LoadRefused, Runtime, SandboxConfig, SystemRandom};

use super::{Findings, access::check_private_folder};
use crate::{
    components::{Components, ConfiguredPlugins},
    config::Sections,
    started::StartRefused,
};

/// Looks the sandbox and the keys of signatures over, and loads each plugin as the server does, but for the compiled ones that the
/// server has kept: they are compiled anew. What is in registries is pulled, unless it was before. Nothing is kept.
pub(super) async fn check(sections: Sections, loads_plugins: bool, findings: &mut Findings) {
    if let Some(sandbox) = &sections.plugins {
        let folder = &sandbox.cache_directory;
        check_private_folder("plugins.cache_directory", folder, findings);
    }
    check_signature_keys(&sections, findings);
    if !loads_plugins {
        return;
    }
    let sandbox = sections.plugins;
    let sandbox = sandbox.unwrap_or_else(|| SandboxConfig::new(PathBuf::new()));
    let components = Components {
        registry: &sections.registry.unwrap_or_default(),
        cache: Cache::read_only(&sandbox.cache_directory),
    };
    let plugins = ConfiguredPlugins {
        generators: &sections.generators,
        resolver: sections.resolver.as_ref(),
    };
    let (config, absent) = components.collect(sandbox, plugins).await;
    for refused in absent {
        let setting = refused.setting.clone();
        let refused = Err::<(), _>(StartRefused::while_doing("loading it", refused));
        findings.taken(setting, refused);
    }
    let checked =
        tokio::task::spawn_blocking(move || Runtime::check(&config, None, Arc::new(SystemRandom)))
            .await;
    let refusals = match checked {
        Ok(refusals) => refusals,
        Err(cause) => vec![LoadRefused::Threads(cause.into())],
    };
    for refused in refusals {
        let setting = match &refused {
            LoadRefused::Plugin(plugin) if plugin.is_generator => {
                format!("generators.{}.{}", plugin.plugin, plugin.refusal.setting())
            }
            LoadRefused::Plugin(plugin) => format!("resolver.{}", plugin.refusal.setting()),
            LoadRefused::SettingOutOfBounds { setting, .. } => format!("plugins.{setting}"),
            _ => "plugins".to_owned(),
        };
        let refused = Err::<(), _>(StartRefused::while_doing("loading it", refused));
        findings.taken(setting, refused);
    }
}

fn check_signature_keys(sections: &Sections, findings: &mut Findings) {
    let generators = sections.generators.iter();
    let generators = generators.map(|(name, plugin)| (format!("generators.{name}"), plugin));
    let resolver = sections.resolver.iter();
    let resolver = resolver.map(|plugin| ("resolver".to_owned(), plugin));
    for (section, plugin) in generators.chain(resolver) {
        if let Some(signature) = &plugin.signature {
            findings.taken(format!("{section}.signature"), signature.key());
        }
    }
}
