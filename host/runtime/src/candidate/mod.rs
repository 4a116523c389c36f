//! Running a single component outside a server, for its author or reviewer, on the same engine and with the same limits and
//! checks as in a server.

mod inspection;
mod speed;
mod trial;
mod vectors;

use std::{
    io,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use keywright_core::{credential::Parameters, ports::PluginFailure};
use serde_json::{Map, Value};
use wasmtime::{Engine, component::Component};

pub use inspection::{InspectedGenerator, Inspection};
pub use speed::{Quantiles, Speed};
pub use trial::{Check, LimitUsed, Trial};
pub use vectors::{Vector, VectorsMalformed};

use crate::{
    cache,
    component_file::{ComponentSource, checked_digest},
    config::{Limits, PluginConfig},
    engine::CALLING_THREAD_STACK_BYTES,
    generator::{DESCRIPTOR, GeneratorGuest},
    host::{notes::NoteReader, random::RandomSource},
    imports,
    link::{Fitting, link},
    load::engine_for,
    outline::Outline,
    refused::{LoadRefused, PluginRefused, Refusal},
    role::Role,
};

/// A plugin under test, outside a server.
///
/// It is granted every import that a server can grant.
pub struct Candidate {
    engine: Engine,
    outline: Outline,
    component: Component,
    digest: String,
    bytes: u64,
    name: String,
    config: PluginConfig,
    notes: Option<NoteReader>,
}

impl Candidate {
    /// Reads and compiles a component. `limits` apply to each call.
    ///
    /// # Errors
    /// If the component can't be read, or this engine can't run it.
    pub fn open(
        component: impl Into<ComponentSource>,
        settings: Map<String, Value>,
        limits: Limits,
    ) -> Result<Self, LoadRefused> {
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
        role.check_limits()?;
        let refused = |refusal| LoadRefused::Plugin(role.refused(refusal));
        let engine = engine_for([role].into_iter(), 1)?;
        let bytes = config.component.read().map_err(refused)?;
        let digest = checked_digest(&bytes, None).map_err(refused)?;
        let outline = Outline::read(&bytes).map_err(refused)?;
        let (_, component) = cache::compile(&engine, &bytes).map_err(refused)?;
        let bytes = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        config.grants = imports::grants_needed(&outline);
        Ok(Self {
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

    /// Returns the SHA-256 of the component, in lower-case hexadecimal.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Sets a reader for the plugin's notes. Without a reader, notes are discarded, as in a server.
    #[must_use]
    pub fn with_notes(self, reader: NoteReader) -> Self {
        Self {
            notes: Some(reader),
            ..self
        }
    }

    /// Generates one value with these parameters, as a server does for a request at this time.
    ///
    /// # Errors
    /// If generation fails.
    pub fn run(
        &self,
        given: Map<String, Value>,
        now_seconds: u64,
        random: Arc<dyn RandomSource>,
    ) -> Result<Run, CandidateFailure> {
        on_calling_thread(|| {
            let guest = self.guest(random)?;
            let parameters = issuerless(&guest, &guest.requested(&given.into())?)?;
            let begun = Instant::now();
            let value = guest.generate(parameters.to_json(), now_seconds, None)?;
            let took = begun.elapsed();
            // The value was validated against its schema, so it is JSON.
            let value: Value = keywright_json::read(value.expose()).unwrap_or_default();
            let mut redacted = value.clone();
            guest.description.value_schema.redact(&mut redacted);
            Ok(Run {
                parameters: keywright_json::read(&parameters.to_json()).unwrap_or_default(),
                value,
                redacted,
                took,
            })
        })?
    }

    fn guest(&self, random: Arc<dyn RandomSource>) -> Result<GeneratorGuest, CandidateFailure> {
        let role = role(&self.name, &self.config);
        let refused = |refusal| self.refused(refusal);
        let fitting = Fitting::check(&self.outline, role, DESCRIPTOR).map_err(refused)?;
        let digest = self.digest.clone();
        let linked = link(&self.engine, &self.component, digest, fitting, random);
        let mut plugin = linked.map_err(refused)?;
        plugin.notes.clone_from(&self.notes);
        GeneratorGuest::of(plugin, None).map_err(refused)
    }

    fn refused(&self, refusal: Refusal) -> CandidateFailure {
        let role = role(&self.name, &self.config);
        CandidateFailure::Refused(Box::new(role.refused(refusal)))
    }
}

/// A generated value.
pub struct Run {
    /// The canonical parameters.
    pub parameters: Value,
    /// The value.
    pub value: Value,
    /// The value with its secret parts redacted.
    pub redacted: Value,
    /// The duration of the call, including instantiation.
    pub took: Duration,
}

/// The error of an operation on a [`Candidate`].
#[derive(Debug, thiserror::Error)]
pub enum CandidateFailure {
    /// A call of the plugin failed.
    #[error(transparent)]
    Failed(#[from] PluginFailure),
    /// The parameters name an issuer.
    #[error("the parameter {0} names an issuer, which only a server can provide; omit it")]
    IssuerNeeded(String),
    /// A server would refuse the component.
    #[error(transparent)]
    Refused(Box<PluginRefused>),
    /// The operating system did not start a thread.
    #[error("the thread for plugin calls could not be started")]
    Threads(#[from] io::Error),
}

/// Returns the canonical form of parameters, or an error if they name an issuer.
fn issuerless(guest: &GeneratorGuest, given: &Parameters) -> Result<Parameters, CandidateFailure> {
    let parameters = guest.canonical(given)?;
    let issuer = guest.description.issuer_parameter.as_deref();
    match issuer.filter(|name| {
        parameters
            .member(name)
            .is_some_and(|named| !named.is_null())
    }) {
        Some(name) => Err(CandidateFailure::IssuerNeeded(name.to_owned())),
        None => Ok(parameters),
    }
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

/// Returns the refusal's message without a plugin name: a candidate has no configured name.
fn words(refusal: &Refusal) -> String {
    refusal.to_string()
}
