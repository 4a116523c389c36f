//! The functions that a generator exports, with their types, and the lifetime that it returns for a new value.

use chrono::{DateTime, Utc};
use keywright_core::credential::Lifetime;
use wasmtime::{
    Store,
    component::{Instance, Resource},
};

use super::inputs::{GenerateDerived, InputParameters, ListInputParameters};
use crate::{
    call::Plugin,
    host::{
        CallState, PassedIssuer,
        exports::keywright::generator::{
            descriptor, expiry, generator, issued_generator, recoverer,
        },
        keywright::generator::types::Failure,
    },
    interfaces::{Exported, functions},
    load_error::PluginRefusedError,
};

/// The interface of a generator's description.
pub(crate) const DESCRIPTOR: &str = "keywright:generator/descriptor";

/// The exported functions of a generator.
pub(crate) struct GeneratorExports {
    descriptor: Exported<Describe>,
    pub(super) settings_descriptor: Option<Exported<DescribeSettings>>,
    pub(super) generate: GenerateFunction,
    pub(super) normalizer: Option<Exported<Normalize>>,
    pub(super) acceptor: Option<Exported<Accept>>,
    pub(crate) recoverer: Option<Exported<Recover>>,
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
    /// Finds the functions in an instance of the component.
    fn find(
        store: &mut Store<CallState>,
        instance: &Instance,
        version: &'static str,
    ) -> Result<Self, PluginRefusedError> {
        let generator = Exported::find(store, instance, version)?.map(GenerateFunction::Generator);
        let issued =
            Exported::find(store, instance, version)?.map(GenerateFunction::IssuedGenerator);
        let derived = match Exported::find(store, instance, version)? {
            Some(generate) => Some(GenerateFunction::DerivedGenerator {
                generate,
                input_parameters: Exported::expect(store, instance, version)?,
            }),
            None => None,
        };
        let mut found = [generator, issued, derived].into_iter().flatten();
        let generate = match (found.next(), found.next()) {
            (Some(_), Some(_)) => return Err(PluginRefusedError::GeneratorsConflict),
            (Some(function), None) => function,
            (None, _) => GenerateFunction::Generator(Exported::expect(store, instance, version)?),
        };
        Ok(Self {
            descriptor: Exported::expect(store, instance, version)?,
            settings_descriptor: Exported::find(store, instance, version)?,
            generate,
            normalizer: Exported::find(store, instance, version)?,
            acceptor: Exported::find(store, instance, version)?,
            recoverer: Exported::find(store, instance, version)?,
            expiry: Exported::find(store, instance, version)?,
        })
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

    /// Calls `describe` again.
    pub(crate) fn describe(
        &self,
        plugin: &Plugin,
    ) -> Result<descriptor::Description, PluginRefusedError> {
        plugin.call_to_load("describe", |store, instance| {
            self.descriptor.call(store, instance, ())
        })
    }
}

/// Finds the functions of a generator, and calls `describe`.
pub(super) fn describe(
    plugin: &Plugin,
) -> Result<(GeneratorExports, descriptor::Description), PluginRefusedError> {
    plugin.call_to_load("describe", |store, instance| {
        match GeneratorExports::find(store, instance, plugin.wit_version) {
            Ok(exports) => {
                let described = exports.descriptor.call(store, instance, ())?;
                Ok(Ok((exports, described)))
            }
            Err(refused) => Ok(Err(refused)),
        }
    })?
}

functions! {
    Describe = DESCRIPTOR, "describe", () => descriptor::Description;

    pub(super) DescribeSettings = "keywright:generator/settings-descriptor", "describe-settings", () => String;

    pub(super) Generate = "keywright:generator/generator", "generate",
        (&'a generator::Generation,) => Result<String, Failure>;

    pub(super) GenerateIssued = "keywright:generator/issued-generator", "generate",
        (&'a issued_generator::Generation, Option<Resource<PassedIssuer>>) => Result<String, Failure>;

    pub(super) Normalize = "keywright:generator/normalizer", "normalize",
        (&'a str, &'a str) => Result<String, Failure>;

    pub(super) Accept = "keywright:generator/acceptor", "accept",
        (&'a str, &'a str) => Result<String, Failure>;

    pub(crate) Recover = "keywright:generator/recoverer", "recover",
        (&'a recoverer::Stored, &'a str) => Result<recoverer::Recovered, Failure>;

    pub(super) Expires = "keywright:generator/expiry", EXPIRES,
        (&'a expiry::NewValue,) => Result<expiry::Lifetime, Failure>;
}

/// The name of the guest's function in logs and metrics.
pub(super) const EXPIRES: &str = "expires";

/// The maximum of the times in a lifetime, in seconds since 1970: the last second of the year 9999.
const LIFETIME_SECONDS_MAX: u64 = 253_402_300_799;

/// Converts a returned lifetime, or returns the rule that it breaks.
pub(super) fn checked_lifetime(
    returned: expiry::Lifetime,
    now_seconds: u64,
) -> Result<Lifetime, &'static str> {
    let checked = |seconds: Option<u64>| match seconds {
        None => Ok(None),
        Some(seconds) if seconds < now_seconds => Err("has a time before the call"),
        Some(seconds) if seconds > LIFETIME_SECONDS_MAX => Err("has a time after the year 9999"),
        Some(seconds) => Ok(i64::try_from(seconds)
            .ok()
            .and_then(|seconds| DateTime::<Utc>::from_timestamp(seconds, 0))),
    };
    let lifetime = Lifetime {
        expires_at: checked(returned.expires_seconds)?,
        rotate_at: checked(returned.rotate_seconds)?,
    };
    let is_rotated_late = lifetime
        .rotate_at
        .zip(lifetime.expires_at)
        .is_some_and(|(rotate_at, expires_at)| rotate_at > expires_at);
    if is_rotated_late {
        return Err("has a rotate-seconds after its expires-seconds");
    }
    Ok(lifetime)
}
