//! Loads the configured plugins, and replaces the active plugins without interrupting requests.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    panic::resume_unwind,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use keywright_core::{
    credential::CredentialType,
    permission::Actor,
    ports::{Generator, Generators, PluginState, PluginStates, Resolver, Resolvers},
};
use metrics::{describe_gauge, gauge};
use parking_lot::RwLock;
use wasmtime::Engine;

use crate::{
    breaker::Breakers,
    cache::{self, Cache, CacheAccess, CacheKey},
    call::{self, Plugin},
    component::{Role, Uncompiled, credential_type, link, roles},
    config::{Compiler, Limits, RuntimeConfig, THREADS_PER_LANE_MAX},
    conformance::{Effort, RepeatableRandom},
    engine::{CALLING_THREAD_STACK_BYTES, new_engine, start_ticking},
    generator::{GeneratorGuest, WasmGenerator, entropy_report},
    host::{RandomSource, TestIssuers},
    lane::{self, LaneOccupancy, Lanes, THREADS_RESERVED},
    load_error::{LoadError, PluginLoadError, PluginRefusedError},
    resolver::{ResolverGuest, WasmResolver},
};

/// The loaded plugins.
pub struct Runtime {
    generators: BTreeMap<CredentialType, Arc<WasmGenerator>>,
    resolver: Option<Arc<WasmResolver>>,
    lanes: Arc<Lanes>,
    cached_files: BTreeSet<PathBuf>,
}

impl Runtime {
    /// Loads all plugins, and compiles components that are not in the cache. `cache_key` authenticates the cache files. `issuers`
    /// sign in the entropy test.
    ///
    /// # Errors
    /// The first error that prevents a plugin from loading, in alphabetical order of the plugins.
    pub fn load(
        config: &RuntimeConfig,
        cache_key: &CacheKey,
        random: Arc<dyn RandomSource>,
        issuers: TestIssuers,
    ) -> Result<Self, LoadError> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let roles: Vec<_> = roles(config).collect();
        let [short, generate] = config.sandbox.threads_per_lane.map_or(
            [cores, cores + THREADS_RESERVED].map(|threads| threads.min(THREADS_PER_LANE_MAX)),
            |threads| [threads.get(); 2],
        );
        let calls = short + generate;
        let cache = CacheAccess::ReadWrite(cache_key);
        let loader = Loader::new(
            &roles,
            [short, generate],
            calls,
            random,
            issuers,
            config,
            cache,
        )?;
        loader.load_all(&roles, cores.min(calls))
    }

    /// Returns all errors that can be found without compiling a component: missing files, unexpected digests, imports that are not
    /// granted.
    pub fn check_components(config: &RuntimeConfig) -> Vec<LoadError> {
        let refused = roles(config).filter_map(|role| {
            let refusal = Uncompiled::read(role).err()?;
            Some(role.refused(refusal).into())
        });
        refused.collect()
    }

    /// Returns all errors that prevent plugins from loading. Compiles components that are not in the cache.
    pub fn check(
        config: &RuntimeConfig,
        cache: CacheAccess<'_>,
        random: Arc<dyn RandomSource>,
        issuers: TestIssuers,
    ) -> Vec<LoadError> {
        let roles: Vec<_> = roles(config).collect();
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let outcomes = Loader::new(&roles, [1, 1], cores, random, issuers, config, cache)
            .and_then(|loader| loader.load_each(&roles, cores));
        match outcomes {
            Ok(outcomes) => {
                let refused = outcomes.into_iter().filter_map(Result::err);
                refused.map(LoadError::from).collect()
            }
            Err(refused) => vec![refused],
        }
    }

    /// Returns the generator of this type, if configured.
    pub fn generator(&self, credential_type: &CredentialType) -> Option<Arc<dyn Generator>> {
        let generator = self.generators.get(credential_type)?;
        Some(Arc::<WasmGenerator>::clone(generator))
    }

    /// Returns the resolver, if configured.
    pub fn resolver(&self) -> Option<Arc<dyn Resolver>> {
        let resolver = self.resolver.as_ref()?;
        Some(Arc::<WasmResolver>::clone(resolver))
    }

    /// Returns the cache files from which the plugins were loaded, or which were written for them.
    pub fn cached_files(&self) -> &BTreeSet<PathBuf> {
        &self.cached_files
    }

    pub(crate) fn occupancy(&self) -> [LaneOccupancy; 2] {
        self.lanes.occupancy()
    }

    /// Records for each generator whether it passed the entropy test.
    pub(crate) fn record_conformance(&self) {
        for (credential_type, generator) in &self.generators {
            let conforms = generator.entropy_bits_min().map_or(0.0, |_| 1.0);
            gauge!(ENTROPY_CONFORMS, "plugin" => credential_type.to_string()).set(conforms);
        }
    }
}

