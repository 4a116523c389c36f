//! The inputs of derived values: finding their names in parameters, authorizing the caller to read them, and reading their
//! active versions.

use keywright_json::pointer::{dotted, escaped};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    UseCaseError,
    authorization::{Authorization, Caller, EffectivePermissions, Permit},
    credential::{
        CredentialName, LookupName, Parameters, StoredVersion, VersionStore, version::Content,
    },
    permission::{Actor, Operation},
    ports::{Generator, Input, PluginCallError, ReadVersions, Violation},
};

/// The maximum number of inputs of a value.
pub const INPUTS_MAX: usize = 16;

/// The maximum total size of the values of all inputs, in bytes of JSON.
pub const INPUTS_BYTES_MAX: usize = 1_048_576;

/// A version from which a value was derived. It is stored in the encrypted content of the value's version.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct InputVersion {
    /// The JSON Pointer of the credential's name in the parameters.
    pub pointer: String,
    /// The name of the credential, with the casing of its first version.
    #[serde(with = "stored_name")]
    pub name: CredentialName,
    /// The id of the version. It may have been deleted.
    pub version_id: Uuid,
}

mod stored_name {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::credential::CredentialName;

    pub(super) fn serialize<S: Serializer>(
        name: &CredentialName,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        name.as_str().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<CredentialName, D::Error> {
        String::deserialize(from).map(CredentialName::from_stored)
    }
}

/// A credential that parameters name as an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedInput {
    /// The JSON Pointer of the name in the parameters.
    pub pointer: String,
    /// The name.
    pub name: LookupName,
}

impl NamedInput {
    /// Returns the parameter that contains the name, for callers: `credentials.a`.
    fn parameter(&self) -> String {
        dotted(&self.pointer)
    }
}

impl Parameters {
    /// Returns the credentials that these parameters name: in the order of `input_parameters`, and then of the array or object.
    ///
    /// # Errors
    /// If such a parameter contains something other than names, or there are more than [`INPUTS_MAX`].
    pub fn named_inputs(&self, input_parameters: &[String]) -> Result<Vec<NamedInput>, Violation> {
        let mut inputs = Vec::new();
        for parameter in input_parameters {
            let violated = |rule: String| Violation {
                field: Some(parameter.clone()),
                rule,
            };
            let pointer = format!("/{}", escaped(parameter));
            let names: Vec<(String, &Value)> = match self.field(parameter) {
                None => Vec::new(),
                Some(Value::Array(names)) => {
                    let names = (0..).zip(names);
                    names
                        .map(|(index, name): (u32, _)| (format!("{pointer}/{index}"), name))
                        .collect()
                }
                Some(Value::Object(names)) => names
                    .iter()
                    .map(|(key, name)| (format!("{pointer}/{}", escaped(key)), name))
                    .collect(),
                Some(name) => vec![(pointer, name)],
            };
            for (pointer, name) in names {
                let name = name.as_str().filter(|name| !name.is_empty());
                let name = name.ok_or_else(|| violated(NAMES_ONLY.to_owned()))?;
                let name = LookupName::new(name);
                inputs.push(NamedInput { pointer, name });
                if inputs.len() > INPUTS_MAX {
                    let rule = format!("exceeds the limit of {INPUTS_MAX} input credentials");
                    return Err(violated(rule));
                }
            }
        }
        Ok(inputs)
    }

    /// Converts the names in these parameters to their canonical form. Removes a parameter that is the empty string.
    pub(super) fn with_canonical_inputs(mut self, input_parameters: &[String]) -> Self {
        for parameter in input_parameters {
            let Some(mut names) = self.remove(parameter) else {
                continue;
            };
            if names == "" {
                continue;
            }
            match &mut names {
                Value::Array(names) => names.iter_mut().for_each(canonicalize),
                Value::Object(names) => names.values_mut().for_each(canonicalize),
                name => canonicalize(name),
            }
            self.insert(parameter, names);
        }
        self
    }

    /// Returns these parameters with the inputs of `stored`, or without inputs.
    pub(super) fn with_inputs_of(
        mut self,
        stored: Option<&Self>,
        input_parameters: &[String],
    ) -> Self {
        for parameter in input_parameters {
            match stored.and_then(|stored| stored.field(parameter)) {
                Some(names) => self.insert(parameter, names.clone()),
                None => drop(self.remove(parameter)),
            }
        }
        self
    }

