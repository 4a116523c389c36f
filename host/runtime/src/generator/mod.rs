//! Implements the domain's port for generators. Each call is handled by the guest, on one of the lanes, or by the host itself.

mod entropy_test;
mod exports;
mod guest;
mod inputs;

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use keywright_core::{
    Secret,
    credential::{Lifetime, Parameters, PluginIdentity, RequestedParameters},
    permission::Actor,
    ports::{
        CertificateIssuer, Generator, GeneratorDescription, HostWork, Input, PluginCallError,
        PluginState, Recovered,
    },
};

pub(crate) use entropy_test::{entropy_report, unlogged};
pub(crate) use exports::DESCRIPTOR;
use exports::EXPIRES;
pub(crate) use guest::GeneratorGuest;
use guest::{ACCEPT, NORMALIZE, RECOVER, generate_bytes};
pub(crate) use inputs::InputParameters;
pub use inputs::TestInputs;

use crate::{
    breaker::{Attempt, Breaker},
    call::GENERATE,
    lane::{Flow, Lane, Lanes},
};

/// The name of the host's own work in metrics.
const HOST_WORK: &str = "host-work";

/// The JSON of no parameters.
const NO_PARAMETERS: &str = "{}";

#[derive(Clone)]
pub(crate) struct WasmGenerator {
    guest: Arc<GeneratorGuest>,
    lanes: Arc<Lanes>,
    breaker: Arc<Breaker>,
    /// The canonical form of no parameters, once the guest has returned it.
    defaults: Arc<OnceLock<Parameters>>,
    /// The calling actor; `None` for the server itself.
    actor: Option<Actor>,
    is_bulk: bool,
}

impl WasmGenerator {
    pub(crate) fn new(guest: GeneratorGuest, lanes: Arc<Lanes>, breaker: Arc<Breaker>) -> Self {
        Self {
            guest: Arc::new(guest),
            lanes,
            breaker,
            defaults: Arc::default(),
            actor: None,
            is_bulk: false,
        }
    }

    /// Returns the random bits in its values that the entropy test confirmed.
    pub(crate) fn entropy_bits_min(&self) -> Option<u32> {
        self.guest.description.entropy_bits_min
    }

    pub(crate) fn state(&self, actor: &Actor) -> PluginState {
        PluginState {
            entropy_bits_min: self.entropy_bits_min(),
            ..self.breaker.state(&self.guest.plugin, actor)
        }
    }

    /// Prepares a call of the guest, if it exports the function.
    fn attempt_if(
        &self,
        is_exported: bool,
        function: &'static str,
    ) -> Result<Option<Attempt>, PluginCallError> {
        let attempt = is_exported.then(|| self.attempt(function));
        attempt.transpose()
    }

    fn attempt(&self, function: &'static str) -> Result<Attempt, PluginCallError> {
        let (plugin, actor) = (&self.guest.plugin, self.actor.as_ref());
        Attempt::begin(plugin, &self.breaker, actor, function)
    }

    /// Runs work on one of the lanes: a call of the guest, or work of the host if there is no attempt.
    async fn run<T: Send + 'static>(
        &self,
        lane: &Lane,
        function: &'static str,
        attempt: Option<Attempt>,
        work: impl FnOnce(&GeneratorGuest) -> Result<T, PluginCallError> + Send + 'static,
    ) -> Result<T, PluginCallError> {
        let guest = Arc::clone(&self.guest);
        let work = move || match attempt {
            Some(attempt) => attempt.make(&guest.plugin, || work(&guest)),
            None => work(&guest),
        };
        let outcome = if self.is_bulk {
            lane.run_bulk(work).await
        } else {
            let flow = self.actor.clone().map_or(Flow::Server, Flow::Actor);
            lane.run(flow, work).await
        };
        outcome.unwrap_or_else(|not_run| Err(self.guest.plugin.not_run(function, not_run)))
    }
}

#[async_trait]
impl Generator for WasmGenerator {
    fn identity(&self) -> &PluginIdentity {
        &self.guest.plugin.identity
    }

    fn description(&self) -> &GeneratorDescription {
        &self.guest.description.declared
    }

    fn issuer_parameter(&self) -> Option<&str> {
        self.guest.description.issuer_parameter.as_deref()
    }

    fn input_parameters(&self) -> &[String] {
        &self.guest.input_parameters.names
    }

    fn certificate_field(&self) -> Option<&str> {
        let schema = &self.guest.description.value_schema;
        schema.certificate_field.as_deref()
    }

    fn generations_at_once(&self) -> usize {
        self.lanes.generate.threads()
    }

    fn for_actor(&self, actor: &Actor) -> Arc<dyn Generator> {
        Arc::new(Self {
            actor: Some(actor.clone()),
            ..self.clone()
        })
    }

