//! Calls of a generator's guest, and the host's checks of their results.

use std::sync::Arc;

use keywright_core::{
    Secret,
    credential::{Parameters, RequestedParameters},
    ports::{CertificateIssuer, PluginFailure, PluginFault, Recovered},
};
use serde_json::Value;

use super::{
    Description,
    exports::{GeneratorExports, Maker},
};
use crate::{
    bindings::{
        exports::keywright::generator::{generator, issued_generator, recoverer},
        keywright::generator::types::Failure,
    },
    call::{GENERATE, Plugin},
    host::signing::IssuerLease,
    json::SensitiveJson,
    text::{for_caller, violation},
};

/// The names of the guest's functions in logs and metrics.
pub(super) const NORMALIZE: &str = "normalize";
pub(super) const ACCEPT: &str = "accept";
pub(super) const RECOVER: &str = "recover";

/// A generator's guest and its description.
pub(crate) struct GeneratorGuest {
    pub(crate) plugin: Plugin,
    pub(crate) exports: GeneratorExports,
    pub(crate) description: Description,
}

impl GeneratorGuest {
    /// Reads the parameters of a request, and converts scalars to the types that the schema declares.
    pub(crate) fn requested(
        &self,
        parameters: &RequestedParameters,
    ) -> Result<Parameters, PluginFailure> {
        let schema = &self.description.parameters_schema;
        schema
            .requested(parameters)
            .map_err(PluginFailure::ParametersRefused)
    }

    /// Returns the canonical form of parameters, from the guest's normalizer or, if it has none, from the host.
    pub(crate) fn canonical(&self, given: &Parameters) -> Result<Parameters, PluginFailure> {
        if self.exports.has_normalizer() {
            self.normalize(given, &given.to_json())
        } else {
            self.complete(given.clone())
        }
    }

    /// Returns the canonical form of parameters according to the schema, without calling the guest.
    pub(super) fn complete(&self, given: Parameters) -> Result<Parameters, PluginFailure> {
        // Parameters that are too large for `generate` need no further check.
        self.check_input(NORMALIZE, &given.to_json())?;
        let schema = &self.description.parameters_schema;
        schema
            .complete(given.into_members())
            .map_err(PluginFailure::ParametersRefused)
    }

    /// Calls the guest's normalizer with parameters and their JSON. It must not add read-only parameters, which only `recover`
    /// may set.
    pub(super) fn normalize(
        &self,
        given: &Parameters,
        json: &str,
    ) -> Result<Parameters, PluginFailure> {
        let Some(normalizer) = &self.exports.normalizer else {
            return Err(self.plugin.malformed(NORMALIZE));
        };
        let outcome = self
            .plugin
            .call(NORMALIZE, json.len(), None, |store, instance| {
                normalizer.call(store, instance, (json, &self.plugin.settings))
            });
        let canonical = self.returned(NORMALIZE, outcome)?;
        let canonical = self.parameters(NORMALIZE, &canonical)?;
        let schema = &self.description.parameters_schema;
        if schema.adds_no_read_only(given, &canonical) {
            Ok(canonical)
        } else {
            Err(self.plugin.malformed(NORMALIZE))
        }
    }

    /// Generates a value with the guest and validates it against the schema.
    pub(crate) fn generate(
        &self,
        parameters: String,
        now_seconds: u64,
        issuer: Option<Arc<dyn CertificateIssuer>>,
    ) -> Result<Secret, PluginFailure> {
        let settings = self.plugin.settings.clone();
        let handle = issuer.as_ref().map(|_| IssuerLease::handle());
        let input_bytes = parameters.len();
        let outcome =
            self.plugin
                .call(
                    GENERATE,
                    input_bytes,
                    issuer,
                    |store, instance| match &self.exports.maker {
                        Maker::Generator(maker) => {
                            let generation = generator::Generation {
                                parameters,
                                settings,
                                now_seconds,
                            };
                            maker.call(store, instance, (&generation,))
                        }
                        Maker::IssuedGenerator(maker) => {
                            let generation = issued_generator::Generation {
                                parameters,
                                settings,
                                now_seconds,
                            };
                            maker.call(store, instance, (&generation, handle))
                        }
                    },
                );
        let value = self.returned(GENERATE, outcome)?;
        self.checked_value(GENERATE, &value)
    }

    /// Validates a value that a caller sets against the schema, without calling the guest.
    pub(super) fn accept_by_schema(&self, value: &Secret) -> Result<Secret, PluginFailure> {
        self.check_input(ACCEPT, value.expose())?;
        let json = self.known_members(value)?;
        let schema = &self.description.value_schema;
        match schema.violation(json.value()) {
            Some(violation) => Err(PluginFailure::ValueRefused(violation)),
            None => Ok(json.to_secret()),
        }
    }

