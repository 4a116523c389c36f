//! A generator's guest: calls of its functions, and the host's checks of their results.

use std::sync::Arc;

use chrono::DateTime;
use keywright_core::{
    Secret,
    credential::{CredentialType, Lifetime, Parameters, RequestedParameters},
    ports::{CertificateIssuer, Input, PluginCallError, PluginFaultError, Recovered, Violation},
    text::for_caller,
};
use keywright_json::JsonError;
use serde_json::Value;

use super::{
    exports::{
        Description, EXPIRES, GenerateFunction, GeneratorExports, checked_lifetime, describe,
    },
    inputs::{Derivation, InputParameters, PassedInput},
};
use crate::{
    call::{GENERATE, Plugin},
    host::{
        PassedIssuer, TestIssuers,
        exports::keywright::generator::{expiry, generator, issued_generator, recoverer},
        keywright::generator::types::{self, Failure},
    },
    load_error::PluginRefusedError,
    schema::{SensitiveJson, SettingsSchema},
};

/// The names of the guest's functions in logs and metrics.
pub(super) const NORMALIZE: &str = "normalize";
pub(super) const ACCEPT: &str = "accept";
pub(super) const RECOVER: &str = "recover";

pub(crate) struct GeneratorGuest {
    pub(crate) plugin: Plugin,
    pub(crate) exports: GeneratorExports,
    pub(crate) description: Description,
    /// The parameters that name inputs; none unless it derives values from them.
    pub(crate) input_parameters: InputParameters,
}

/// The result of a guest's normalizer.
pub(super) struct Normalized {
    pub(super) parameters: Parameters,
    /// Whether the guest drew no random numbers, so that the result depends only on its arguments.
    pub(super) is_repeatable: bool,
}

impl GeneratorGuest {
    /// Calls a linked component's `describe`. Its type must match the configured one, if any. The caller must check the settings.
    pub(crate) fn of(
        mut plugin: Plugin,
        configured: Option<&CredentialType>,
    ) -> Result<Self, PluginRefusedError> {
        if configured.is_some_and(CredentialType::is_set_only) {
            return Err(PluginRefusedError::CredentialTypeSetOnly);
        }
        let (exports, described) = describe(&plugin)?;
        let credential_type = match configured {
            Some(configured) => configured.clone(),
            None => CredentialType::parse(&described.credential_type)
                .ok()
                .filter(|parsed| parsed.as_str() == described.credential_type)
                .ok_or(PluginRefusedError::CredentialTypeMalformed)?,
        };
        let description = Description::parse(described, &credential_type)?;
        if credential_type.is_set_only() {
            return Err(PluginRefusedError::CredentialTypeSetOnly);
        }
        let takes_issuer = matches!(exports.generate, GenerateFunction::IssuedGenerator(_));
        if description.issuer_parameter.is_some() && !takes_issuer {
            return Err(PluginRefusedError::IssuerNotAccepted);
        }
        let input_parameters = exports.input_parameters(&plugin)?;
        plugin.settings_schema = SettingsSchema::of(&plugin, exports.settings_descriptor.as_ref())?;
        let identity = &mut plugin.identity;
        identity.version.clone_from(&description.plugin_version);
        credential_type.as_str().clone_into(&mut identity.name);
        Ok(Self {
            plugin,
            exports,
            description,
            input_parameters,
        })
    }

    /// Reads the parameters of a request, and converts scalars to the types that the schema declares. Does not convert the names of
    /// inputs: a number is more likely a mistake than a name.
    pub(crate) fn requested(
        &self,
        parameters: &RequestedParameters,
    ) -> Result<Parameters, PluginCallError> {
        // Parsed parameters take much more memory than their text, so parameters that are too large are not parsed.
        let is_counted = |byte: &u8| !byte.is_ascii_whitespace();
        let bytes = |text: &str| text.bytes().filter(is_counted).count();
        let sizes = parameters
            .iter()
            .map(|(name, json)| bytes(name) + bytes(json));
        self.check_input(NORMALIZE, sizes.sum())?;
        let inputs = &self.input_parameters.names;
        let schema = &self.description.parameters_schema;
        let requested = schema.requested(parameters, inputs);
        requested.map_err(PluginCallError::ParametersRefused)
    }

