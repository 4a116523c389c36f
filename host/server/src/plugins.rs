//! The server's plugins and their replacement at SIGHUP.
//!
//! All components are read or pulled, and their signatures verified, before the first is loaded.
//!
//! At each SIGHUP, the server reads the configuration again. It pulls, compiles and checks the plugins of the sections
//! `plugins`, `registry`, `generators` and `resolver` while requests use the old plugins. If there is an error, all old
//! plugins remain in use. Otherwise the server replaces all plugins.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    mem,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use futures_util::future::join_all;
use keywright_api::error_chain;
use keywright_registry::{Cache, PinnedReference, RegistryError, SignatureKey, pull};
use keywright_runtime::{
    self as runtime, CacheAccess, CacheKey, ComponentSource, LoadError, Plugins, Runtime,
    RuntimeConfig, SandboxConfig, SystemRandom,
};
use tokio::{signal::unix::Signal as SignalStream, task::spawn_blocking};

use crate::{
    config::{
        ComponentLocation, Config, EncryptionConfig, PluginConfig, RegistryConfig, SignatureConfig,
    },
    keys::{self, SharedKeyRing},
    measurements,
    plugin_cache::{InUse, remove_unused},
    process::compiler,
    started::{StartupContext, StartupError},
    test_authority::test_issuers,
};

/// Loads the plugins of a configuration, and reloads them at each SIGHUP. Create the stream before any task handles SIGHUP: it keeps a
/// signal that arrives before the plugins are loaded.
pub(crate) async fn load(
    config: &Config,
    file: &Path,
    key_ring: &SharedKeyRing,
    hangup: SignalStream,
) -> Result<Arc<Plugins>, StartupError> {
    let cache_key = Arc::new(cache_key(key_ring)?);
    let (plugins, refused, pulled) = collect(config).await;
    if let Some(first) = refused.into_iter().next() {
        return Err(StartupError::while_doing("loading the plugins", first));
    }
    let key = Arc::clone(&cache_key);
    // On a separate thread, because compilation blocks.
    let (runtime, in_use) = spawn_blocking(move || load_runtime(&plugins, &pulled, &key))
        .await
        .while_doing("loading the plugins")?
        .while_doing("loading the plugins")?;
    let plugins = Arc::new(Plugins::new(runtime));
    replace_on_hangup(hangup, &plugins, in_use, file.to_owned(), cache_key);
    Ok(plugins)
}

/// Derives the key that authenticates the plugin cache from the active encryption key.
pub(crate) fn cache_key(key_ring: &SharedKeyRing) -> Result<CacheKey, StartupError> {
    let key = key_ring
        .derive(CACHE_LABEL)
        .while_doing("deriving the plugin cache's key")?;
    Ok(CacheKey::new(&key))
}

/// Derives the key of the plugin cache without the database. Returns `None` unless the active encryption key is a readable raw key:
/// keys of other providers also depend on records in the database.
pub(crate) async fn cache_key_without_database(encryption: &EncryptionConfig) -> Option<CacheKey> {
    let key_ring = keys::raw_key_ring(encryption).await?;
    Some(CacheKey::new(&*key_ring.derive(CACHE_LABEL).ok()?))
}

fn replace_on_hangup(
    mut hangup: SignalStream,
    plugins: &Arc<Plugins>,
    mut in_use: InUse,
    file: PathBuf,
    cache_key: Arc<CacheKey>,
) {
    let plugins = Arc::clone(plugins);
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            let (plugins, file) = (Arc::clone(&plugins), file.clone());
            let replacing = replace(plugins, file, Arc::clone(&cache_key));
            match tokio::spawn(replacing).await {
                Ok(Some(now_in_use)) => drop(mem::replace(&mut in_use, now_in_use)),
                Ok(None) => {}
                Err(_) => tracing::error!("the task that reloads the plugins failed"),
            }
        }
    });
}

/// Loads the plugins of the current configuration file and replaces the old plugins. Returns the cache files of the new
/// plugins, or `None` if an error was logged and the old plugins remain in use.
async fn replace(plugins: Arc<Plugins>, file: PathBuf, cache_key: Arc<CacheKey>) -> Option<InUse> {
    let loaded = load_configured(&file, cache_key).await;
    measurements::reloaded("plugins", loaded.is_ok());
    match loaded {
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
                "could not reload the plugins: calls use the previous plugins"
            );
            None
        }
    }
}

