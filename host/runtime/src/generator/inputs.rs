//! The parameters of a generator that name inputs, and inputs as the guest gets them.

use std::collections::BTreeMap;

use keywright_core::{
    Secret,
    credential::{CredentialName, CredentialType, LookupName, Parameters, TypeError},
    ports::{Input, PluginCallError},
};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;
use wasmtime::component::{ComponentType, Lower};

use crate::{
    call::Plugin,
    host::{
        exports::keywright::generator::derived_generator::InputParameter,
        keywright::generator::types::Failure,
    },
    interfaces::{DERIVED_GENERATOR, Exported, Function, functions},
    load_error::PluginRefusedError,
};

/// The maximum number of parameters that name inputs.
const INPUT_PARAMETERS_MAX: usize = 8;
/// The maximum length of such a parameter's name, in characters.
const INPUT_PARAMETER_CHARACTERS_MAX: usize = 64;

/// The parameters that name inputs, with an example of an input for each.
#[derive(Clone, Default)]
pub(crate) struct InputParameters {
    pub(crate) names: Vec<String>,
    /// In the order of the names.
    examples: Vec<Example>,
}

/// An example of an input.
#[derive(Clone)]
struct Example {
    credential_type: CredentialType,
    value: Secret,
}

impl InputParameters {
    pub(super) fn of(
        plugin: &Plugin,
        function: &Exported<ListInputParameters>,
    ) -> Result<Self, PluginRefusedError> {
        let listed = plugin.call_to_load(ListInputParameters::NAME, |store, instance| {
            function.call(store, instance, ())
        })?;
        Self::parse(listed).map_err(PluginRefusedError::InputParametersMalformed)
    }

    fn parse(listed: Vec<InputParameter>) -> Result<Self, &'static str> {
        if !(1..=INPUT_PARAMETERS_MAX).contains(&listed.len()) {
            return Err("there must be 1 to 8 input-parameters");
        }
        let mut parameters = Self::default();
        for InputParameter {
            name,
            example_type,
            example_value,
        } in listed
        {
            let value = Secret::new(example_value);
            if !(1..=INPUT_PARAMETER_CHARACTERS_MAX).contains(&name.chars().count()) {
                return Err("the name of an input-parameter must be 1 to 64 characters");
            }
            if parameters.names.contains(&name) {
                return Err("an input-parameter is repeated");
            }
            let credential_type = CredentialType::parse(&example_type);
            keywright_json::check(value.expose()).map_err(|_| "an example-value is not JSON")?;
            parameters.names.push(name);
            parameters.examples.push(Example {
                credential_type: credential_type
                    .map_err(|_| "an example-type is not a credential type")?,
                value,
            });
        }
        Ok(parameters)
    }

    /// Returns the first of the given inputs that no parameter names, if any.
    pub(crate) fn first_unnamed<'g>(
        &self,
        parameters: &Parameters,
        given: &'g TestInputs,
    ) -> Result<Option<&'g LookupName>, PluginCallError> {
        let named = parameters.named_inputs(&self.names);
        let named = named.map_err(PluginCallError::ParametersRefused)?;
        let is_named = |given: &LookupName| named.iter().any(|input| input.name == *given);
        let mut inputs = given.0.iter().map(|given| &given.name);
        Ok(inputs.find(|name| !is_named(name)))
    }

    /// Returns the inputs of a call outside a server: from `given`, by name, or else the examples.
    pub(crate) fn test_inputs(
        &self,
        parameters: &Parameters,
        given: &TestInputs,
    ) -> Result<Vec<Input>, PluginCallError> {
        let all = parameters.named_inputs(&self.names);
        all.map_err(PluginCallError::ParametersRefused)?;
        let mut inputs = Vec::new();
        for (parameter, example) in self.names.iter().zip(&self.examples) {
            let named = parameters.named_inputs(std::slice::from_ref(parameter));
            for input in named.map_err(PluginCallError::ParametersRefused)? {
                let is_named = |given: &&TestInput| input.name == given.name;
                let (credential_type, value) = match given.0.iter().find(is_named) {
                    Some(given) => (&given.credential_type, &given.value),
                    None => (&example.credential_type, &example.value),
                };
                inputs.push(Input {
                    pointer: input.pointer,
                    name: CredentialName::from_stored(input.name.requested().to_owned()),
                    version_id: Uuid::nil(),
                    credential_type: credential_type.clone(),
                    value: value.clone(),
                });
            }
        }
        Ok(inputs)
    }
}

/// Inputs of a plugin under test, instead of its examples.
///
/// In JSON, an object whose keys are names: `{"/db/user": {"type": "user", "value": {"username": "ada"}}}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BTreeMap<String, JsonInput>")]
pub struct TestInputs(Vec<TestInput>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct TestInput {
    name: LookupName,
    credential_type: CredentialType,
    value: Secret,
}

/// The JSON form of a [`TestInput`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonInput {
    #[serde(rename = "type")]
    credential_type: String,
    value: Value,
}