    fn for_bulk_work(&self) -> Arc<dyn Generator> {
        Arc::new(Self {
            is_bulk: true,
            ..self.clone()
        })
    }

    async fn run_for_host(&self, work: HostWork) -> Result<(), PluginCallError> {
        self.run(&self.lanes.short, HOST_WORK, None, move |_| {
            work();
            Ok(())
        })
        .await
    }

    fn read_only_parameters(&self) -> &[String] {
        &self.guest.description.parameters_schema.read_only
    }

    fn known_parameters(&self, parameters: &Parameters) -> Parameters {
        let schema = &self.guest.description.parameters_schema;
        schema.known(parameters.clone())
    }

    fn requested(&self, parameters: &RequestedParameters) -> Result<Parameters, PluginCallError> {
        self.guest.requested(parameters)
    }

    async fn normalize(&self, parameters: Parameters) -> Result<Parameters, PluginCallError> {
        let json = parameters.to_json();
        let has_parameters = json != NO_PARAMETERS;
        if !has_parameters && let Some(defaults) = self.defaults.get() {
            return Ok(defaults.clone());
        }
        self.guest.check_input(NORMALIZE, json.len())?;
        let is_exported = self.guest.exports.normalizer.is_some();
        let attempt = self.attempt_if(is_exported, NORMALIZE)?;
        let read_only = self.guest.read_only(parameters);
        let normalized = self
            .run(&self.lanes.short, NORMALIZE, attempt, move |guest| {
                guest.normalize(&read_only, &json)
            })
            .await?;
        if !has_parameters && normalized.is_repeatable {
            // A concurrent call may have set it to the same parameters.
            let _ = self.defaults.set(normalized.parameters.clone());
        }
        Ok(normalized.parameters)
    }

    fn check_generate(
        &self,
        parameters: &Parameters,
        inputs: &[Input],
    ) -> Result<(), PluginCallError> {
        self.attempt(GENERATE)?;
        let input_bytes = generate_bytes(&parameters.to_json(), inputs);
        self.guest.check_input(GENERATE, input_bytes)
    }

    async fn generate(
        &self,
        parameters: &Parameters,
        now: DateTime<Utc>,
        issuer: Option<Arc<dyn CertificateIssuer>>,
        inputs: Vec<Input>,
    ) -> Result<Secret, PluginCallError> {
        let parameters = parameters.to_json();
        let now_seconds = in_seconds(now);
        let attempt = self.attempt(GENERATE)?;
        let input_bytes = generate_bytes(&parameters, &inputs);
        if let Err(refused) = self.guest.check_input(GENERATE, input_bytes) {
            // Inputs that the guest does not get must not wait for it.
            return attempt.make(&self.guest.plugin, || Err(refused));
        }
        self.run(
            &self.lanes.generate,
            GENERATE,
            Some(attempt),
            move |guest| guest.generate(parameters, now_seconds, issuer, &inputs),
        )
        .await
    }

    async fn accept(&self, value: &Secret) -> Result<Secret, PluginCallError> {
        let given = value.clone();
        let is_exported = self.guest.exports.acceptor.is_some();
        let attempt = self.attempt_if(is_exported, ACCEPT)?;
        self.run(&self.lanes.short, ACCEPT, attempt, move |guest| {
            guest.accept(&given)
        })
        .await
    }

    async fn lifetime(
        &self,
        parameters: Option<&Parameters>,
        value: &Secret,
        now: DateTime<Utc>,
    ) -> Result<Lifetime, PluginCallError> {
        if self.guest.exports.expiry.is_none() {
            return Ok(Lifetime::default());
        }
        let parameters = parameters.map(Parameters::to_json);
        let attempt = Some(self.attempt(EXPIRES)?);
        let (given, now_seconds) = (value.clone(), in_seconds(now));
        self.run(&self.lanes.short, EXPIRES, attempt, move |guest| {
            guest.lifetime(parameters, &given, now_seconds)
        })
        .await
    }

    async fn recover(
        &self,
        parameters: Option<&Parameters>,
        value: &Secret,
    ) -> Result<Option<Recovered>, PluginCallError> {
        if self.guest.exports.recoverer.is_none() {
            return Ok(parameters.map(|stored| Recovered {
                parameters: stored.clone(),
                is_complete: true,
            }));
        }
        let parameters = parameters.map(Parameters::to_json);
        let attempt = Some(self.attempt(RECOVER)?);
        let given = value.clone();
        self.run(&self.lanes.short, RECOVER, attempt, move |guest| {
            guest.recover(parameters, &given).map(Some)
        })
        .await
    }
}

/// Returns a time in the form that guests get.
fn in_seconds(time: DateTime<Utc>) -> u64 {
    u64::try_from(time.timestamp()).unwrap_or_default()
}
