//! Generators in their sandbox, without a server around them.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
    path::Path,
    sync::Arc,
};

use keywright_core::{credential::CredentialType, ports::Generator};
use keywright_runtime::{
    CacheKey, Compiler, Grant, Limits, PluginConfig, Runtime, RuntimeConfig, SandboxConfig,
    SystemRandom,
};
use serde_json::Map;

use crate::{server, statistics::Outcome};

/// Loads a generator like the server, but with one thread for its calls.
pub(crate) fn load(name: &str, plugin: PluginConfig) -> Outcome<Arc<dyn Generator>> {
    let cache = server::directory()?;
    let config = RuntimeConfig {
        sandbox: SandboxConfig {
            threads_per_lane: Some(NonZeroUsize::MIN),
            ..SandboxConfig::new(cache.path().join("plugins"))
        },
        compiler: Compiler::ThisProcess,
        generators: BTreeMap::from([(name.to_owned(), plugin)]),
        resolver: None,
        tested: BTreeSet::new(),
    };
    let runtime = Runtime::load(
        &config,
        &CacheKey::new(&[0; 32]),
        Arc::new(SystemRandom),
        Arc::new(|_, _| None),
    )?;
    let credential_type = CredentialType::parse(name)?;
    runtime
        .generator(&credential_type)
        .ok_or_else(|| format!("no generator of {name} was loaded").into())
}

/// Returns a plugin of this component, with these grants and the default limits.
pub(crate) fn config(component: &Path, grants: Vec<Grant>) -> PluginConfig {
    PluginConfig {
        component: component.to_owned().into(),
        sha256: None,
        settings: Map::new(),
        grants,
        derived: true,
        limits: Limits::default(),
    }
}
