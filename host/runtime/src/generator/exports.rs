//! The functions that a generator exports, with their types.

use wasmtime::{
    Store,
    component::{Instance, Resource},
};

use super::{
    inputs::{GenerateDerived, InputParameters, ListInputParameters},
    lifetime::Expires,
};
use crate::{
    bindings::{
        PassedIssuer,
        exports::keywright::generator::{descriptor, generator, issued_generator, recoverer},
        keywright::generator::types::Failure,
    },
    call::Plugin,
    exported::{Exported, Function},
    host::CallState,
    load_error::PluginRefusedError,
};

/// The interface of a generator's description.
pub(crate) const DESCRIPTOR: &str = "keywright:generator/descriptor";

/// The exported functions of a generator.
pub(crate) struct GeneratorExports {
    descriptor: Exported<Describe>,
    pub(super) generate: GenerateFunction,
    pub(super) normalizer: Option<Exported<Normalize>>,
    pub(super) acceptor: Option<Exported<Accept>>,
    pub(super) recoverer: Option<Exported<Recover>>,
    pub(super) expiry: Option<Exported<Expires>>,
}

/// The interface that generates values: one of three.
pub(super) enum GenerateFunction {
    Generator(Exported<Generate>),
    IssuedGenerator(Exported<GenerateIssued>),
    DerivedGenerator {
        generate: Exported<GenerateDerived>,
        input_parameters: Exported<ListInputParameters>,
    },
}

impl GeneratorExports {
    /// Finds the functions.
    ///
    /// # Errors
    /// If no or several functions generate values, or a required function is missing.
    pub(super) fn find(plugin: &Plugin) -> Result<Self, PluginRefusedError> {
        let (component, version) = (&plugin.component, plugin.wit_version);
        let generator = Exported::find(component, version)?.map(GenerateFunction::Generator);
        let issued = Exported::find(component, version)?.map(GenerateFunction::IssuedGenerator);
        let derived = match Exported::find(component, version)? {
            Some(generate) => Some(GenerateFunction::DerivedGenerator {
                generate,
                input_parameters: Exported::expect(component, version)?,
            }),
            None => None,
        };
        let mut found = [generator, issued, derived].into_iter().flatten();
        let generate = match (found.next(), found.next()) {
            (Some(_), Some(_)) => return Err(PluginRefusedError::GeneratorsConflict),
            (Some(function), None) => function,
            (None, _) => GenerateFunction::Generator(Exported::expect(component, version)?),
        };
        Ok(Self {
            descriptor: Exported::expect(component, version)?,
            generate,
            normalizer: Exported::find(component, version)?,
            acceptor: Exported::find(component, version)?,
            recoverer: Exported::find(component, version)?,
            expiry: Exported::find(component, version)?,
        })
    }

    pub(super) fn takes_issuer(&self) -> bool {
        matches!(self.generate, GenerateFunction::IssuedGenerator(_))
    }

    /// Returns the parameters that name inputs, if the generator takes inputs.
    pub(super) fn input_parameters(
        &self,
        plugin: &Plugin,
    ) -> Result<InputParameters, PluginRefusedError> {
        match &self.generate {
            GenerateFunction::DerivedGenerator {
                input_parameters, ..
            } => InputParameters::of(plugin, input_parameters),
            _ => Ok(InputParameters::default()),
        }
    }

    pub(super) fn has_normalizer(&self) -> bool {
        self.normalizer.is_some()
    }

    pub(crate) fn has_acceptor(&self) -> bool {
        self.acceptor.is_some()
    }

    pub(crate) fn has_recoverer(&self) -> bool {
        self.recoverer.is_some()
    }

    pub(super) fn has_expiry(&self) -> bool {
        self.expiry.is_some()
    }

    /// Checks the types of all functions against their interfaces.
    fn check(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
    ) -> Result<(), PluginRefusedError> {
        match &self.generate {
            GenerateFunction::Generator(function) => function.check(store, instance)?,
            GenerateFunction::IssuedGenerator(function) => function.check(store, instance)?,
            GenerateFunction::DerivedGenerator { generate, .. } => {
                generate.check(store, instance)?;
            }
        }
        if let Some(normalizer) = &self.normalizer {
            normalizer.check(store, instance)?;
        }
        if let Some(acceptor) = &self.acceptor {
            acceptor.check(store, instance)?;
        }
        if let Some(recoverer) = &self.recoverer {
            recoverer.check(store, instance)?;
        }
        if let Some(expiry) = &self.expiry {
            expiry.check(store, instance)?;
        }
        self.descriptor.check(store, instance)
    }
}

/// Calls `describe` after checking the types of all functions.
pub(crate) fn describe(
    plugin: &Plugin,
    exports: &GeneratorExports,
) -> Result<descriptor::Description, PluginRefusedError> {
    let described = plugin.call("describe", 0, None, |store, instance| {
        match exports.check(store, instance) {
            Ok(()) => exports.descriptor.call(store, instance, ()).map(Ok),
            Err(differs) => Ok(Err(differs)),
        }
    });
    described.map_err(PluginRefusedError::DescribeFailed)?
}

/// `descriptor.describe`.
struct Describe;

impl Function for Describe {
    type Parameters<'a> = ();
    type Result = descriptor::Description;
    const INTERFACE: &'static str = DESCRIPTOR;
    const NAME: &'static str = "describe";
}

/// `settings-descriptor.describe-settings`.
pub(super) struct DescribeSettings;

impl Function for DescribeSettings {
    type Parameters<'a> = ();
    type Result = String;
    const INTERFACE: &'static str = "keywright:generator/settings-descriptor";
    const NAME: &'static str = "describe-settings";
}

/// `generator.generate`.
pub(super) struct Generate;

impl Function for Generate {
    type Parameters<'a> = (&'a generator::Generation,);
    type Result = Result<String, Failure>;
    const INTERFACE: &'static str = "keywright:generator/generator";
    const NAME: &'static str = "generate";
}

/// `issued-generator.generate`.
pub(super) struct GenerateIssued;

impl Function for GenerateIssued {
    type Parameters<'a> = (
        &'a issued_generator::Generation,
        Option<Resource<PassedIssuer>>,
    );
    type Result = Result<String, Failure>;
    const INTERFACE: &'static str = "keywright:generator/issued-generator";
    const NAME: &'static str = "generate";
}

/// `normalizer.normalize`.
pub(super) struct Normalize;

impl Function for Normalize {
    type Parameters<'a> = (&'a str, &'a str);
    type Result = Result<String, Failure>;
    const INTERFACE: &'static str = "keywright:generator/normalizer";
    const NAME: &'static str = "normalize";
}

/// `acceptor.accept`.
pub(super) struct Accept;

impl Function for Accept {
    type Parameters<'a> = (&'a str, &'a str);
    type Result = Result<String, Failure>;
    const INTERFACE: &'static str = "keywright:generator/acceptor";
    const NAME: &'static str = "accept";
}

/// `recoverer.recover`.
pub(super) struct Recover;

impl Function for Recover {
    type Parameters<'a> = (&'a recoverer::Stored, &'a str);
    type Result = Result<recoverer::Recovered, Failure>;
    const INTERFACE: &'static str = "keywright:generator/recoverer";
    const NAME: &'static str = "recover";
}
