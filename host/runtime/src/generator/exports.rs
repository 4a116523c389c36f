//! The functions that a generator exports, with their types, and the checks of its description and of the lifetimes that it returns.

use chrono::{DateTime, Utc};
use keywright_core::{
    credential::{CredentialType, Lifetime},
    ports::GeneratorDescription,
    text::{for_caller, for_log},
};
use keywright_json::is_control_or_invisible;
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
    schema::{ParametersSchema, ValueSchema, with_printable_texts},
};

/// The interface of a generator's description.
pub(crate) const DESCRIPTOR: &str = "keywright:generator/descriptor";

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

/// The maximum length of a plugin's version, in characters.
const PLUGIN_VERSION_CHARACTERS_MAX: usize = 64;
/// The maximum length of a summary, in characters.
const SUMMARY_CHARACTERS_MAX: usize = 200;
/// The maximum length of an issuer parameter's name, in characters.
const ISSUER_PARAMETER_CHARACTERS_MAX: usize = 64;

pub(crate) struct Description {
    pub(crate) plugin_version: String,
    /// The parameter that names the issuer's credential.
    pub(crate) issuer_parameter: Option<String>,
    /// The declared minimum of random bits in a value; `None` if values are derived only from parameters.
    pub(crate) entropy_bits_min: Option<u32>,
    pub(crate) parameters_schema: ParametersSchema,
    pub(crate) value_schema: ValueSchema,
    /// The parts of the description for users of the plugin.
    pub(crate) declared: GeneratorDescription,
}