    pub(super) fn read_only(&self, parameters: Parameters) -> Parameters {
        let mut fields = parameters.into_fields();
        let names = self.description.parameters_schema.read_only.iter();
        Parameters::new(names.filter_map(|name| fields.remove_entry(name)).collect())
    }

    pub(crate) fn canonical(&self, given: &Parameters) -> Result<Parameters, PluginCallError> {
        Ok(self.normalize(given, &given.to_json())?.parameters)
    }

    /// Returns the canonical form of the JSON of parameters according to the schema, without calling the guest.
    fn complete(&self, json: &str) -> Result<Parameters, PluginCallError> {
        // Parameters that are too large for `generate` need no further check.
        self.check_input(NORMALIZE, json.len())?;
        let given = keywright_json::read(json)
            .map_err(|cause| self.plugin.malformed(NORMALIZE, &not_json(cause)))?;
        let completed = self.description.parameters_schema.complete(given);
        completed.map_err(PluginCallError::ParametersRefused)
    }

    /// Calls the guest's normalizer with the JSON of parameters, or completes them according to the schema if the guest exports
    /// none. A normalizer must not add read-only parameters to the given ones, because only `recover` may set them.
    pub(super) fn normalize(
        &self,
        read_only: &Parameters,
        json: &str,
    ) -> Result<Normalized, PluginCallError> {
        let Some(normalizer) = &self.exports.normalizer else {
            return Ok(Normalized {
                parameters: self.complete(json)?,
                is_repeatable: true,
            });
        };
        let mut is_repeatable = false;
        let outcome = self
            .plugin
            .call(NORMALIZE, json.len(), None, |store, instance| {
                let returned = normalizer.call(store, instance, (json, &self.plugin.settings));
                is_repeatable = !store.data().has_drawn;
                returned
            });
        let canonical = self.returned_text(NORMALIZE, outcome)?;
        let parameters = self.parameters(NORMALIZE, &canonical)?;
        let schema = &self.description.parameters_schema;
        if schema.adds_no_read_only(read_only, &parameters) {
            Ok(Normalized {
                parameters,
                is_repeatable,
            })
        } else {
            let reason = "has a readOnly parameter, which only recover may set";
            Err(self.plugin.malformed(NORMALIZE, reason))
        }
    }

    /// Returns an issuer of the test CA for a call with these canonical parameters, if they name an issuer.
    pub(crate) fn test_issuer(
        &self,
        issuers: &TestIssuers,
        parameters: &Parameters,
        now_seconds: u64,
    ) -> Option<Arc<dyn CertificateIssuer>> {
        parameters.text(self.description.issuer_parameter.as_deref()?)?;
        let now = DateTime::from_timestamp(i64::try_from(now_seconds).ok()?, 0)?;
        issuers(parameters, now)
    }

    /// Generates a value with the guest and validates it against the schema.
    pub(crate) fn generate(
        &self,
        parameters: String,
        now_seconds: u64,
        issuer: Option<Arc<dyn CertificateIssuer>>,
        inputs: &[Input],
    ) -> Result<Secret, PluginCallError> {
        let settings = self.plugin.settings.clone();
        let handle = issuer.as_ref().map(|_| PassedIssuer::handle());
        let input_bytes = generate_bytes(&parameters, inputs);
        let outcome =
            self.plugin
                .call(
                    GENERATE,
                    input_bytes,
                    issuer,
                    |store, instance| match &self.exports.generate {
                        GenerateFunction::Generator(function) => {
                            let generation = generator::Generation {
                                parameters,
                                settings,
                                now_seconds,
                            };
                            function.call(store, instance, (&generation,))
                        }
                        GenerateFunction::IssuedGenerator(function) => {
                            let generation = issued_generator::Generation {
                                parameters,
                                settings,
                                now_seconds,
                            };
                            function.call(store, instance, (&generation, handle))
                        }
                        GenerateFunction::DerivedGenerator { generate, .. } => {
                            let inputs: Vec<_> = inputs.iter().map(PassedInput::of).collect();
                            let derivation = Derivation {
                                parameters: &parameters,
                                settings: &settings,
                                now_seconds,
                                inputs: &inputs,
                            };
                            generate.call(store, instance, (&derivation,))
                        }
                    },
                );
        let value = self.returned_text(GENERATE, outcome)?;
        self.checked_value(&value)
    }