    /// Returns whether both name the same inputs at the same JSON Pointers.
    pub(super) fn has_same_inputs(&self, other: &Self, input_parameters: &[String]) -> bool {
        let mut parameters = input_parameters.iter();
        parameters.all(|parameter| self.field(parameter) == other.field(parameter))
    }
}

/// The rule for parameters that name inputs.
const NAMES_ONLY: &str = "must be the name of a credential, or an array or object of names";

fn canonicalize(name: &mut Value) {
    if let Value::String(text) = name
        && !text.is_empty()
    {
        LookupName::new(text).requested().clone_into(text);
    }
}

/// Returns the inputs in the canonical parameters of the credential `of`.
///
/// # Errors
/// If they are malformed, too many, or include the credential itself.
pub(super) fn named_inputs(
    of: &LookupName,
    parameters: &Parameters,
    generator: &dyn Generator,
) -> Result<Vec<NamedInput>, UseCaseError> {
    let input_parameters = generator.input_parameters();
    let inputs = parameters
        .named_inputs(input_parameters)
        .map_err(PluginCallError::ParametersRefused)?;
    match inputs.iter().find(|input| input.name == *of) {
        Some(own) => {
            let rule = "must not name the credential itself";
            Err(UseCaseError::parameter_refused(&own.parameter(), rule))
        }
        None => Ok(inputs),
    }
}

/// An input that the caller may read.
pub(super) struct PermittedInput<'a> {
    named: NamedInput,
    permit: Permit<'a>,
}

impl<'a> PermittedInput<'a> {
    pub(super) fn permit(&self) -> &Permit<'a> {
        &self.permit
    }

    /// Permits a caller to read all these credentials.
    ///
    /// # Errors
    /// [`UseCaseError::InputNotFound`] for the first credential that the caller may not read.
    pub(super) async fn request(
        authorization: &Authorization,
        caller: &'a Caller,
        inputs: Vec<NamedInput>,
    ) -> Result<Vec<Self>, UseCaseError> {
        let mut permitted = Vec::with_capacity(inputs.len());
        for named in inputs {
            let permit = authorization.permit(caller, Operation::Read, &named.name);
            let permit = permit.await.map_err(|failure| not_found(failure, &named))?;
            permitted.push(Self { named, permit });
        }
        Ok(permitted)
    }

    /// Like [`PermittedInput::request`], but with these permissions, which must be the caller's.
    pub(super) fn request_with(
        permissions: &EffectivePermissions,
        caller: &'a Caller,
        inputs: Vec<NamedInput>,
    ) -> Result<Vec<Self>, UseCaseError> {
        let inputs = inputs.into_iter().map(|named| {
            let permit = permissions.permit(caller, Operation::Read, &named.name);
            let permit = permit.map_err(|failure| not_found(failure, &named))?;
            Ok(Self { named, permit })
        });
        inputs.collect()
    }
}

/// Converts the failure of a permission check. Does not reveal whether the credential is missing or the caller may not read it.
fn not_found(failure: UseCaseError, input: &NamedInput) -> UseCaseError {
    match failure {
        UseCaseError::NotFound => UseCaseError::InputNotFound(input.parameter()),
        failure => failure,
    }
}

/// The active version of an input, still encrypted.
pub(super) struct ActiveInput<'p, 'a> {
    permitted: &'p PermittedInput<'a>,
    version: StoredVersion,
    read: ReadVersions,
}

/// The inputs of one call, with their values.
#[derive(Default)]
pub(super) struct Inputs {
    /// The inputs as the generator gets them.
    pub(super) passed: Vec<Input>,
    /// The versions that must be unchanged when the value is written.
    pub(super) read: Vec<ReadVersions>,
    /// The actor that chose the parameters; `None` if an older release stored them.
    pub(super) chosen_by: Option<Actor>,
}

impl Inputs {
    pub(super) fn versions(&self) -> Vec<InputVersion> {
        let inputs = self.passed.iter().map(|input| InputVersion {
            pointer: input.pointer.clone(),
            name: input.name.clone(),
            version_id: input.version_id,
        });
        inputs.collect()
    }
}