/// Registers the descriptions of the metrics of plugins.
pub fn describe_metrics() {
    call::describe_metrics();
    lane::describe_metrics();
    describe_gauge!(
        ENTROPY_CONFORMS,
        "1 for each generator that passed the entropy test, 0 for each generator that derives its values."
    );
}

const ENTROPY_CONFORMS: &str = "keywright_plugin_entropy_conforms";

/// The active plugins. Each lookup returns the currently active plugin, which stays usable by its holder after a replacement.
pub struct Plugins(RwLock<Arc<Runtime>>);

impl Plugins {
    /// Creates a set with these plugins.
    pub fn new(runtime: Runtime) -> Self {
        Self(RwLock::new(Arc::new(runtime)))
    }

    /// Replaces all plugins atomically. The threads of the previous plugins end after their last call.
    pub fn replace(&self, runtime: Runtime) {
        let previous = std::mem::replace(&mut *self.0.write(), Arc::new(runtime));
        // The lock is already released.
        drop(previous);
    }

    /// Returns the current occupancy of the active plugins' lanes.
    pub fn occupancy(&self) -> [LaneOccupancy; 2] {
        self.current().occupancy()
    }

    /// Records for each active generator whether it passed the entropy test.
    pub fn record_conformance(&self) {
        self.current().record_conformance();
    }

    fn current(&self) -> Arc<Runtime> {
        Arc::clone(&self.0.read())
    }
}

impl Generators for Plugins {
    fn generator(&self, credential_type: &CredentialType) -> Option<Arc<dyn Generator>> {
        self.current().generator(credential_type)
    }

    fn credential_types(&self) -> Vec<CredentialType> {
        self.current().generators.keys().cloned().collect()
    }
}

impl PluginStates for Plugins {
    fn states(&self, actor: &Actor) -> Vec<PluginState> {
        let current = self.current();
        let generators = current.generators.iter();
        let generators = generators.map(|(credential_type, generator)| PluginState {
            credential_type: Some(credential_type.clone()),
            ..generator.state(actor)
        });
        let resolver = current.resolver.iter();
        let resolver = resolver.map(|resolver| resolver.state(actor));
        generators.chain(resolver).collect()
    }
}

impl Resolvers for Plugins {
    fn resolver(&self) -> Option<Arc<dyn Resolver>> {
        self.current().resolver()
    }
}

/// Creates an engine sized for this number of simultaneous calls of any of these plugins, and starts its clock.
///
/// # Errors
/// If the address space can't be reserved, or the clock's thread can't be started.
pub(crate) fn engine_for<'a>(
    roles: impl Iterator<Item = Role<'a>>,
    calls: usize,
) -> Result<Engine, LoadError> {
    let calls = u32::try_from(calls).unwrap_or(u32::MAX);
    let memory_bytes_max = roles
        .map(|role| role.config.limits.memory_bytes_max)
        .max()
        .unwrap_or(Limits::default().memory_bytes_max);
    let engine = new_engine(calls, memory_bytes_max)
        .map_err(|source| LoadError::Engine { calls, source })?;
    start_ticking(&engine).map_err(LoadError::Threads)?;
    Ok(engine)
}