impl Description {
    /// Validates the description of a plugin that is configured for a type.
    pub(crate) fn parse(
        described: descriptor::Description,
        configured: &CredentialType,
    ) -> Result<Self, PluginRefusedError> {
        if described.credential_type != configured.as_str() {
            return Err(PluginRefusedError::CredentialTypeDiffers {
                described: for_log(&described.credential_type),
            });
        }
        let has_length = |text: &str, max| (1..=max).contains(&text.chars().count());
        let rule = if !has_length(&described.plugin_version, PLUGIN_VERSION_CHARACTERS_MAX)
            || described.plugin_version.contains(is_control_or_invisible)
        {
            Some("plugin-version must be 1 to 64 printable characters")
        } else if described.summary.chars().count() > SUMMARY_CHARACTERS_MAX
            || described.summary.contains(char::is_control)
        {
            Some("summary must be one line of at most 200 characters")
        } else if described
            .issuer_parameter
            .as_deref()
            .is_some_and(|name| !has_length(name, ISSUER_PARAMETER_CHARACTERS_MAX))
        {
            Some("issuer-parameter must be 1 to 64 characters")
        } else {
            None
        };
        if let Some(rule) = rule {
            return Err(PluginRefusedError::DescriptionMalformed(rule));
        }
        let malformed =
            |which| move |malformed| PluginRefusedError::SchemaMalformed { which, malformed };
        Ok(Self {
            plugin_version: described.plugin_version,
            issuer_parameter: described.issuer_parameter,
            entropy_bits_min: described.entropy_bits_min.filter(|bits| *bits > 0),
            parameters_schema: ParametersSchema::parse(&described.parameters_schema)
                .map_err(malformed("parameters"))?,
            value_schema: ValueSchema::parse(&described.value_schema)
                .map_err(malformed("value"))?,
            declared: GeneratorDescription {
                summary: for_caller(&described.summary),
                parameters_schema: with_printable_texts(&described.parameters_schema),
                value_schema: with_printable_texts(&described.value_schema),
            },
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn described() -> descriptor::Description {
        descriptor::Description {
            credential_type: "token".to_owned(),
            plugin_version: "1".to_owned(),
            summary: "A token.".to_owned(),
            parameters_schema: r#"{"type":"object"}"#.to_owned(),
            value_schema: r#"{"type":"string","writeOnly":true}"#.to_owned(),
            issuer_parameter: None,
            entropy_bits_min: Some(128),
        }
    }

    fn parse(described: descriptor::Description) -> Result<Description, PluginRefusedError> {
        Description::parse(described, &CredentialType::parse("token").unwrap())
    }

    #[test]
    fn texts_at_their_limits_are_accepted() {
        let at_limits = descriptor::Description {
            plugin_version: "1".repeat(PLUGIN_VERSION_CHARACTERS_MAX),
            summary: "é".repeat(SUMMARY_CHARACTERS_MAX),
            issuer_parameter: Some("c".repeat(ISSUER_PARAMETER_CHARACTERS_MAX)),
            ..described()
        };
        assert!(parse(at_limits).is_ok());
    }

    #[test]
    fn texts_for_users_contain_no_invisible_characters() {
        let field = r#"{"title":"a\u202eb","description":"c\u200bd\ne","pattern":"\u200b"}"#;
        let schema = format!(r#"{{"type":"object","properties":{{"title":{field}}}}}"#);
        let described = descriptor::Description {
            summary: "a\u{200b}b".to_owned(),
            parameters_schema: schema,
            ..described()
        };
        let declared = parse(described).unwrap().declared;
        assert_eq!(declared.summary, "ab");
        let field = "{\"title\":\"ab\",\"description\":\"cd\\ne\",\"pattern\":\"\u{200b}\"}";
        let schema = format!(r#"{{"type":"object","properties":{{"title":{field}}}}}"#);
        assert_eq!(declared.parameters_schema, schema);
    }

    #[test]
    fn a_schema_with_printable_texts_stays_unchanged() {
        let maximum = "1".repeat(30);
        let schema = format!(
            r#"{{ "type": "object", "title": "a\nb", "properties": {{"a": {{"maximum": {maximum}}}}} }}"#
        );
        let described = descriptor::Description {
            parameters_schema: schema.clone(),
            ..described()
        };
        assert_eq!(parse(described).unwrap().declared.parameters_schema, schema);
    }

    #[test]
    fn zero_declared_bits_mean_derived_values() {
        for (declared_bits, expected) in [(None, None), (Some(0), None), (Some(1), Some(1))] {
            let described = descriptor::Description {
                entropy_bits_min: declared_bits,
                ..described()
            };
            assert_eq!(parse(described).unwrap().entropy_bits_min, expected);
        }
    }

    #[test]
    fn each_broken_rule_is_named() {
        type Change = fn(&mut descriptor::Description);
        let cases: [(Change, &str); 10] = [
            (
                |it| it.credential_type = "tok\nen".to_owned(),
                "it generates credentials of type \"tok\\\\nen\"",
            ),
            (
                |it| it.plugin_version = "1".repeat(PLUGIN_VERSION_CHARACTERS_MAX + 1),
                "invalid description: plugin-version",
            ),
            (
                |it| it.plugin_version = String::new(),
                "invalid description: plugin-version",
            ),
            (
                |it| it.plugin_version = "1\u{200b}".to_owned(),
                "invalid description: plugin-version",
            ),
            (
                |it| it.summary = "é".repeat(SUMMARY_CHARACTERS_MAX + 1),
                "invalid description: summary",
            ),
            (
                |it| it.summary = "A\ntoken.".to_owned(),
                "invalid description: summary",
            ),
            (
                |it| it.issuer_parameter = Some(String::new()),
                "invalid description: issuer-parameter",
            ),
            (
                |it| it.parameters_schema = "[]".to_owned(),
                "its parameters schema is not a JSON Schema",
            ),
            (
                |it| it.value_schema = "{".to_owned(),
                "its value schema is not JSON",
            ),
            (
                |it| it.value_schema = r#"{"properties":{"a\u200b":{}}}"#.to_owned(),
                "its value schema has a property whose name",
            ),
        ];
        for (change, expected) in cases {
            let mut described = described();
            change(&mut described);
            let Err(refusal) = parse(described) else {
                panic!("accepted; expected: {expected}")
            };
            assert!(refusal.to_string().starts_with(expected), "{refusal}");
        }
    }
}