    /// Validates a value that a caller sets against the schema, without calling the guest.
    fn accept_by_schema(&self, value: &Secret) -> Result<Secret, PluginCallError> {
        self.check_input(ACCEPT, value.expose().len())?;
        let json = self.known_fields(value)?;
        match self.description.value_schema.broken_rule(json.value()) {
            Some(broken) => Err(PluginCallError::ValueRefused(broken.violation)),
            None => Ok(compact(value)),
        }
    }

    /// Parses a value that a caller sets, and rejects unknown fields.
    fn known_fields(&self, value: &Secret) -> Result<SensitiveJson, PluginCallError> {
        let json = SensitiveJson::parse(value)
            .map_err(|_| PluginCallError::ValueRefused(Violation::new(None, "must be JSON")))?;
        match self.description.value_schema.unknown_field(json.value()) {
            Some(field) => Err(PluginCallError::ValueFieldUnknown(for_caller(field))),
            None => Ok(json),
        }
    }

    /// Completes a value that a caller sets with the guest's acceptor, and validates it against the schema. If the caller's own
    /// part of the value violates the schema, the value is refused; if the guest's part does, the guest is at fault. Without an
    /// acceptor, only the schema applies.
    pub(crate) fn accept(&self, value: &Secret) -> Result<Secret, PluginCallError> {
        let Some(acceptor) = &self.exports.acceptor else {
            return self.accept_by_schema(value);
        };
        let given = self.known_fields(value)?;
        let outcome = self
            .plugin
            .call(ACCEPT, value.expose().len(), None, |store, instance| {
                acceptor.call(store, instance, (value.expose(), &self.plugin.settings))
            });
        let value = self.returned_text(ACCEPT, outcome)?;
        let accepted = self.returned_json(ACCEPT, &value)?;
        match self.description.value_schema.broken_rule(accepted.value()) {
            None => Ok(compact(&value)),
            Some(broken) if broken.is_unchanged(given.value(), accepted.value()) => {
                Err(PluginCallError::ValueRefused(broken.violation))
            }
            Some(broken) => Err(self.plugin.malformed(ACCEPT, &broken.description)),
        }
    }

    /// Calls the guest's recoverer, without the secret fields of `value`.
    pub(crate) fn recover(
        &self,
        parameters: Option<String>,
        value: &Secret,
    ) -> Result<Recovered, PluginCallError> {
        let value = self.without_secrets(RECOVER, value)?;
        let Some(recoverer) = &self.exports.recoverer else {
            return Err(self.plugin.malformed(RECOVER, NOT_EXPORTED));
        };
        let stored = recoverer::Stored { parameters, value };
        let parameters_bytes = stored.parameters.as_ref().map_or(0, String::len);
        let input_bytes = parameters_bytes + stored.value.len();
        let outcome = self
            .plugin
            .call(RECOVER, input_bytes, None, |store, instance| {
                recoverer.call(store, instance, (&stored, &self.plugin.settings))
            });
        let found = self.returned(RECOVER, outcome)?;
        self.check_output(RECOVER, &found.parameters)?;
        Ok(Recovered {
            parameters: self.parameters(RECOVER, &Secret::new(found.parameters))?,
            is_complete: found.complete,
        })
    }

    /// Returns the lifetime of a new value, without calling the guest if it exports no `expiry`.
    pub(crate) fn lifetime(
        &self,
        parameters: Option<String>,
        value: &Secret,
        now_seconds: u64,
    ) -> Result<Lifetime, PluginCallError> {
        let Some(expiry) = &self.exports.expiry else {
            return Ok(Lifetime::default());
        };
        let value = expiry::NewValue {
            parameters,
            value: self.without_secrets(EXPIRES, value)?,
            settings: self.plugin.settings.clone(),
            now_seconds,
        };
        let input_bytes = value.parameters.as_ref().map_or(0, String::len) + value.value.len();
        let outcome = self
            .plugin
            .call(EXPIRES, input_bytes, None, |store, instance| {
                expiry.call(store, instance, (&value,))
            });
        checked_lifetime(self.returned(EXPIRES, outcome)?, now_seconds)
            .map_err(|rule| self.plugin.malformed(EXPIRES, rule))
    }

    /// Returns the JSON text of a value without its secret fields.
    fn without_secrets(
        &self,
        function: &'static str,
        value: &Secret,
    ) -> Result<String, PluginCallError> {
        let mut json = SensitiveJson::parse(value).map_err(|_| {
            let reason = "was stored earlier and is not JSON";
            self.plugin.malformed(function, reason)
        })?;
        let secrecy = &self.description.value_schema.secrecy;
        secrecy.withhold_from(json.value_mut());
        Ok(json.value().to_string())
    }