/// A loaded plugin.
enum Loaded {
    Generator(CredentialType, Arc<WasmGenerator>),
    Resolver(Arc<WasmResolver>),
}

/// The state shared by all plugins.
struct Loader<'c> {
    engine: Engine,
    compiler: &'c Compiler,
    /// The cache of compiled components, if any.
    cache: Option<Cache>,
    lanes: Arc<Lanes>,
    random: Arc<dyn RandomSource>,
    issuers: TestIssuers,
    breakers: Breakers,
    tested: &'c BTreeSet<String>,
}

impl<'c> Loader<'c> {
    /// Creates a loader. `threads` are the threads of the short and the generate lane. The engine is sized for `calls` simultaneous
    /// calls by the limits of these plugins, so the limits must be valid.
    fn new(
        roles: &[Role<'_>],
        threads: [usize; 2],
        calls: usize,
        random: Arc<dyn RandomSource>,
        issuers: TestIssuers,
        config: &'c RuntimeConfig,
        cache: CacheAccess<'_>,
    ) -> Result<Self, LoadError> {
        let sandbox = &config.sandbox;
        let engine = engine_for(roles.iter().copied(), calls)?;
        let lanes = Lanes::start(threads, sandbox.queue_limits()).map_err(LoadError::Threads)?;
        let directory = &sandbox.cache_directory;
        let cache = match cache {
            CacheAccess::None => None,
            CacheAccess::Read(keys) => Some(Cache::read_only(directory, keys, &engine)),
            CacheAccess::ReadWrite(keys) => Some(Cache::open(directory, keys, &engine)?),
        };
        Ok(Self {
            cache,
            engine,
            compiler: &config.compiler,
            lanes: Arc::new(lanes),
            random,
            issuers,
            breakers: Breakers::new(
                sandbox.faults_max.count_u32(),
                sandbox.disabled_seconds.seconds(),
            ),
            tested: &config.tested,
        })
    }

    fn load_all(&self, roles: &[Role<'_>], threads: usize) -> Result<Runtime, LoadError> {
        let (mut generators, mut resolver) = (BTreeMap::new(), None);
        for outcome in self.load_each(roles, threads)? {
            match outcome? {
                Loaded::Generator(credential_type, generator) => {
                    generators.insert(credential_type, generator);
                }
                Loaded::Resolver(loaded) => resolver = Some(loaded),
            }
        }
        Ok(Runtime {
            generators,
            resolver,
            lanes: Arc::clone(&self.lanes),
            cached_files: self
                .cache
                .as_ref()
                .map(Cache::used_files)
                .unwrap_or_default(),
        })
    }

    fn load_each(
        &self,
        roles: &[Role<'_>],
        threads: usize,
    ) -> Result<Vec<Result<Loaded, PluginLoadError>>, LoadError> {
        let next = AtomicUsize::new(0);
        let load_next = || {
            let index = next.fetch_add(1, Ordering::Relaxed);
            roles.get(index).map(|role| (index, self.load(*role)))
        };
        let mut outcomes = thread::scope(|scope| {
            let workers = (0..threads.min(roles.len()))
                .map(|_| {
                    thread::Builder::new()
                        .name("plugin-loader".to_owned())
                        .stack_size(CALLING_THREAD_STACK_BYTES)
                        .spawn_scoped(scope, || std::iter::from_fn(load_next).collect::<Vec<_>>())
                })
                .collect::<io::Result<Vec<_>>>()?;
            let outcomes = workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
            Ok(outcomes.collect::<Vec<_>>())
        })
        .map_err(LoadError::Threads)?;
        outcomes.sort_by_key(|(index, _)| *index);
        Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
    }

    fn load(&self, role: Role<'_>) -> Result<Loaded, PluginLoadError> {
        let loaded = if role.is_generator {
            self.load_generator(role)
        } else {
            self.load_resolver(role)
        };
        loaded.map_err(|refusal| role.refused(refusal))
    }

    fn load_generator(&self, role: Role<'_>) -> Result<Loaded, PluginRefusedError> {
        let credential_type = credential_type(role)?;
        let plugin = self.link(role)?;
        let mut guest = GeneratorGuest::of(plugin, Some(&credential_type))?;
        guest.plugin.check_settings()?;
        let repeatable = Arc::new(RepeatableRandom::new());
        guest.plugin.random = Arc::clone(&repeatable) as Arc<dyn RandomSource>;
        self.check_entropy(role, &guest, &repeatable)?;
        guest.plugin.random = Arc::clone(&self.random);
        log_loaded(&guest.plugin);
        let breaker = self.breakers.of(&guest.plugin.identity.digest);
        let generator = WasmGenerator::new(guest, Arc::clone(&self.lanes), breaker);
        Ok(Loaded::Generator(credential_type, Arc::new(generator)))
    }

    /// Refuses a generator that fails the entropy test, or derives its values without permission.
    fn check_entropy(
        &self,
        role: Role<'_>,
        guest: &GeneratorGuest,
        random: &Arc<RepeatableRandom>,
    ) -> Result<(), PluginRefusedError> {
        let Some(declared_bits) = guest.description.entropy_bits_min else {
            return if role.config.derived {
                Ok(())
            } else {
                Err(PluginRefusedError::DerivedNotAllowed)
            };
        };
        let plugin = &guest.plugin;
        let digest = &plugin.identity.digest;
        if plugin.settings == "{}" && self.tested.contains(digest) {
            return Ok(());
        }
        let effort = Effort::AT_START;
        let examine =
            || entropy_report(guest, random, declared_bits, effort, &self.issuers, &|_| {});
        let report = match &self.cache {
            Some(cache) => {
                cache.entropy_report(digest, &plugin.settings, declared_bits, examine)?
            }
            None => examine()?,
        };
        tracing::info!(
            plugin.name = plugin.identity.name,
            plugin.digest = digest,
            entropy.declared_bits = report.declared_bits,
            entropy.values = report.values,
            entropy.flipped_bits = report.flipped_bits,
            entropy.conforms = report.fault().is_none(),
            "evaluated the entropy test"
        );
        match report.fault() {
            Some(fault) => Err(PluginRefusedError::NotRandom(fault.clone())),
            None => Ok(()),
        }
    }

    fn load_resolver(&self, role: Role<'_>) -> Result<Loaded, PluginRefusedError> {
        let guest = ResolverGuest::new(self.link(role)?)?;
        guest.plugin.check_settings()?;
        log_loaded(&guest.plugin);
        let breaker = self.breakers.of(&guest.plugin.identity.digest);
        let resolver = WasmResolver::new(guest, Arc::clone(&self.lanes), breaker);
        Ok(Loaded::Resolver(Arc::new(resolver)))
    }

    /// Reads, checks, compiles and links a component.
    fn link(&self, role: Role<'_>) -> Result<Plugin, PluginRefusedError> {
        let Uncompiled {
            bytes,
            digest,
            checked,
        } = Uncompiled::read(role)?;
        let component = match &self.cache {
            Some(cache) => cache.component(self.compiler, &self.engine, &digest, &bytes)?,
            None => cache::compile(self.compiler, &self.engine, &bytes)?.1,
        };
        let random = Arc::clone(&self.random);
        link(&self.engine, &component, digest, checked, random)
    }
}

fn log_loaded(plugin: &Plugin) {
    tracing::info!(
        plugin.name = plugin.identity.name,
        plugin.version = plugin.identity.version,
        plugin.digest = plugin.identity.digest,
        "loaded plugin"
    );
}