    /// Parses a value that a caller sets, and rejects fields that the schema does not know.
    fn known_members(&self, value: &Secret) -> Result<SensitiveJson, PluginFailure> {
        let json = SensitiveJson::parse(value)
            .map_err(|_| PluginFailure::ValueRefused(violation(None, "must be JSON")))?;
        let schema = &self.description.value_schema;
        match schema.unknown_member(json.value()) {
            Some(member) => Err(PluginFailure::ValueMemberUnknown(for_caller(member))),
            None => Ok(json),
        }
    }

    /// Completes a value that a caller sets with the guest's acceptor, and validates it against the schema.
    pub(super) fn accept(&self, value: &Secret) -> Result<Secret, PluginFailure> {
        self.known_members(value)?;
        let Some(acceptor) = &self.exports.acceptor else {
            return Err(self.plugin.malformed(ACCEPT));
        };
        let outcome = self
            .plugin
            .call(ACCEPT, value.expose().len(), None, |store, instance| {
                acceptor.call(store, instance, (value.expose(), &self.plugin.settings))
            });
        let value = self.returned(ACCEPT, outcome)?;
        self.checked_value(ACCEPT, &value)
    }

    /// Calls the guest's recoverer, without the secret fields of `value`.
    pub(super) fn recover(
        &self,
        parameters: Option<String>,
        value: &Secret,
    ) -> Result<Recovered, PluginFailure> {
        let mut json = SensitiveJson::parse(value).map_err(|_| self.plugin.malformed(RECOVER))?;
        let schema = &self.description.value_schema;
        schema.withhold_secrets(json.value_mut());
        let value = json.value().to_string();
        let Some(recoverer) = &self.exports.recoverer else {
            return Err(self.plugin.malformed(RECOVER));
        };
        let stored = recoverer::Stored { parameters, value };
        let parameters_bytes = stored.parameters.as_ref().map_or(0, String::len);
        let input_bytes = parameters_bytes + stored.value.len();
        let outcome = self
            .plugin
            .call(RECOVER, input_bytes, None, |store, instance| {
                recoverer.call(store, instance, (&stored, &self.plugin.settings))
            });
        let found = match outcome.map_err(|fault| self.plugin.faulted(fault))? {
            Ok(found) => found,
            Err(failure) => return Err(self.reported(RECOVER, failure)),
        };
        self.check_output(RECOVER, &found.parameters)?;
        Ok(Recovered {
            parameters: self.parameters(RECOVER, &Secret::new(found.parameters))?,
            is_complete: found.complete,
        })
    }

    /// Returns the guest's output after checking its size.
    fn returned(
        &self,
        function: &'static str,
        outcome: Result<Result<String, Failure>, PluginFault>,
    ) -> Result<Secret, PluginFailure> {
        match outcome.map_err(|fault| self.plugin.faulted(fault))? {
            Ok(text) => {
                let text = Secret::new(text);
                self.check_output(function, text.expose())?;
                Ok(text)
            }
            Err(failure) => Err(self.reported(function, failure)),
        }
    }

    fn check_input(&self, function: &'static str, text: &str) -> Result<(), PluginFailure> {
        self.plugin
            .check_input(function, text.len())
            .map_err(|fault| self.plugin.faulted(fault))
    }

    fn check_output(&self, function: &'static str, text: &str) -> Result<(), PluginFailure> {
        self.plugin
            .check_output(function, text.len())
            .map_err(|fault| self.plugin.faulted(fault))
    }

    /// Converts a failure that the guest reported.
    fn reported(&self, function: &'static str, failure: Failure) -> PluginFailure {
        match failure {
            Failure::InvalidParameters(violation) => {
                PluginFailure::ParametersRefused(violation.into())
            }
            Failure::InvalidValue(violation) => PluginFailure::ValueRefused(violation.into()),
            Failure::Misconfigured(text) => self.plugin.misconfigured(function, &text),
            Failure::Other(text) => self.plugin.reported(function, &text),
        }
    }

    fn parameters(
        &self,
        function: &'static str,
        text: &Secret,
    ) -> Result<Parameters, PluginFailure> {
        match keywright_json::read(text.expose()) {
            Ok(Value::Object(members)) => Ok(Parameters::new(members)),
            _ => Err(self.plugin.malformed(function)),
        }
    }

    /// Validates a guest's value and returns it as compact JSON.
    fn checked_value(
        &self,
        function: &'static str,
        text: &Secret,
    ) -> Result<Secret, PluginFailure> {
        SensitiveJson::parse(text)
            .ok()
            .filter(|json| self.description.value_schema.is_kept_by(json.value()))
            .map(|json| json.to_secret())
            .ok_or_else(|| self.plugin.malformed(function))
    }
}