    /// Returns the guest's output.
    fn returned<T>(
        &self,
        function: &'static str,
        outcome: Result<Result<T, Failure>, PluginFaultError>,
    ) -> Result<T, PluginCallError> {
        outcome
            .map_err(|fault| self.plugin.faulted(fault))?
            .map_err(|failure| self.reported(function, failure))
    }

    /// Returns the guest's output after checking its size.
    fn returned_text(
        &self,
        function: &'static str,
        outcome: Result<Result<String, Failure>, PluginFaultError>,
    ) -> Result<Secret, PluginCallError> {
        let text = Secret::new(self.returned(function, outcome)?);
        self.check_output(function, text.expose())?;
        Ok(text)
    }

    /// Checks the size of the guest's input.
    pub(super) fn check_input(
        &self,
        function: &'static str,
        bytes: usize,
    ) -> Result<(), PluginCallError> {
        self.plugin
            .check_input(function, bytes)
            .map_err(|fault| self.plugin.faulted(fault))
    }

    fn check_output(&self, function: &'static str, text: &str) -> Result<(), PluginCallError> {
        self.plugin
            .check_output(function, text.len())
            .map_err(|fault| self.plugin.faulted(fault))
    }

    fn reported(&self, function: &'static str, failure: Failure) -> PluginCallError {
        match failure {
            Failure::InvalidParameters(violation) => {
                PluginCallError::ParametersRefused(reported_violation(&violation))
            }
            Failure::InvalidValue(violation) => {
                PluginCallError::ValueRefused(reported_violation(&violation))
            }
            Failure::Misconfigured(text) => self.plugin.misconfigured(function, &text),
            Failure::Other(text) => self.plugin.reported(function, &text),
        }
    }

    fn parameters(
        &self,
        function: &'static str,
        text: &Secret,
    ) -> Result<Parameters, PluginCallError> {
        match keywright_json::read(text.expose()) {
            Ok(Value::Object(fields)) => Ok(Parameters::new(fields)),
            Ok(_) => Err(self.plugin.malformed(function, "is not a JSON object")),
            Err(cause) => Err(self.plugin.malformed(function, &not_json(cause))),
        }
    }

    /// Validates a generated value and returns it as compact JSON.
    fn checked_value(&self, text: &Secret) -> Result<Secret, PluginCallError> {
        let json = self.returned_json(GENERATE, text)?;
        match self.description.value_schema.broken_rule(json.value()) {
            Some(broken) => Err(self.plugin.malformed(GENERATE, &broken.description)),
            None => Ok(compact(text)),
        }
    }

    fn returned_json(
        &self,
        function: &'static str,
        text: &Secret,
    ) -> Result<SensitiveJson, PluginCallError> {
        SensitiveJson::parse(text)
            .map_err(|cause| self.plugin.malformed(function, &not_json(cause)))
    }
}

/// Returns the size of the input of `generate` as the guest gets it, in bytes.
pub(super) fn generate_bytes(parameters: &str, inputs: &[Input]) -> usize {
    let sizes = inputs.iter().map(|input| {
        let texts = [
            input.pointer.as_str(),
            input.name.as_str(),
            input.credential_type.as_str(),
            input.value.expose(),
        ];
        VERSION_ID_BYTES + texts.iter().map(|text| text.len()).sum::<usize>()
    });
    parameters.len() + sizes.sum::<usize>()
}

/// The size of a version's id as text, in bytes.
const VERSION_ID_BYTES: usize = 36;

/// Returns the compact form of a valid JSON text, with its numbers unchanged.
fn compact(text: &Secret) -> Secret {
    Secret::new(keywright_json::compact(text.expose()))
}

/// The reason if the guest lacks the function that should have been called.
const NOT_EXPORTED: &str = "is missing, because the function is not exported";

fn not_json(cause: JsonError) -> String {
    match cause {
        // The log contains no output of guests.
        JsonError::DuplicateKey(_) => "has an object with a duplicate key".to_owned(),
        cause => format!("is not valid: {cause}"),
    }
}

fn reported_violation(reported: &types::Violation) -> Violation {
    Violation::new(reported.member.as_deref(), &reported.rule)
}
