//! The credential types of a server, and their generators.

use std::sync::Arc;

use crate::{
    UseCaseError,
    authorization::Caller,
    credential::{CredentialType, PluginIdentity},
    ports::{Generator, Generators},
};

/// The credential types of a server: types that can only be set, and types with a generator.
#[derive(Clone)]
pub struct CredentialTypes {
    pub(super) generators: Arc<dyn Generators>,
}

impl CredentialTypes {
    /// Returns the types: set-only types, then types with a generator in alphabetical order.
    pub fn all(&self) -> Vec<KnownType> {
        let names = self.generators.credential_types();
        let generated = names.iter().filter_map(|credential_type| {
            let generator = self.generators.generator(credential_type)?;
            let description = generator.description().clone();
            Some(KnownType {
                name: credential_type.as_str().to_owned(),
                summary: description.summary,
                plugin: Some(generator.identity().clone()),
                parameters_schema: Some(description.parameters_schema),
                value_schema: description.value_schema,
            })
        });
        KnownType::set_only().into_iter().chain(generated).collect()
    }

    /// Parses the name of a type in any casing.
    pub fn parse(&self, name: &str) -> Result<CredentialType, UseCaseError> {
        CredentialType::parse(name)
            .ok()
            .filter(|parsed| parsed.is_set_only() || self.generators.generator(parsed).is_some())
            .ok_or_else(|| self.unknown())
    }

    /// Returns the generator of a type, for calls on behalf of a caller.
    pub(super) fn generator(
        &self,
        caller: &Caller,
        credential_type: &CredentialType,
    ) -> Result<Arc<dyn Generator>, UseCaseError> {
        let generator = self.generators.generator(credential_type);
        generator
            .map(|generator| generator.for_actor(caller.actor()))
            .ok_or_else(|| self.unknown())
    }

    /// Returns the failure for a type without a generator.
    pub(super) fn unknown(&self) -> UseCaseError {
        let generated = self.generators.credential_types();
        let generated = generated.iter().map(CredentialType::as_str);
        let known = [CredentialType::VALUE, CredentialType::JSON]
            .into_iter()
            .chain(generated);
        UseCaseError::TypeUnknown {
            known: known.map(str::to_owned).collect(),
        }
    }
}

/// A credential type of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownType {
    /// Its name.
    pub name: String,
    /// A one-line summary.
    pub summary: String,
    /// The plugin that generates its values; `None` if values can only be set.
    pub plugin: Option<PluginIdentity>,
    /// The JSON Schema of the parameters, JSON text; `None` if values can only be set.
    pub parameters_schema: Option<String>,
    /// The JSON Schema of its values in responses, JSON text. `writeOnly` properties are secret.
    pub value_schema: String,
}

impl KnownType {
    /// Returns the types whose values can only be set.
    pub fn set_only() -> [Self; 2] {
        [
            (
                CredentialType::VALUE,
                "Text set by callers",
                r#"{"type":"string","minLength":1,"writeOnly":true}"#,
            ),
            (
                CredentialType::JSON,
                "JSON objects set by callers",
                r#"{"type":"object","writeOnly":true}"#,
            ),
        ]
        .map(|(name, summary, value_schema)| Self {
            name: name.to_owned(),
            summary: summary.to_owned(),
            plugin: None,
            parameters_schema: None,
            value_schema: value_schema.to_owned(),
        })
    }
}