/// Loads the plugins of the current configuration file, or returns all errors.
async fn load_configured(
    file: &Path,
    cache_key: Arc<CacheKey>,
) -> Result<(Runtime, InUse), Vec<String>> {
    let config = Config::load(file).map_err(|refused| vec![refused.with_causes()])?;
    let (config, missing, pulled) = collect(&config).await;
    let missing: Vec<String> = missing.into_iter().map(describe).collect();
    // On a separate thread, because compilation blocks; shutdown does not wait for it.
    spawn_blocking(move || load_or_reasons(&config, missing, &pulled, &cache_key))
        .await
        .unwrap_or_else(|join_error| Err(vec![describe(join_error)]))
}

fn load_or_reasons(
    config: &RuntimeConfig,
    mut reasons: Vec<String>,
    pulled: &Cache,
    cache_key: &CacheKey,
) -> Result<(Runtime, InUse), Vec<String>> {
    let loaded = if reasons.is_empty() {
        load_runtime(config, pulled, cache_key).map_err(Some)
    } else {
        Err(None)
    };
    loaded.map_err(|first| {
        // Components that could be loaded are cached by now, so this is fast.
        let cache = CacheAccess::ReadWrite(cache_key);
        let others = Runtime::check(config, cache, Arc::new(SystemRandom), test_issuers());
        reasons.extend(others.into_iter().map(describe));
        if reasons.is_empty() {
            reasons.extend(first.map(describe));
        }
        reasons
    })
}

fn load_runtime(
    config: &RuntimeConfig,
    pulled: &Cache,
    cache_key: &CacheKey,
) -> Result<(Runtime, InUse), LoadError> {
    let runtime = Runtime::load(config, cache_key, Arc::new(SystemRandom), test_issuers())?;
    let now = SystemTime::now();
    let in_use = InUse::mark(&(runtime.cached_files() | &pulled.used_files()), now);
    let sandbox = &config.sandbox;
    remove_unused(&sandbox.cache_directory, sandbox.cache_unused_max(), now);
    Ok((runtime, in_use))
}

/// Returns the runtime's configuration, an error for each plugin whose component is unavailable, and the cache of
/// pulled components.
async fn collect(config: &Config) -> (RuntimeConfig, Vec<ComponentError>, Cache) {
    let components = Components {
        registry: &config.registry,
        cache: Cache::new(&config.plugins.cache_directory),
    };
    let (sandbox, resolver) = (config.plugins.clone(), config.resolver.as_ref());
    let collected = components.collect(sandbox, &config.generators, resolver);
    let (plugins, refused) = collected.await;
    (plugins, refused, components.cache)
}

fn describe(refused: impl Error + Send + Sync + 'static) -> String {
    StartupError::while_doing("loading the plugins", refused).with_causes()
}

/// The sources of components.
pub(crate) struct Components<'a> {
    /// The configured registries, and the limits for pulling from them.
    pub(crate) registry: &'a RegistryConfig,
    /// Components pulled earlier.
    pub(crate) cache: Cache,
}

/// A component could not be read or pulled, or its signature is missing or invalid.
#[derive(Debug, thiserror::Error)]
#[error("the plugin {plugin} (component {component}) is refused")]
pub(crate) struct ComponentError {
    plugin: String,
    component: String,
    /// The full name of the setting to correct.
    pub(crate) setting: String,
    source: Box<dyn Error + Send + Sync>,
}

impl ComponentError {
    /// Returns the component and the cause, for a message that names the setting.
    pub(crate) fn without_plugin(&self) -> String {
        format!("{}: {}", self.component, error_chain(self.source.as_ref()))
    }
}

