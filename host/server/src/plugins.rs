//! The server's plugins and their replacement at SIGHUP.
//!
//! The configuration is read again at each SIGHUP. The plugins of its sections `plugins`, `registry`, `generators` and
//! `resolver` are pulled, compiled and checked while requests use the old plugins. Then all plugins are replaced, or
//! none if there is an error.

use std::{
    error::Error,
    mem,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use keywright_registry::Cache;
use keywright_runtime::{
    CacheAccess, CacheKeys, LoadRefused, Plugins, Runtime, RuntimeConfig, SystemRandom,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::spawn_blocking,
};

use crate::{
    components::{ComponentError, Components, ConfiguredPlugins},
    config::{Config, EncryptionConfig},
    keys::{self, SharedKeyRing},
    plugin_cache::{InUse, remove_unused},
    started::StartRefused,
};

/// Loads the plugins of a configuration, and reloads them at each SIGHUP.
pub(crate) async fn load(
    config: &Config,
    file: &Path,
    key_ring: &SharedKeyRing,
) -> Result<Arc<Plugins>, StartRefused> {
    let cache_keys = Arc::new(cache_keys(key_ring)?);
    let (plugins, refused, pulled) = collected(config).await;
    if let Some(first) = refused.into_iter().next() {
        return Err(StartRefused::while_doing("loading the plugins", first));
    }
    let keys = Arc::clone(&cache_keys);
    // On a separate thread, because compilation blocks.
    let (runtime, in_use) = spawn_blocking(move || loaded(&plugins, &pulled, &keys))
        .await
        .map_err(|cause| StartRefused::while_doing("loading the plugins", cause))?
        .map_err(|cause| StartRefused::while_doing("loading the plugins", cause))?;
    let plugins = Arc::new(Plugins::new(runtime));
    replace_on_hangup(&plugins, in_use, file.to_owned(), cache_keys)?;
    Ok(plugins)
}

/// Derives the keys that authenticate the plugin cache.
pub(crate) fn cache_keys(key_ring: &SharedKeyRing) -> Result<CacheKeys, StartRefused> {
    let derived = key_ring
        .derive(CACHE_LABEL)
        .map_err(|cause| StartRefused::while_doing("deriving the plugin cache's keys", cause))?;
    let others = derived.others.iter().map(|key| &**key);
    Ok(CacheKeys::new(&derived.active, others))
}

/// Derives the key of the plugin cache from the active encryption key. `None` if that key also depends on records in
/// the database.
pub(crate) async fn cache_keys_without_database(
    encryption: &EncryptionConfig,
) -> Option<CacheKeys> {
    let key_ring = keys::raw_key_ring(encryption).await?;
    Some(CacheKeys::new(&*key_ring.derive(CACHE_LABEL).ok()?, []))
}

fn replace_on_hangup(
    plugins: &Arc<Plugins>,
    mut in_use: InUse,
    file: PathBuf,
    cache_keys: Arc<CacheKeys>,
) -> Result<(), StartRefused> {
    let mut hangup = signal(SignalKind::hangup())
        .map_err(|cause| StartRefused::while_doing("listening for SIGHUP", cause))?;
    let plugins = Arc::clone(plugins);
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            let (plugins, file) = (Arc::clone(&plugins), file.clone());
            let replacing = replace(plugins, file, Arc::clone(&cache_keys));
            match tokio::spawn(replacing).await {
                Ok(Some(now_in_use)) => drop(mem::replace(&mut in_use, now_in_use)),
                Ok(None) => {}
                Err(_) => tracing::error!("the task that reloads the plugins failed"),
            }
        }
    });
    Ok(())
}

/// Replaces the plugins by those configured now, if there are no errors. Returns the files in use from then on.
async fn replace(
    plugins: Arc<Plugins>,
    file: PathBuf,
    cache_keys: Arc<CacheKeys>,
) -> Option<InUse> {
    match loaded_again(&file, cache_keys).await {
        Ok((runtime, in_use)) => {
            plugins.replace(runtime);
            tracing::info!("reloaded the plugins: new calls use them");
            Some(in_use)
        }
        Err(reasons) => {
            for reason in &reasons {
                tracing::error!(error = reason, "rejected new plugin configuration");
            }
            tracing::error!(
                reasons = reasons.len(),
                "the new plugins can't be used: calls use those that were loaded before"
            );
            None
        }
    }
}

/// Loads the plugins configured now, or returns all errors.
async fn loaded_again(
    file: &Path,
    cache_keys: Arc<CacheKeys>,
) -> Result<(Runtime, InUse), Vec<String>> {
    let config = Config::load(file).map_err(|refused| vec![refused.with_causes()])?;
    let (config, absent, pulled) = collected(&config).await;
    let absent: Vec<String> = absent.into_iter().map(in_words).collect();
    // On a separate thread, because compilation blocks; shutdown does not wait for it.
    spawn_blocking(move || loaded_or_reasons(&config, absent, &pulled, &cache_keys))
        .await
        .unwrap_or_else(|ended_early| Err(vec![in_words(ended_early)]))
}

/// Loads the collected plugins, or returns all errors, including the given ones.
fn loaded_or_reasons(
    config: &RuntimeConfig,
    mut reasons: Vec<String>,
    pulled: &Cache,
    cache_keys: &CacheKeys,
) -> Result<(Runtime, InUse), Vec<String>> {
    let loaded = if reasons.is_empty() {
        loaded(config, pulled, cache_keys).map_err(Some)
    } else {
        Err(None)
    };
    loaded.map_err(|first| {
        // Components that could be loaded are cached by now, so this is fast.
        let cache = CacheAccess::ReadWrite(cache_keys);
        let others = Runtime::check(config, cache, Arc::new(SystemRandom));
        reasons.extend(others.into_iter().map(in_words));
        if reasons.is_empty() {
            reasons.extend(first.map(in_words));
        }
        reasons
    })
}

/// Loads the plugins, and removes files from the cache that no server has used for long.
fn loaded(
    config: &RuntimeConfig,
    pulled: &Cache,
    cache_keys: &CacheKeys,
) -> Result<(Runtime, InUse), LoadRefused> {
    let runtime = Runtime::load(config, cache_keys, Arc::new(SystemRandom))?;
    let now = SystemTime::now();
    let in_use = InUse::mark(&(runtime.cached_files() | &pulled.used_files()), now);
    let sandbox = &config.sandbox;
    remove_unused(&sandbox.cache_directory, sandbox.cache_unused_max(), now);
    Ok((runtime, in_use))
}

/// Returns the configuration for the runtime, the plugins without a component, and the pulled components.
async fn collected(config: &Config) -> (RuntimeConfig, Vec<ComponentError>, Cache) {
    let components = Components {
        registry: &config.registry,
        cache: Cache::new(&config.plugins.cache_directory),
    };
    let plugins = ConfiguredPlugins {
        generators: &config.generators,
        resolver: config.resolver.as_ref(),
    };
    let (plugins, refused) = components.collect(config.plugins.clone(), plugins).await;
    (plugins, refused, components.cache)
}

fn in_words(refused: impl Error + Send + Sync + 'static) -> String {
    StartRefused::while_doing("loading the plugins", refused).with_causes()
}

/// The label for deriving the key that authenticates compiled plugins.
const CACHE_LABEL: &str = "compiled plugins";
