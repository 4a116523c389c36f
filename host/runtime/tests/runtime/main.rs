//! Tests of the runtime's public API: loading and calling plugins, and containing hostile guests.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failure in shared test code should end the test"
)]

mod calls;
mod conformance;
mod hostile;
mod load;

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, Once},
};

use keywright_core::{
    credential::{CredentialType, Parameters},
    ports::{Generator, PluginCallError, PluginFaultError},
};
use keywright_runtime::{
    CacheKey, Compiler, Grant, Limits, LoadError, PluginConfig, RandomSource, Runtime,
    RuntimeConfig, SandboxConfig, SystemRandom,
};
use serde_json::{Map, Value, json};
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve};

/// Returns the path of a built component.
pub(crate) fn component(name: &str) -> PathBuf {
    let path = workspace().join(format!("target/components/{name}.wasm"));
    assert!(
        path.exists(),
        "{} does not exist: run `cargo xtask build-guests` first",
        path.display()
    );
    path
}

/// Creates a component of a world whose functions all trap. `edit` changes the interfaces in `wit/` first.
pub(crate) fn dummy(name: &str, world: &str, edit: fn(String) -> String) -> PathBuf {
    let mut resolve = Resolve::default();
    for file in [
        "deps/wasi-random/random.wit",
        "signing/signing.wit",
        "generator/generator.wit",
        "interpolation/interpolation.wit",
    ] {
        let text = fs::read_to_string(workspace().join("wit").join(file)).unwrap();
        resolve.push_str(file, &edit(text)).unwrap();
    }
    let package = resolve
        .push_str("test.wit", &edit(format!("package test:test;\n{world}")))
        .unwrap();
    let world = resolve.select_world(&[package], None).unwrap();
    let abi = ManglingAndAbi::Legacy(LiftLowerAbi::Sync);
    let mut module = dummy_module(&resolve, world, abi);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    let bytes = ComponentEncoder::default()
        .module(&module)
        .unwrap()
        .encode()
        .unwrap();
    let path = scratch().join(format!("{name}.wasm"));
    fs::write(&path, bytes).unwrap();
    path
}

/// Leaves the interfaces unchanged.
pub(crate) fn unedited(text: String) -> String {
    text
}

/// Returns the folder for test files.
pub(crate) fn scratch() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// Returns a plugin configuration with all grants.
pub(crate) fn plugin(component: PathBuf, settings: &Value) -> PluginConfig {
    let Value::Object(settings) = settings.clone() else {
        panic!("settings are an object")
    };
    PluginConfig {
        component: component.into(),
        sha256: None,
        settings,
        grants: vec![Grant::Random, Grant::Signing],
        derived: true,
        limits: Limits::default(),
    }
}

/// Returns a configuration without plugins. All tests share its cache.
pub(crate) fn config() -> RuntimeConfig {
    static CACHE: Once = Once::new();
    let cache = scratch().join("plugin-cache");
    CACHE.call_once(|| {
        fs::create_dir_all(&cache).unwrap();
        fs::set_permissions(&cache, fs::Permissions::from_mode(0o700)).unwrap();
    });
    RuntimeConfig {
        sandbox: SandboxConfig::new(cache),
        compiler: Compiler::ThisProcess,
        generators: [].into(),
        resolver: None,
        tested: BTreeSet::new(),
    }
}

pub(crate) fn load(config: &RuntimeConfig) -> Result<Runtime, LoadError> {
    load_drawing(config, Arc::new(SystemRandom))
}

/// Loads plugins with this source of randomness.
pub(crate) fn load_drawing(
    config: &RuntimeConfig,
    random: Arc<dyn RandomSource>,
) -> Result<Runtime, LoadError> {
    LazyLock::force(&LOG);
    let key = CacheKey::new(&[7; 32]);
    Runtime::load(config, &key, random, Arc::new(|_, _| None))
}

/// Loads a plugin under this name and returns its generator.
pub(crate) fn generator(name: &str, plugin: PluginConfig) -> Arc<dyn Generator> {
    let mut config = config();
    config.generators.insert(name.to_owned(), plugin);
    let runtime = load(&config).unwrap();
    runtime
        .generator(&CredentialType::parse(name).unwrap())
        .unwrap()
}

/// Returns a generator that misbehaves according to these settings.
pub(crate) fn hostile(settings: &Value) -> Arc<dyn Generator> {
    hostile_within(settings, Limits::default())
}

/// Returns a generator that misbehaves according to these settings, with these limits.
pub(crate) fn hostile_within(settings: &Value, limits: Limits) -> Arc<dyn Generator> {
    let plugin = PluginConfig {
        limits,
        ..plugin(component("hostile"), settings)
    };
    generator("hostile", plugin)
}

pub(crate) fn parameters(json: &Value) -> Parameters {
    Parameters::new(json.as_object().unwrap().clone())
}

pub(crate) fn no_parameters() -> Parameters {
    Parameters::new(Map::new())
}

/// Returns settings with which one function misbehaves.
pub(crate) fn doing(function: &str, behaviour: &str) -> Value {
    json!({ function: behaviour })
}

/// Returns the failure of a plugin with this fault.
pub(crate) fn faulted(plugin: &str, fault: PluginFaultError) -> PluginCallError {
    PluginCallError::Faulted {
        plugin: plugin.to_owned(),
        fault,
    }
}

/// Returns the log so far, at all levels.
pub(crate) fn logged() -> String {
    String::from_utf8_lossy(&LOG.lock().unwrap()).into_owned()
}

static LOG: LazyLock<&'static Mutex<Vec<u8>>> = LazyLock::new(|| {
    static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(|| LogWriter(&LINES))
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    &LINES
});

struct LogWriter(&'static Mutex<Vec<u8>>);

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