impl VersionStore {
    /// Reads the active version of each input.
    ///
    /// # Errors
    /// [`UseCaseError::InputNotFound`] for the first input without an active version.
    pub(super) async fn active_inputs<'p, 'a>(
        &self,
        inputs: &'p [PermittedInput<'a>],
    ) -> Result<Vec<ActiveInput<'p, 'a>>, UseCaseError> {
        let mut all = Vec::with_capacity(inputs.len());
        for permitted in inputs {
            let named = &permitted.named;
            let current = self.active_versions(&named.name).await?;
            let read = current.as_read(&named.name);
            let version = current.active;
            all.push(ActiveInput {
                permitted,
                version: version.ok_or_else(|| UseCaseError::InputNotFound(named.parameter()))?,
                read,
            });
        }
        Ok(all)
    }

    /// Decrypts inputs in parameters that this actor chose, and records in the trail that they were read.
    ///
    /// # Errors
    /// [`UseCaseError::InputsTooLarge`]; [`UseCaseError::InputNotFound`] for an input whose stored casing the caller may not read.
    pub(super) async fn open_inputs(
        &self,
        active: Vec<ActiveInput<'_, '_>>,
        chosen_by: Option<&Actor>,
    ) -> Result<Inputs, UseCaseError> {
        let mut inputs = Inputs {
            chosen_by: chosen_by.cloned(),
            ..Inputs::default()
        };
        let mut bytes = 0;
        for ActiveInput {
            permitted: PermittedInput { named, permit },
            version,
            read,
        } in active
        {
            let version = self.open(permit, version).await;
            let version = version.map_err(|failure| not_found(failure, named))?;
            permit.record_version(version.credential_id, version.id);
            let Content { value, .. } = version.content;
            bytes += value.expose().len();
            if bytes > INPUTS_BYTES_MAX {
                return Err(UseCaseError::InputsTooLarge);
            }
            inputs.passed.push(Input {
                pointer: named.pointer.clone(),
                name: version.name,
                version_id: version.id,
                credential_type: version.credential_type,
                value,
            });
            inputs.read.push(read);
        }
        Ok(inputs)
    }
}

/// Returns whether an actor may read all these inputs, in the casing of the parameters and in the stored casing.
pub(super) async fn may_read_all(
    authorization: &Authorization,
    actor: &Actor,
    inputs: &[ActiveInput<'_, '_>],
) -> Result<bool, UseCaseError> {
    for input in inputs {
        let named = input.permitted.named.name.requested();
        let stored = input.version.name.as_str();
        let may_read = authorization.may(actor, Operation::Read, named).await?
            && (named == stored || authorization.may(actor, Operation::Read, stored).await?);
        if !may_read {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn is_derived_from(recorded: &[InputVersion], active: &[ActiveInput<'_, '_>]) -> bool {
    recorded.len() == active.len()
        && active.iter().all(|active| {
            recorded.iter().any(|recorded| {
                recorded.pointer == active.permitted.named.pointer
                    && recorded.version_id == active.version.id
            })
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parameters(json: Value) -> Parameters {
        let Value::Object(fields) = json else {
            panic!("not an object")
        };
        Parameters::new(fields)
    }

    fn names() -> [String; 2] {
        ["one", "a/~"].map(str::to_owned)
    }

    #[test]
    fn names_are_found_in_strings_arrays_and_objects() {
        for (given, expected) in [
            (json!({}), vec![]),
            (json!({"one": null, "other": "/x"}), vec![]),
            (json!({"one": "/x"}), vec![("/one", "/x")]),
            (
                json!({"a/~": ["/x", "y"], "one": {"b/": "/z"}}),
                vec![("/one/b~1", "/z"), ("/a~1~0/0", "/x"), ("/a~1~0/1", "/y")],
            ),
        ] {
            let found = parameters(given.clone()).named_inputs(&names()).unwrap();
            let found: Vec<_> = found
                .iter()
                .map(|input| (input.pointer.as_str(), input.name.requested()))
                .collect();
            assert_eq!(found, expected, "{given}");
        }
    }

    #[test]
    fn canonical_names_start_with_a_slash_and_empty_ones_are_absent() {
        let given = json!({"one": "", "a/~": {"b": "x", "c": "/y", "d": ""}, "other": "z"});
        let canonical = parameters(given).with_canonical_inputs(&names());
        let expected = json!({"other": "z", "a/~": {"b": "/x", "c": "/y", "d": ""}});
        assert!(canonical == parameters(expected));
    }
}