impl TryFrom<BTreeMap<String, JsonInput>> for TestInputs {
    type Error = TypeError;

    fn try_from(inputs: BTreeMap<String, JsonInput>) -> Result<Self, Self::Error> {
        let inputs = inputs.into_iter().map(|(name, input)| {
            Ok(TestInput {
                name: LookupName::new(&name),
                credential_type: CredentialType::parse(&input.credential_type)?,
                value: Secret::new(input.value.to_string()),
            })
        });
        inputs.collect::<Result<_, _>>().map(Self)
    }
}

functions! {
    pub(super) ListInputParameters = DERIVED_GENERATOR, "input-parameters", () => Vec<InputParameter>;

    pub(super) GenerateDerived = DERIVED_GENERATOR, "generate",
        (&'a Derivation<'a>,) => Result<String, Failure>;
}

/// `derived-generator.generation`, with references to the secrets: the generated type would copy them.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(super) struct Derivation<'a> {
    pub(super) parameters: &'a str,
    pub(super) settings: &'a str,
    #[component(name = "now-seconds")]
    pub(super) now_seconds: u64,
    pub(super) inputs: &'a [PassedInput<'a>],
}

/// `derived-generator.input`.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(super) struct PassedInput<'a> {
    pointer: &'a str,
    name: &'a str,
    #[component(name = "version-id")]
    version_id: String,
    #[component(name = "credential-type")]
    credential_type: &'a str,
    value: &'a str,
}

impl<'a> PassedInput<'a> {
    pub(super) fn of(input: &'a Input) -> Self {
        Self {
            pointer: &input.pointer,
            name: input.name.as_str(),
            version_id: input.version_id.to_string(),
            credential_type: input.credential_type.as_str(),
            value: input.value.expose(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parameter(name: &str) -> InputParameter {
        InputParameter {
            name: name.to_owned(),
            example_type: "password".to_owned(),
            example_value: r#""example""#.to_owned(),
        }
    }

    #[test]
    fn malformed_or_too_many_parameters_are_refused_with_the_rule() {
        let many = |count: usize| (0..count).map(|number| parameter(&number.to_string()));
        let longest = "é".repeat(INPUT_PARAMETER_CHARACTERS_MAX);
        for accepted in [
            many(INPUT_PARAMETERS_MAX).collect(),
            vec![parameter(&longest)],
        ] {
            assert!(InputParameters::parse(accepted).is_ok());
        }
        for (refused, rule) in [
            (Vec::new(), "1 to 8"),
            (many(INPUT_PARAMETERS_MAX + 1).collect(), "1 to 8"),
            (vec![parameter("")], "1 to 64"),
            (vec![parameter(&format!("{longest}x"))], "1 to 64"),
            (vec![parameter("a"), parameter("a")], "repeated"),
            (
                vec![InputParameter {
                    example_type: "a b".to_owned(),
                    ..parameter("a")
                }],
                "example-type",
            ),
            (
                vec![InputParameter {
                    example_value: "{".to_owned(),
                    ..parameter("a")
                }],
                "example-value",
            ),
        ] {
            let error = InputParameters::parse(refused).err().unwrap();
            assert!(error.contains(rule), "{error}");
        }
    }

    #[test]
    fn an_input_that_no_parameter_names_is_found() {
        let parameters = InputParameters::parse(vec![parameter("one")]).unwrap();
        let named = json!({"one": "/a", "other": "/b"});
        let named = Parameters::new(named.as_object().unwrap().clone());
        for (given, unnamed) in [("{}", None), (r#""/A""#, None), (r#""/b""#, Some("/b"))] {
            let given = match given {
                "{}" => given.to_owned(),
                name => format!(r#"{{{name}: {{"type": "json", "value": {{}}}}}}"#),
            };
            let given = keywright_json::read(&given).unwrap();
            let found = parameters.first_unnamed(&named, &given).unwrap();
            assert_eq!(found.map(LookupName::requested), unnamed);
        }
    }

    #[test]
    fn given_inputs_replace_examples() {
        let parameters = InputParameters::parse(vec![parameter("one")]).unwrap();
        let named = json!({"one": ["/A", "b"]});
        let named = Parameters::new(named.as_object().unwrap().clone());
        let given = keywright_json::read(r#"{"/a": {"type": "json", "value": {}}}"#).unwrap();
        let inputs = parameters.test_inputs(&named, &given).unwrap();
        let found: Vec<_> = inputs
            .iter()
            .map(|input| {
                (
                    input.pointer.as_str(),
                    input.name.as_str(),
                    input.value.expose(),
                )
            })
            .collect();
        let expected = [("/one/0", "/A", "{}"), ("/one/1", "/b", r#""example""#)];
        assert_eq!(found, expected);
    }
}
