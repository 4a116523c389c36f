//! The functions exported by a generator's guest.

use wasmtime::{
    Store,
    component::{Instance, Resource},
};

use crate::{
    bindings::{
        exports::keywright::generator::{descriptor, generator, issued_generator, recoverer},
        keywright::generator::types::Failure,
    },
    call::{CallState, Plugin},
    exported::{Exported, Function},
    host::signing::IssuerLease,
    refused::Refusal,
};

/// The interface of a generator's description.
pub(crate) const DESCRIPTOR: &str = "keywright:generator/descriptor";

/// The exported functions of a generator.
pub(crate) struct GeneratorExports {
    descriptor: Exported<Describe>,
    pub(super) maker: Maker,
    pub(super) normalizer: Option<Exported<Normalize>>,
    pub(super) acceptor: Option<Exported<Accept>>,
    pub(super) recoverer: Option<Exported<Recover>>,
}

/// The interface that generates values: one of two.
pub(super) enum Maker {
    Generator(Exported<Generate>),
    IssuedGenerator(Exported<GenerateIssued>),
}

impl GeneratorExports {
    /// Finds the functions.
    ///
    /// # Errors
    /// If no or several functions generate values, or a required function is missing.
    pub(crate) fn find(plugin: &Plugin) -> Result<Self, Refusal> {
        let (component, version) = (&plugin.component, plugin.wit_version);
        let issued = Exported::<GenerateIssued>::find(component, version)?;
        let maker = match (Exported::<Generate>::find(component, version)?, issued) {
            (Some(_), Some(_)) => return Err(Refusal::MakesTwice),
            (Some(maker), None) => Maker::Generator(maker),
            (None, Some(maker)) => Maker::IssuedGenerator(maker),
            (None, None) => Maker::Generator(Exported::expect(component, version)?),
        };
        Ok(Self {
            descriptor: Exported::expect(component, version)?,
            maker,
            normalizer: Exported::find(component, version)?,
            acceptor: Exported::find(component, version)?,
            recoverer: Exported::find(component, version)?,
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

    /// Checks the types of all functions against their interfaces.
    fn check(&self, store: &mut Store<CallState>, instance: &Instance) -> Result<(), Refusal> {
        match &self.maker {
            Maker::Generator(maker) => maker.check(store, instance)?,
            Maker::IssuedGenerator(maker) => maker.check(store, instance)?,
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
        self.descriptor.check(store, instance)
    }
}

/// Calls `describe` after checking the types of all functions.
///
/// # Errors
/// If a function's type differs from its interface, or the guest fails.
pub(crate) fn describe(
    plugin: &Plugin,
    exports: &GeneratorExports,
) -> Result<descriptor::Description, Refusal> {
    let described = plugin.call("describe", 0, None, |store, instance| {
        match exports.check(store, instance) {
            Ok(()) => exports.descriptor.call(store, instance, ()).map(Ok),
            Err(differs) => Ok(Err(differs)),
        }
    });
    described.map_err(Refusal::DescribeFailed)?
}

/// `descriptor.describe`.
struct Describe;

impl Function for Describe {
    type Parameters<'a> = ();
    type Result = descriptor::Description;
    const INTERFACE: &'static str = DESCRIPTOR;
    const NAME: &'static str = "describe";
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
        Option<Resource<IssuerLease>>,
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
