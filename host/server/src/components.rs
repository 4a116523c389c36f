//! Collects the components of the configured plugins: reads, pulls and verifies them before any is loaded.

use std::{collections::BTreeMap, error::Error, path::Path};

use futures_util::future::join_all;
use keywright_registry::{Cache, Fault, PinnedReference, SignatureKey, pull};
use keywright_runtime::{
    self as runtime, ComponentSource, RuntimeConfig, SandboxConfig, TestedComponents,
};
use tokio::task::spawn_blocking;

use crate::config::{ComponentLocation, PluginConfig, RegistryConfig, SignatureConfig};

/// The sources of components.
pub(crate) struct Components<'a> {
    /// The registries.
    pub(crate) registry: &'a RegistryConfig,
    /// Components pulled earlier.
    pub(crate) cache: Cache,
}

/// The plugins of a configuration.
#[derive(Clone, Copy)]
pub(crate) struct ConfiguredPlugins<'a> {
    /// The generators, by credential type.
    pub(crate) generators: &'a BTreeMap<String, PluginConfig>,
    /// The resolver.
    pub(crate) resolver: Option<&'a PluginConfig>,
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

/// A cause, and the plugin's setting to correct.
type Cause = (&'static str, Box<dyn Error + Send + Sync>);

impl Components<'_> {
    /// Returns the configuration of plugins with available components, and the errors of the others.
    pub(crate) async fn collect(
        &self,
        sandbox: SandboxConfig,
        plugins: ConfiguredPlugins<'_>,
    ) -> (RuntimeConfig, Vec<ComponentError>) {
        let generators = plugins.generators.iter();
        let named = generators.map(|(name, plugin)| (Some(name), plugin));
        let named = named.chain(plugins.resolver.map(|plugin| (None, plugin)));
        let collected = named.map(async |(name, plugin)| (name, self.plugin(name, plugin).await));
        let mut config = RuntimeConfig {
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
                spawn_blocking(move || signed_file(&path, &key))
                    .await
                    .unwrap_or_else(|ended_early| Err(("component", ended_early.into())))
            }
            (ComponentLocation::Registry(reference), key) => {
                self.pulled(reference, key.as_ref()).await
            }
        }
    }

    async fn pulled(
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
            .map_err(|fault| (setting(&fault), fault.into()))?;
        tracing::info!(
            component = %reference,
            signed = key.is_some(),
            "{}",
            if pulled.was_kept {
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

/// Returns the components whose randomness was tested when this program was built, if it is a release. `cargo xtask
/// dist` and `cargo xtask run --release` set the variable at compile time. Other builds test every component when they
/// load it.
pub(crate) fn tested_components() -> TestedComponents {
    let list = option_env!("KEYWRIGHT_TESTED_COMPONENTS");
    list.map(TestedComponents::parse).unwrap_or_default()
}

/// Returns the bytes of a file whose signature was verified: the same bytes, not the file.
fn signed_file(path: &Path, key: &SignatureKey) -> Result<ComponentSource, Cause> {
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

fn setting(fault: &Fault) -> &'static str {
    if fault.is_of_signature() {
        "signature"
    } else {
        "component"
    }
}