/// The plugin's setting to correct, and the cause of the error.
type Cause = (&'static str, Box<dyn Error + Send + Sync>);

impl Components<'_> {
    /// Reads, pulls and verifies the components. Returns the configuration of plugins with available components, and
    /// the errors of the remaining plugins.
    pub(crate) async fn collect(
        &self,
        sandbox: SandboxConfig,
        generators: &BTreeMap<String, PluginConfig>,
        resolver: Option<&PluginConfig>,
    ) -> (RuntimeConfig, Vec<ComponentError>) {
        let named = generators.iter().map(|(name, plugin)| (Some(name), plugin));
        let named = named.chain(resolver.map(|plugin| (None, plugin)));
        let collected = named.map(async |(name, plugin)| (name, self.plugin(name, plugin).await));
        let mut config = RuntimeConfig {
            compiler: compiler(sandbox.compile_seconds_max.number()),
            sandbox,
            generators: BTreeMap::new(),
            resolver: None,
            tested: tested_components(),
        };
        let mut refused = Vec::new();
        for (name, plugin) in join_all(collected).await {
            match (name, plugin) {
                (Some(name), Ok(plugin)) => {
                    config.generators.insert(name.clone(), plugin);
                }
                (None, Ok(plugin)) => config.resolver = Some(plugin),
                (_, Err(cause)) => refused.push(cause),
            }
        }
        (config, refused)
    }

    async fn plugin(
        &self,
        generator: Option<&String>,
        plugin: &PluginConfig,
    ) -> Result<runtime::PluginConfig, ComponentError> {
        let section = generator.map_or("resolver".to_owned(), |name| format!("generators.{name}"));
        let component = self
            .source(plugin)
            .await
            .map_err(|(setting, source)| ComponentError {
                plugin: generator.map_or("resolver", String::as_str).to_owned(),
                component: plugin.component.to_string(),
                setting: format!("{section}.{setting}"),
                source,
            })?;
        Ok(runtime::PluginConfig {
            component,
            sha256: plugin.sha256.clone(),
            settings: plugin.settings.clone(),
            grants: plugin.grants.clone(),
            derived: plugin.derived,
            limits: plugin.limits,
        })
    }

    async fn source(&self, plugin: &PluginConfig) -> Result<ComponentSource, Cause> {
        let key = plugin.signature.as_ref().map(SignatureConfig::key);
        let key = key
            .transpose()
            .map_err(|cause| ("signature", cause.into()))?;
        match (&plugin.component, key) {
            (ComponentLocation::File(path), None) => Ok(ComponentSource::File(path.clone())),
            (ComponentLocation::File(path), Some(key)) => {
                let path = path.clone();
                // The file may be large; requests must not wait for its digest.
                spawn_blocking(move || read_signed_file(&path, &key))
                    .await
                    .unwrap_or_else(|join_error| Err(("component", join_error.into())))
            }
            (ComponentLocation::Registry(reference), key) => {
                self.pull_component(reference, key.as_ref()).await
            }
        }
    }

    async fn pull_component(
        &self,
        reference: &PinnedReference,
        key: Option<&SignatureKey>,
    ) -> Result<ComponentSource, Cause> {
        let registry = self.registry.registry(reference.host());
        let registry = registry.map_err(|cause| ("component", cause.into()))?;
        let pulled = pull(
            &registry,
            reference,
            key,
            &self.cache,
            self.registry.limits(),
        );
        let pulled = pulled
            .await
            .map_err(|fault| (setting_of(&fault), fault.into()))?;
        tracing::info!(
            component = %reference,
            signed = key.is_some(),
            "{}",
            if pulled.was_cached {
                "used the cached component instead of pulling it"
            } else {
                "pulled the component from its registry"
            }
        );
        Ok(ComponentSource::Bytes {
            name: reference.to_string(),
            bytes: pulled.component.into(),
        })
    }
}

/// Returns the digests of the components that passed the entropy test when this release was built. `cargo xtask dist` sets the
/// variable at compile time. In other builds, the list is empty, and every component is tested when it is loaded.
fn tested_components() -> BTreeSet<String> {
    let list = option_env!("KEYWRIGHT_TESTED_COMPONENTS").unwrap_or_default();
    list.split_ascii_whitespace().map(str::to_owned).collect()
}

/// Reads a file, verifies its signature, and returns the verified bytes. They are loaded instead of the file, which may
/// change after verification.
fn read_signed_file(path: &Path, key: &SignatureKey) -> Result<ComponentSource, Cause> {
    let file = ComponentSource::File(path.to_owned());
    let bytes = file
        .read()
        .map_err(|refusal| ("component", refusal.into()))?;
    key.verify_file(path, &bytes)
        .map_err(|refused| ("signature", refused.into()))?;
    Ok(ComponentSource::Bytes {
        name: path.display().to_string(),
        bytes: bytes.into(),
    })
}

fn setting_of(fault: &RegistryError) -> &'static str {
    match fault {
        RegistryError::Signature(_) => "signature",
        _ => "component",
    }
}

/// The label for deriving the key that authenticates compiled plugins.
const CACHE_LABEL: &str = "compiled plugins";
