//! A generator behind the domain's port: which call goes to the guest, on which lane, and what the host does itself.

mod description;
mod example;
mod exports;
mod guest;
mod load;

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use keywright_core::{
    Secret,
    credential::{CredentialType, Parameters, PluginIdentity},
    ports::{
        CertificateIssuer, Generator, GeneratorDescription, Generators, PluginFailure, Recovered,
    },
};

pub(crate) use description::Description;
pub(crate) use example::entropy_report;
pub(crate) use exports::{DESCRIPTOR, describe};
pub(crate) use guest::GeneratorGuest;
use guest::{ACCEPT, GENERATE, NORMALIZE, RECOVER};

use crate::{
    json::SensitiveJson,
    lane::{Lane, Lanes},
    measure::measured,
    text::{for_caller, violation},
};

/// The configured generators.
pub(crate) struct GeneratorSet(BTreeMap<CredentialType, Arc<dyn Generator>>);

impl GeneratorSet {
    pub(crate) fn new(generators: BTreeMap<CredentialType, Arc<dyn Generator>>) -> Self {
        Self(generators)
    }
}

impl Generators for GeneratorSet {
    fn generator(&self, credential_type: &CredentialType) -> Option<Arc<dyn Generator>> {
        self.0.get(credential_type).map(Arc::clone)
    }

    fn credential_types(&self) -> Vec<CredentialType> {
        self.0.keys().cloned().collect()
    }
}

/// One generator.
pub(crate) struct WasmGenerator {
    guest: Arc<GeneratorGuest>,
    lanes: Arc<Lanes>,
    waits_for_its_turn: bool,
}

impl WasmGenerator {
    pub(crate) fn new(guest: GeneratorGuest, lanes: Arc<Lanes>) -> Self {
        Self {
            guest: Arc::new(guest),
            lanes,
            waits_for_its_turn: false,
        }
    }

    /// Runs work with the guest on one of the lanes.
    async fn run<T: Send + 'static>(
        &self,
        lane: &Lane,
        function: &'static str,
        work: impl FnOnce(&GeneratorGuest) -> Result<T, PluginFailure> + Send + 'static,
    ) -> Result<T, PluginFailure> {
        self.guest.plugin.check_rested(function)?;
        let guest = Arc::clone(&self.guest);
        let run = move || measured(&guest.plugin.identity.name, function, || work(&guest));
        let outcome = if self.waits_for_its_turn {
            lane.run_in_turn(run).await
        } else {
            lane.run(run).await
        };
        match outcome {
            Ok(outcome) => outcome,
            Err(not_run) => Err(self.guest.plugin.not_run(function, not_run)),
        }
    }
}

#[async_trait]
impl Generator for WasmGenerator {
    fn identity(&self) -> &PluginIdentity {
        &self.guest.plugin.identity
    }

    fn description(&self) -> &GeneratorDescription {
        &self.guest.description.told
    }

    fn issuer_parameter(&self) -> Option<&str> {
        self.guest.description.issuer_parameter.as_deref()
    }

    fn generations_at_once(&self) -> usize {
        self.lanes.generate.threads()
    }

    fn in_turn(&self) -> Arc<dyn Generator> {
        Arc::new(Self {
            guest: Arc::clone(&self.guest),
            lanes: Arc::clone(&self.lanes),
            waits_for_its_turn: true,
        })
    }

    fn read_only_parameters(&self) -> &[String] {
        self.guest.description.parameters_schema.read_only()
    }

    fn known_parameters(&self, parameters: &Parameters) -> Parameters {
        let schema = &self.guest.description.parameters_schema;
        schema.known(parameters.clone())
    }

    async fn normalize(&self, parameters: &Parameters) -> Result<Parameters, PluginFailure> {
        if self.guest.exports.has_normalizer() {
            let given = parameters.clone();
            return self
                .run(&self.lanes.brief, NORMALIZE, move |guest| {
                    guest.normalize(&given)
                })
                .await;
        }
        self.guest.complete(parameters)
    }

    async fn generate(
        &self,
        parameters: &Parameters,
        now: DateTime<Utc>,
        issuer: Option<Arc<dyn CertificateIssuer>>,
    ) -> Result<Secret, PluginFailure> {
        let parameters = parameters.to_json();
        let now_seconds = u64::try_from(now.timestamp()).unwrap_or_default();
        self.run(&self.lanes.generate, GENERATE, move |guest| {
            guest.generate(parameters, now_seconds, issuer)
        })
        .await
    }

    async fn accept(&self, value: &Secret) -> Result<Secret, PluginFailure> {
        let schema = &self.guest.description.value_schema;
        let json = SensitiveJson::parse(value)
            .map_err(|_| PluginFailure::ValueRefused(violation(None, "must be JSON")))?;
        if let Some(member) = schema.unknown_member(json.value()) {
            return Err(PluginFailure::ValueMemberUnknown(for_caller(member)));
        }
        if self.guest.exports.has_acceptor() {
            drop(json);
            let value = value.clone();
            return self
                .run(&self.lanes.brief, ACCEPT, move |guest| guest.accept(&value))
                .await;
        }
        match schema.violation(json.value()) {
            Some(violation) => Err(PluginFailure::ValueRefused(violation)),
            None => Ok(json.to_secret()),
        }
    }

    async fn recover(
        &self,
        parameters: Option<&Parameters>,
        value: &Secret,
    ) -> Result<Option<Recovered>, PluginFailure> {
        if !self.guest.exports.has_recoverer() {
            return Ok(parameters.map(|stored| Recovered {
                parameters: stored.clone(),
                is_complete: true,
            }));
        }
        let parameters = parameters.map(Parameters::to_json);
        let mut json =
            SensitiveJson::parse(value).map_err(|_| self.guest.stored_value_malformed())?;
        self.guest
            .description
            .value_schema
            .withhold_secrets(json.value_mut());
        let open_value = json.value().to_string();
        self.run(&self.lanes.brief, RECOVER, move |guest| {
            guest.recover(parameters, open_value).map(Some)
        })
        .await
    }
}
