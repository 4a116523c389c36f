//! The calls of a generator's guest, and what the host makes of their results.

use std::sync::Arc;

use keywright_core::{
    Secret,
    credential::Parameters,
    ports::{CertificateIssuer, PluginFailure, PluginFault, Recovered},
};
use serde_json::Value;
use wasmtime::component::InstancePre;

use super::Description;
use crate::{
    bindings::{
        exports::keywright::generator::{
            acceptor, descriptor, generator, issued_generator, normalizer, recoverer,
        },
        keywright::generator::types::Failure,
    },
    call::{CallState, Plugin},
    host::signing::IssuerLease,
    imports,
    json::SensitiveJson,
    refused::Refusal,
    text::violation,
};

/// The interface by which a generator describes itself.
pub(crate) const DESCRIPTOR: &str = "keywright:generator/descriptor@0.2.0";
const GENERATOR: &str = "keywright:generator/generator@0.2.0";
const ISSUED_GENERATOR: &str = "keywright:generator/issued-generator@0.2.0";
const NORMALIZER: &str = "keywright:generator/normalizer@0.2.0";
const ACCEPTOR: &str = "keywright:generator/acceptor@0.2.0";
const RECOVERER: &str = "keywright:generator/recoverer@0.2.0";

/// The functions of a generator's guest, as they are told of in logs and measured.
pub(super) const NORMALIZE: &str = "normalize";
pub(super) const GENERATE: &str = "generate";
pub(super) const ACCEPT: &str = "accept";
pub(super) const RECOVER: &str = "recover";

/// Where a generator's functions are in its component.
pub(crate) struct GeneratorExports {
    descriptor: descriptor::GuestIndices,
    maker: Maker,
    normalizer: Option<normalizer::GuestIndices>,
    acceptor: Option<acceptor::GuestIndices>,
    recoverer: Option<recoverer::GuestIndices>,
}

/// The one of two interfaces by which values are made.
enum Maker {
    Generator(generator::GuestIndices),
    IssuedGenerator(issued_generator::GuestIndices),
}

impl GeneratorExports {
    /// Finds the functions.
    ///
    /// # Errors
    /// When there is none that makes values, or two.
    pub(crate) fn find(component: &InstancePre<CallState>) -> Result<Self, Refusal> {
        let has = |interface| imports::exports(component.component(), interface);
        let maker = match (has(GENERATOR), has(ISSUED_GENERATOR)) {
            (true, true) => return Err(Refusal::MakesTwice),
            (false, false) => return Err(Refusal::ExportMissing(GENERATOR)),
            (true, false) => Maker::Generator(
                generator::GuestIndices::new(component).map_err(differs(GENERATOR))?,
            ),
            (false, true) => Maker::IssuedGenerator(
                issued_generator::GuestIndices::new(component)
                    .map_err(differs(ISSUED_GENERATOR))?,
            ),
        };
        Ok(Self {
            descriptor: descriptor::GuestIndices::new(component).map_err(differs(DESCRIPTOR))?,
            maker,
            normalizer: has(NORMALIZER)
                .then(|| normalizer::GuestIndices::new(component))
                .transpose()
                .map_err(differs(NORMALIZER))?,
            acceptor: has(ACCEPTOR)
                .then(|| acceptor::GuestIndices::new(component))
                .transpose()
                .map_err(differs(ACCEPTOR))?,
            recoverer: has(RECOVERER)
                .then(|| recoverer::GuestIndices::new(component))
                .transpose()
                .map_err(differs(RECOVERER))?,
        })
    }

    pub(crate) fn takes_issuer(&self) -> bool {
        matches!(self.maker, Maker::IssuedGenerator(_))
    }

    pub(crate) fn has_normalizer(&self) -> bool {
        self.normalizer.is_some()
    }

    pub(crate) fn has_acceptor(&self) -> bool {
        self.acceptor.is_some()
    }

    pub(crate) fn has_recoverer(&self) -> bool {
        self.recoverer.is_some()
    }
}

/// Asks a guest what it is, and looks at the types of all its functions on the way.
///
/// # Errors
/// When a function is not of the type that its interface says, or the guest fails.
pub(crate) fn describe(
    plugin: &Plugin,
    exports: &GeneratorExports,
) -> Result<descriptor::Description, Refusal> {
    let mut differing = None;
    let described = plugin.call("describe", &[], None, |store, instance| {
        differing = match &exports.maker {
            Maker::Generator(maker) => maker.load(&mut *store, instance).err().map(|_| GENERATOR),
            Maker::IssuedGenerator(maker) => maker
                .load(&mut *store, instance)
                .err()
                .map(|_| ISSUED_GENERATOR),
        };
        if let Some(normalizer) = &exports.normalizer {
            differing = differing.or(normalizer
                .load(&mut *store, instance)
                .err()
                .map(|_| NORMALIZER));
        }
        if let Some(acceptor) = &exports.acceptor {
            differing = differing.or(acceptor.load(&mut *store, instance).err().map(|_| ACCEPTOR));
        }
        if let Some(recoverer) = &exports.recoverer {
            differing = differing.or(recoverer
                .load(&mut *store, instance)
                .err()
                .map(|_| RECOVERER));
        }
        let descriptor = exports
            .descriptor
            .load(&mut *store, instance)
            .inspect_err(|_| {
                differing = differing.or(Some(DESCRIPTOR));
            })?;
        descriptor.call_describe(&mut *store)
    });
    match (differing, described) {
        (Some(interface), _) => Err(Refusal::ExportDiffers(interface)),
        (None, described) => described.map_err(Refusal::DescribeFailed),
    }
}

