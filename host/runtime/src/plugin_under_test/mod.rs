//! Running a single component outside a server, for its author or reviewer, on the same engine and with the same limits and
//! checks as in a server.

mod conformance_report;
mod description_changes;
mod requests;
mod run;
mod upgrade;
mod vectors;

use std::{
    error::Error,
    io,
    path::PathBuf,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use keywright_core::ports::{PluginCallError, PluginFaultError};
use serde::Serialize;
use serde_json::{Map, Value};
use wasmtime::{Engine, component::Component};

pub use conformance_report::{Check, ConformanceReport, LimitUsed};
use description_changes::Described;
pub use description_changes::{Difference, Effect, InspectedGenerator};
pub use run::{PluginCall, Run, TestRandom};
pub use upgrade::{ComparedRequest, Operation, Outcome, Prediction, UpgradeReport};
pub use vectors::{Mismatch, Vector, VectorsError};

use crate::{
    cache::{self, Cache},
    call::{Plugin, Usage},
    component::{CheckedComponent, Role, checked_digest, link},
    config::{Compiler, ComponentSource, Grant, Limits, PluginConfig},
    engine::CALLING_THREAD_STACK_BYTES,
    generator::{DESCRIPTOR, GeneratorGuest, TestInputs},
    host::{NoteReader, RandomSource, SystemRandom, TestIssuers},
    interfaces::{exports_any, grants_needed, named_versions},
    load::engine_for,
    load_error::{LoadError, PluginLoadError, PluginRefusedError},
    outline::Outline,
    resolver::{RESOLVERS, ResolverGuest},
};

/// The number of warm-up calls before the measured calls.
const CALLS_BEFORE: u32 = 10;

/// A document without references.
const EMPTY_DOCUMENT: &str = "{}";

/// The host of plugins under test.
#[derive(Clone)]
pub struct TestHost {
    /// Issuers for calls whose parameters name an issuer.
    pub issuers: TestIssuers,
    /// The folder for compiled components, if any. It is created with mode 0700 if it does not exist, and must belong to the
    /// current user and be inaccessible to others. A folder that can't be used is only logged.
    pub cache_directory: Option<PathBuf>,
    /// The compiler of components.
    pub compiler: Compiler,
    /// Receives the name of each step, if set.
    pub progress: Option<ProgressReader>,
}

/// A callback that receives the name of each step of a long operation.
pub type ProgressReader = Arc<dyn Fn(&str) + Send + Sync>;

impl TestHost {
    fn begin(&self, step: &str) {
        if let Some(progress) = &self.progress {
            progress(step);
        }
    }
}

/// A plugin under test, outside a server.
///
/// It is granted every import that a server can grant.
pub struct PluginUnderTest {
    host: TestHost,
    engine: Engine,
    outline: Outline,
    component: Component,
    digest: String,
    bytes: u64,
    name: String,
    config: PluginConfig,
    notes: Option<NoteReader>,
}

impl PluginUnderTest {
    /// Reads and compiles a component. `limits` apply to each call.
    pub fn open(
        component: impl Into<ComponentSource>,
        settings: Map<String, Value>,
        limits: Limits,
        host: &TestHost,
    ) -> Result<Self, LoadError> {
        let component = component.into();
        let name = component.short_name();
        let mut config = PluginConfig {
            component,
            sha256: None,
            settings,
            grants: Vec::new(),
            derived: true,
            limits,
        };
        let role = role(&name, &config);
        let refused = |refusal| LoadError::Plugin(role.refused(refusal));
        let engine = engine_for([role].into_iter(), 1)?;
        let bytes = config.component.read().map_err(refused)?;
        let digest = checked_digest(&bytes, None).map_err(refused)?;
        let outline = Outline::read(&bytes).map_err(refused)?;
        host.begin("compiling");
        let component = compiled(&engine, &digest, &bytes, host).map_err(refused)?;
        let bytes = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        config.grants = grants_needed(&outline);
        Ok(Self {
            host: host.clone(),
            engine,
            outline,
            component,
            digest,
            bytes,
            name,
            config,
            notes: None,
        })
    }

    /// Sets a reader for the plugin's notes. Without a reader, notes are discarded, as in a server.
    pub fn with_notes(self, reader: NoteReader) -> Self {
        Self {
            notes: Some(reader),
            ..self
        }
    }

    /// Inspects the component and calls its functions that describe it. Checks its settings, unless they are empty.
    ///
    /// # Errors
    /// If the operating system can't start a thread.
    pub fn inspect(&self) -> Result<Inspection, PluginTestError> {
        let outline = &self.outline;
        let versions = named_versions(outline);
        let is_resolver = self.is_resolver();
        let mut inspection = Inspection {
            bytes: self.bytes,
            sha256: self.digest.clone(),
            imports: outline.imported().map(str::to_owned).collect(),
            exports: outline.exports.clone(),
            grants: self.config.grants.clone(),
            interface_version: (!versions.is_empty()).then(|| versions.join(", ")),
            generator: None,
            is_resolver,
            settings_schema: None,
            refusal: None,
        };
        match on_calling_thread(|| self.describe_into(&mut inspection))? {
            Ok(()) => {}
            Err(PluginTestError::Refused(refused)) => {
                // Without the plugin's name: a plugin under test has no configured name.
                inspection.refusal = Some(refused.refusal.to_string());
            }
            Err(failure) => return Err(failure),
        }
        Ok(inspection)
    }

    fn describe_into(&self, inspection: &mut Inspection) -> Result<(), PluginTestError> {
        let (plugin, generator) = self.unchecked()?;
        inspection.generator = generator;
        if !self.config.settings.is_empty() {
            let checked = plugin.check_settings();
            checked.map_err(|refusal| self.refused(refusal))?;
        }
        inspection.settings_schema = plugin.settings_schema.map(|schema| schema.declared);
        Ok(())
    }

    /// Measures `calls` calls of a generator with these parameters, or with the first of the `examples` in the parameters schema.
    pub fn measure_generator(
        &self,
        given: Option<Map<String, Value>>,
        calls: u32,
        now_seconds: u64,
        random: Arc<dyn RandomSource>,
    ) -> Result<Speed, PluginTestError> {
        on_calling_thread(|| {
            let guest = self.guest(None, random, &Arc::default())?;
            let given = match given {
                Some(given) => guest.requested(&given.into())?,
                None => guest.description.parameters_schema.example(),
            };
            let parameters = guest.canonical(&given)?;
            let inputs = guest
                .input_parameters
                .test_inputs(&parameters, &TestInputs::default())?;
            self.host.begin("measuring");
            let instantiation = quantiles(calls, || {
                let outcome = guest.plugin.instantiate();
                outcome.map_err(|fault| guest.plugin.faulted(fault).into())
            })?;
            let overhead = quantiles(calls, || {
                let described = guest.exports.describe(&guest.plugin);
                described.map(drop).map_err(|refusal| self.refused(refusal))
            })?;
            let call = quantiles(calls, || {
                let issuer = guest.test_issuer(&self.host.issuers, &parameters, now_seconds);
                let value = guest.generate(parameters.to_json(), now_seconds, issuer, &inputs);
                value.map(drop).map_err(PluginTestError::from)
            })?;
            Ok(Speed {
                calls,
                instantiation,
                overhead,
                call,
            })
        })?
    }

    /// Measures `calls` calls of a resolver with this document.
    pub fn measure_resolver(
        &self,
        document: &Value,
        calls: u32,
        random: Arc<dyn RandomSource>,
    ) -> Result<Speed, PluginTestError> {
        on_calling_thread(|| {
            let resolver = self.resolver(None, random, &Arc::default())?;
            self.host.begin("measuring");
            let finding = |document: &str| {
                quantiles(calls, || {
                    let found = resolver.find_references(document);
                    found.map(drop).map_err(PluginTestError::from)
                })
            };
            Ok(Speed {
                calls,
                instantiation: quantiles(calls, || {
                    let outcome = resolver.instantiate();
                    outcome.map_err(PluginTestError::from)
                })?,
                overhead: finding(EMPTY_DOCUMENT)?,
                call: finding(&document.to_string())?,
            })
        })?
    }

    /// Returns whether the component is a resolver.
    pub fn is_resolver(&self) -> bool {
        exports_any(&self.outline, &RESOLVERS) && !exports_any(&self.outline, &[DESCRIPTOR])
    }

    /// Returns whether the component is a generator.
    pub fn is_generator(&self) -> bool {
        exports_any(&self.outline, &[DESCRIPTOR]) && !exports_any(&self.outline, &RESOLVERS)
    }

    /// Links the component without a check of its settings. A generator is also described.
    fn unchecked(&self) -> Result<(Plugin, Option<InspectedGenerator>), PluginTestError> {
        if self.is_resolver() {
            let plugin = self.linked(&RESOLVERS, None, Arc::new(SystemRandom), &Arc::default());
            let resolver = plugin.and_then(ResolverGuest::new);
            let resolver = resolver.map_err(|refusal| self.refused(refusal))?;
            return Ok((resolver.plugin, None));
        }
        let (plugin, generator) = inspected(self.unchecked_guest()?);
        Ok((plugin, Some(generator)))
    }

    /// Describes the generator, without a check of its settings.
    fn described(&self) -> Result<Described, PluginTestError> {
        let guest = on_calling_thread(|| self.unchecked_guest())??;
        let (plugin, generator) = inspected(guest);
        Ok(Described {
            generator,
            refused_settings: plugin.check_settings().err(),
            settings_schema: plugin.settings_schema.map(|schema| schema.declared),
            grants: self.config.grants.clone(),
            interface_version: named_versions(&self.outline).join(", "),
        })
    }

    fn unchecked_guest(&self) -> Result<GeneratorGuest, PluginTestError> {
        let plugin = self.linked(&[DESCRIPTOR], None, Arc::new(SystemRandom), &Arc::default());
        let guest = plugin.and_then(|plugin| GeneratorGuest::of(plugin, None));
        guest.map_err(|refusal| self.refused(refusal))
    }

    /// Links the generator and checks its settings. `settings` replace the plugin's settings, if given. `usage` records its
    /// calls.
    fn guest(
        &self,
        settings: Option<&Map<String, Value>>,
        random: Arc<dyn RandomSource>,
        usage: &Arc<Usage>,
    ) -> Result<GeneratorGuest, PluginTestError> {
        let plugin = self.linked(&[DESCRIPTOR], settings, random, usage);
        let guest = plugin.and_then(|plugin| GeneratorGuest::of(plugin, None));
        let checked = guest.and_then(|guest| guest.plugin.check_settings().map(|()| guest));
        checked.map_err(|refusal| self.refused(refusal))
    }

    fn resolver(
        &self,
        settings: Option<&Map<String, Value>>,
        random: Arc<dyn RandomSource>,
        usage: &Arc<Usage>,
    ) -> Result<ResolverGuest, PluginTestError> {
        let plugin = self.linked(&RESOLVERS, settings, random, usage);
        let resolver = plugin.and_then(ResolverGuest::new);
        let checked = resolver.and_then(|guest| guest.plugin.check_settings().map(|()| guest));
        checked.map_err(|refusal| self.refused(refusal))
    }

    fn linked(
        &self,
        interfaces: &[&'static str],
        settings: Option<&Map<String, Value>>,
        random: Arc<dyn RandomSource>,
        usage: &Arc<Usage>,
    ) -> Result<Plugin, PluginRefusedError> {
        let mut config = self.config.clone();
        if let Some(settings) = settings {
            config.settings.clone_from(settings);
        }
        let role = role(&self.name, &config);
        let checked = CheckedComponent::check(&self.outline, role, interfaces)?;
        let digest = self.digest.clone();
        let mut plugin = link(&self.engine, &self.component, digest, checked, random)?;
        plugin.notes.clone_from(&self.notes);
        plugin.usage = Arc::clone(usage);
        Ok(plugin)
    }

    fn refused(&self, refusal: PluginRefusedError) -> PluginTestError {
        let role = role(&self.name, &self.config);
        PluginTestError::Refused(Box::new(role.refused(refusal)))
    }
}

/// A description of a component: its interfaces, the grants it requires, and its own description.
#[derive(Debug, Serialize)]
pub struct Inspection {
    /// Its size, in bytes.
    pub bytes: u64,
    /// Its SHA-256, in lower-case hexadecimal.
    pub sha256: String,
    /// The imported interfaces.
    pub imports: Vec<String>,
    /// The exported interfaces.
    pub exports: Vec<String>,
    /// The grants that its configuration needs.
    pub grants: Vec<Grant>,
    /// The version of the interfaces that it was built for, if it is a plugin; all versions if it mixes several.
    pub interface_version: Option<String>,
    /// Its own description, if it is a generator that a server would load.
    pub generator: Option<InspectedGenerator>,
    /// Whether it is a resolver.
    pub is_resolver: bool,
    /// The JSON Schema of its settings, if it declares one.
    pub settings_schema: Option<Value>,
    /// The reason why a server would refuse it, if any.
    pub refusal: Option<String>,
}

/// The durations of sequential calls on one thread, each in a fresh instance.
#[derive(Clone, Copy, Debug)]
pub struct Speed {
    /// The number of measured calls.
    pub calls: u32,
    /// Creating and dropping an instance.
    pub instantiation: Quantiles,
    /// The overhead of a call: creating an instance, calling a trivial function (`describe`, or `find-references` with an empty
    /// document), and dropping the instance. This is the cost of the sandbox and the guest's language.
    pub overhead: Quantiles,
    /// Generating a value or finding references: the same with `generate` or `find-references`, including the host's checks of
    /// the result.
    pub call: Quantiles,
}

/// Quantiles of durations.
#[derive(Clone, Copy, Debug)]
pub struct Quantiles {
    /// The median.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
}

/// The error of an operation on a [`PluginUnderTest`].
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum PluginTestError {
    #[error(transparent)]
    Failed(#[from] PluginCallError),
    /// A call of the plugin failed, and the reader of notes got the plugin's own message.
    #[error("the plugin {plugin} {fault}; the note has its message")]
    Noted {
        plugin: String,
        fault: PluginFaultError,
    },
    #[error("the inputs contain {0}, but no parameter names it; correct the name or remove it")]
    InputNotNamed(String),
    /// The call requested more than this number of random bytes, which are all that the caller specified.
    #[error(
        "the plugin requested more random bytes than the {0} in random (--random); add bytes, or use seed:TEXT for any number of them"
    )]
    RandomExhausted(usize),
    #[error("the component does not export recoverer, so it can't recover parameters")]
    NoRecoverer,
    #[error(transparent)]
    Refused(Box<PluginLoadError>),
    #[error("could not start the thread for plugin calls")]
    Threads(#[from] io::Error),
}

/// Compiles a component, or reads it from the cache.
fn compiled(
    engine: &Engine,
    digest: &str,
    bytes: &[u8],
    host: &TestHost,
) -> Result<Component, PluginRefusedError> {
    let directory = host.cache_directory.as_deref();
    match directory.map(|directory| Cache::of_user(directory, engine)) {
        Some(Ok(cache)) => return cache.component(&host.compiler, engine, digest, bytes),
        Some(Err(cause)) => {
            let source = cause.source().map(ToString::to_string);
            tracing::warn!(%cause, source, "compiled components are not cached");
        }
        None => {}
    }
    cache::compile(&host.compiler, engine, bytes).map(|(_, component)| component)
}

fn inspected(guest: GeneratorGuest) -> (Plugin, InspectedGenerator) {
    let description = guest.description;
    let schema = |text: &str| keywright_json::read(text).unwrap_or_default();
    let generator = InspectedGenerator {
        credential_type: guest.plugin.identity.name.clone(),
        plugin_version: description.plugin_version,
        entropy_bits_min: description.entropy_bits_min,
        issuer_parameter: description.issuer_parameter,
        input_parameters: guest.input_parameters.names,
        parameters_schema: schema(&description.declared.parameters_schema),
        value_schema: schema(&description.declared.value_schema),
        summary: description.declared.summary,
    };
    (guest.plugin, generator)
}

fn role<'a>(name: &'a str, config: &'a PluginConfig) -> Role<'a> {
    Role {
        name,
        config,
        is_generator: true,
    }
}

/// Runs work that calls guests on a thread with a sufficient stack.
fn on_calling_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .name("plugin-author".to_owned())
            .stack_size(CALLING_THREAD_STACK_BYTES)
            .spawn_scoped(scope, work)?;
        Ok(worker
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn quantiles(
    calls: u32,
    mut call: impl FnMut() -> Result<(), PluginTestError>,
) -> Result<Quantiles, PluginTestError> {
    for _ in 0..CALLS_BEFORE {
        call()?;
    }
    let mut durations = Vec::new();
    for _ in 0..calls {
        let begun = Instant::now();
        call()?;
        durations.push(begun.elapsed());
    }
    durations.sort();
    Ok(Quantiles {
        p50: quantile(&durations, 50),
        p99: quantile(&durations, 99),
    })
}

/// Returns a percentile of sorted durations.
fn quantile(durations: &[Duration], of_hundred: usize) -> Duration {
    let rank = (durations.len() * of_hundred).div_ceil(100);
    durations
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_measured_durations() {
        let durations: Vec<_> = (1..=200).map(Duration::from_millis).collect();
        for (of_hundred, expected_ms) in [(50, 100), (99, 198), (100, 200)] {
            let expected = Duration::from_millis(expected_ms);
            assert_eq!(quantile(&durations, of_hundred), expected);
        }
        assert_eq!(quantile(&durations[..1], 50), Duration::from_millis(1));
    }
}
