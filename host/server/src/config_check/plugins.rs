//! The plugins and their sandbox.

use std::{path::PathBuf, sync::Arc};

use keywright_registry::Cache;
use keywright_runtime::{
    CacheAccess, CacheKeys, LoadRefused, Runtime, SandboxConfig, SystemRandom,
};
use keywright_storage::Database;

use super::{Extent, Findings, access::check_private_folder};
use crate::{
    config::Sections,
    keys,
    plugins::{self, Components, ConfiguredPlugins},
    process::RandomIdentifiers,
    started::StartRefused,
};

/// Checks the sandbox and signature keys, and loads each plugin as the server does. Components in registries are
/// pulled, unless they are cached. Nothing is written.
///
/// Components are compiled last, and only if there are no errors, because compilation is slow. Components in the plugin
/// cache are not compiled if the keys of the cache are known.
pub(super) async fn check(sections: Sections, extent: Extent, findings: &mut Findings) {
    if let Some(sandbox) = &sections.plugins {
        let folder = &sandbox.cache_directory;
        check_private_folder("plugins.cache_directory", folder, findings);
    }
    check_signature_keys(&sections, findings);
    if !extent.loads_plugins {
        return;
    }
    let cache_keys = cache_keys(&sections, extent.connects).await;
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
    let config = Arc::new(config);
    let uncompiled = Arc::clone(&config);
    add(
        blocking(move || Runtime::check_components(&uncompiled)).await,
        findings,
    );
    if !findings.mistakes.is_empty() {
        let what = "were not compiled because of errors; correct them and check again";
        findings.warning("plugins", what);
        return;
    }
    let checked = blocking(move || {
        let cache = cache_keys
            .as_ref()
            .map_or(CacheAccess::None, CacheAccess::Read);
        Runtime::check(&config, cache, Arc::new(SystemRandom))
    });
    add(checked.await, findings);
}

/// Runs a check on a thread that does not serve requests.
async fn blocking(check: impl FnOnce() -> Vec<LoadRefused> + Send + 'static) -> Vec<LoadRefused> {
    tokio::task::spawn_blocking(check)
        .await
        .unwrap_or_else(|cause| vec![LoadRefused::Threads(cause.into())])
}

/// Returns the keys of the plugin cache, if they can be derived from the configuration or the connected database.
async fn cache_keys(sections: &Sections, connects: bool) -> Option<CacheKeys> {
    let encryption = sections.encryption.as_ref()?;
    let keys = plugins::cache_keys_without_database(encryption).await;
    if keys.is_some() || !connects {
        return keys;
    }
    let options = sections.storage.as_ref()?.options().ok()?;
    let database = Database::open_to_read(&options, Arc::new(RandomIdentifiers));
    let database = database.await.ok()?;
    let key_ring = keys::unlock_to_read(encryption, &database).await.ok()?;
    plugins::cache_keys(&key_ring).ok()
}

fn add(refusals: Vec<LoadRefused>, findings: &mut Findings) {
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
