//! Generators in their sandbox, without a server around them.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use keywright_core::{credential::CredentialType, ports::Generator};
use keywright_harness::component;
use keywright_runtime::{
    CacheKey, Compiler, Grant, Limits, PluginConfig, RandomError, RandomSource, Runtime,
    RuntimeConfig, SandboxConfig,
};
use rand::{Rng, SeedableRng, rngs::ChaCha12Rng};
use serde_json::Map;

use crate::{server, statistics::Outcome};

/// Loads a generator like the server, but with one thread for its calls.
pub(crate) fn load(
    name: &str,
    plugin: PluginConfig,
    random: Arc<dyn RandomSource>,
) -> Outcome<Arc<dyn Generator>> {
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
        random,
        Arc::new(|_, _| None),
    )?;
    let credential_type = CredentialType::parse(name)?;
    runtime
        .generator(&credential_type)
        .ok_or_else(|| format!("no generator of {name} was loaded").into())
}

/// Loads a shipped generator in the same way.
pub(crate) fn load_shipped(
    name: &str,
    random: Arc<dyn RandomSource>,
) -> Outcome<Arc<dyn Generator>> {
    load(name, config(&component(name), vec![Grant::Random]), random)
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

/// A repeatable random stream, so that both sides of a comparison get the same bytes and do the same work.
#[derive(Clone)]
pub(crate) struct RepeatableRandom(Arc<Mutex<ChaCha12Rng>>);

impl RepeatableRandom {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(ChaCha12Rng::seed_from_u64(0))))
    }

    /// Starts the stream with this number.
    pub(crate) fn begin(&self, number: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = ChaCha12Rng::seed_from_u64(number);
    }

    /// Returns this many bytes.
    pub(crate) fn bytes(&self, count: u64) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(count).unwrap_or_default()];
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .fill_bytes(&mut bytes);
        bytes
    }
}

impl RandomSource for RepeatableRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), RandomError> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .fill_bytes(bytes);
        Ok(())
    }
}