fn differs(interface: &'static str) -> impl Fn(wasmtime::Error) -> Refusal {
    move |_| Refusal::ExportDiffers(interface)
}

/// A generator's guest and what it said of itself.
pub(crate) struct GeneratorGuest {
    pub(crate) plugin: Plugin,
    pub(crate) exports: GeneratorExports,
    pub(crate) description: Description,
}

impl GeneratorGuest {
    /// The canonical form of parameters, by the guest's normalizer, or by the host where it has none.
    pub(crate) fn canonical(&self, given: &Parameters) -> Result<Parameters, PluginFailure> {
        if self.exports.has_normalizer() {
            self.normalize(given)
        } else {
            self.complete(given)
        }
    }

    /// The canonical form of parameters, by the schema alone.
    pub(super) fn complete(&self, given: &Parameters) -> Result<Parameters, PluginFailure> {
        let Ok(Value::Object(members)) = serde_json::from_str(&given.to_json()) else {
            let rule = violation(None, "must be an object");
            return Err(PluginFailure::ParametersRefused(rule));
        };
        let schema = &self.description.parameters_schema;
        schema
            .complete(members)
            .map_err(PluginFailure::ParametersRefused)
    }

    /// The canonical parameters, as the guest's normalizer has them. What the plugin sets itself when it recovers
    /// parameters, it must not set here.
    pub(super) fn normalize(&self, given: &Parameters) -> Result<Parameters, PluginFailure> {
        let parameters = &given.to_json();
        let Some(normalizer) = &self.exports.normalizer else {
            return Err(self.plugin.malformed(NORMALIZE));
        };
        let outcome = self
            .plugin
            .call(NORMALIZE, &[parameters], None, |store, instance| {
                normalizer.load(&mut *store, instance)?.call_normalize(
                    store,
                    parameters,
                    &self.plugin.settings,
                )
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

    /// A value, made by the guest and held against its schema.
    pub(crate) fn generate(
        &self,
        parameters: String,
        now_seconds: u64,
        issuer: Option<Arc<dyn CertificateIssuer>>,
    ) -> Result<Secret, PluginFailure> {
        let settings = self.plugin.settings.clone();
        let handle = issuer.as_ref().map(|_| IssuerLease::handle());
        let inputs = parameters.clone();
        let outcome = self
            .plugin
            .call(
                GENERATE,
                &[&inputs],
                issuer,
                |store, instance| match &self.exports.maker {
                    Maker::Generator(maker) => {
                        let generation = generator::Generation {
                            parameters,
                            settings,
                            now_seconds,
                        };
                        maker
                            .load(&mut *store, instance)?
                            .call_generate(store, &generation)
                    }
                    Maker::IssuedGenerator(maker) => {
                        let generation = issued_generator::Generation {
                            parameters,
                            settings,
                            now_seconds,
                        };
                        maker
                            .load(&mut *store, instance)?
                            .call_generate(store, &generation, handle)
                    }
                },
            );
        let value = self.returned(GENERATE, outcome)?;
        self.checked_value(GENERATE, &value)
    }

    /// A value that a caller sets, as the guest's acceptor completes it, held against its schema.
    pub(super) fn accept(&self, value: &Secret) -> Result<Secret, PluginFailure> {
        let Some(acceptor) = &self.exports.acceptor else {
            return Err(self.plugin.malformed(ACCEPT));
        };
        let outcome = self
            .plugin
            .call(ACCEPT, &[value.expose()], None, |store, instance| {
                acceptor.load(&mut *store, instance)?.call_accept(
                    store,
                    value.expose(),
                    &self.plugin.settings,
                )
            });
        let value = self.returned(ACCEPT, outcome)?;
        self.checked_value(ACCEPT, &value)
    }

    /// The parameters that the guest's recoverer finds. `value` has no secret members any more.
    pub(super) fn recover(
        &self,
        parameters: Option<String>,
        value: String,
    ) -> Result<Recovered, PluginFailure> {
        let Some(recoverer) = &self.exports.recoverer else {
            return Err(self.plugin.malformed(RECOVER));
        };
        let stored = recoverer::Stored { parameters, value };
        let inputs = [
            stored.parameters.as_deref().unwrap_or_default(),
            &stored.value,
        ];
        let outcome = self.plugin.call(RECOVER, &inputs, None, |store, instance| {
            recoverer.load(&mut *store, instance)?.call_recover(
                store,
                &stored,
                &self.plugin.settings,
            )
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

    /// The failure of a call with a stored value that is not JSON.
    pub(super) fn stored_value_malformed(&self) -> PluginFailure {
        self.plugin.malformed(RECOVER)
    }

    /// The text that a guest returned, within its limit.
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

    fn check_output(&self, function: &'static str, text: &str) -> Result<(), PluginFailure> {
        self.plugin
            .check_output(function, text.len())
            .map_err(|fault| self.plugin.faulted(fault))
    }

    /// What the guest itself reported.
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
        match serde_json::from_str(text.expose()) {
            Ok(Value::Object(members)) => Ok(Parameters::new(members)),
            _ => Err(self.plugin.malformed(function)),
        }
    }

    /// A guest's value, written anew: so that no member stands in it twice, and readers can't differ on what it says.
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
