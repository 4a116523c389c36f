//! The plugins of the server, and their replacement at SIGHUP.
//!
//! The configuration is read again at each SIGHUP, and its sections `plugins`, `generators` and `resolver` make a new set, which
//! is compiled and checked while requests go on with the old one. It takes that one's place as a whole, or not at all.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use keywright_runtime::{CacheKeys, LoadRefused, Plugins, Runtime, RuntimeConfig, SystemRandom};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::spawn_blocking,
};

use crate::{config::Config, keys::SharedKeyRing, started::StartRefused};

/// Loads the plugins of a configuration, and from now on whatever its file says at each SIGHUP.
pub(crate) async fn load(
    config: &Config,
    file: &Path,
    key_ring: &SharedKeyRing,
) -> Result<Arc<Plugins>, StartRefused> {
    let derived = key_ring
        .derive(CACHE_LABEL)
        .map_err(|cause| StartRefused::while_doing("deriving the plugin cache's keys", cause))?;
    let others = derived.others.iter().map(|key| &**key);
    let cache_keys = Arc::new(CacheKeys::new(&derived.active, others));
    let (plugins, keys) = (runtime_config(config), Arc::clone(&cache_keys));
    // On a thread where compiling them holds nobody up.
    let runtime = spawn_blocking(move || Runtime::load(&plugins, &keys, Arc::new(SystemRandom)))
        .await
        .map_err(|cause| StartRefused::while_doing("loading the plugins", cause))?
        .map_err(|cause| StartRefused::while_doing("loading the plugins", cause))?;
    let plugins = Arc::new(Plugins::new(runtime));
    replace_on_hangup(&plugins, file.to_owned(), cache_keys)?;
    Ok(plugins)
}

fn replace_on_hangup(
    plugins: &Arc<Plugins>,
    file: PathBuf,
    cache_keys: Arc<CacheKeys>,
) -> Result<(), StartRefused> {
    let mut hangup = signal(SignalKind::hangup())
        .map_err(|cause| StartRefused::while_doing("listening for SIGHUP", cause))?;
    let plugins = Arc::clone(plugins);
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            let (plugins, file) = (Arc::clone(&plugins), file.clone());
            let cache_keys = Arc::clone(&cache_keys);
            if spawn_blocking(move || replace(&plugins, &file, &cache_keys))
                .await
                .is_err()
            {
                tracing::error!("loading the plugins again ended early");
            }
        }
    });
    Ok(())
}

fn replace(plugins: &Plugins, file: &Path, cache_keys: &CacheKeys) {
    match loaded_again(file, cache_keys) {
        Ok(runtime) => {
            plugins.replace(runtime);
            tracing::info!("the plugins were loaded again: new calls use them");
        }
        Err(reasons) => {
            for reason in &reasons {
                tracing::error!(error = reason, "a reason against the new plugins");
            }
            tracing::error!(
                reasons = reasons.len(),
                "the new plugins can't be used: calls use those that were loaded before"
            );
        }
    }
}

/// What the configuration says now, or every reason against it.
fn loaded_again(file: &Path, cache_keys: &CacheKeys) -> Result<Runtime, Vec<String>> {
    let config = Config::load(file).map_err(|refused| vec![refused.with_causes()])?;
    let config = runtime_config(&config);
    Runtime::load(&config, cache_keys, Arc::new(SystemRandom)).map_err(|first| {
        let mut reasons = Runtime::check(&config, Arc::new(SystemRandom));
        if reasons.is_empty() {
            reasons.push(first);
        }
        reasons.into_iter().map(in_words).collect()
    })
}

fn in_words(refused: LoadRefused) -> String {
    StartRefused::while_doing("loading the plugins", refused).with_causes()
}

fn runtime_config(config: &Config) -> RuntimeConfig {
    RuntimeConfig {
        sandbox: config.plugins.clone(),
        generators: config.generators.clone(),
        resolver: config.resolver.clone(),
    }
}

/// What the key that authenticates compiled plugins is derived for.
const CACHE_LABEL: &str = "compiled plugins";
