//! The credential types of a server, with their schemas.

use crate::{
    credential::{CredentialType, Credentials, PluginIdentity},
    ports::{Generator, GeneratorDescription},
};

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

impl Credentials {
    /// Returns the types of this server: set-only types, then types with a generator in alphabetical order.
    #[must_use]
    pub fn types(&self) -> Vec<KnownType> {
        let names = self.generators.credential_types();
        let generated = names.iter().filter_map(|credential_type| {
            let generator = self.generators.generator(credential_type)?;
            Some(KnownType::generated(credential_type, generator.as_ref()))
        });
        KnownType::set_only().into_iter().chain(generated).collect()
    }
}

impl KnownType {
    /// Returns the types whose values can only be set.
    #[must_use]
    pub fn set_only() -> [Self; 2] {
        [
            (CredentialType::VALUE, VALUE_SUMMARY, VALUE_SCHEMA),
            (CredentialType::JSON, JSON_SUMMARY, JSON_SCHEMA),
        ]
        .map(|(name, summary, value_schema)| Self {
            name: name.to_owned(),
            summary: summary.to_owned(),
            plugin: None,
            parameters_schema: None,
            value_schema: value_schema.to_owned(),
        })
    }

    fn generated(credential_type: &CredentialType, generator: &dyn Generator) -> Self {
        let GeneratorDescription {
            summary,
            parameters_schema,
            value_schema,
        } = generator.description().clone();
        Self {
            name: credential_type.as_str().to_owned(),
            summary,
            plugin: Some(generator.identity().clone()),
            parameters_schema: Some(parameters_schema),
            value_schema,
        }
    }
}

const VALUE_SUMMARY: &str = "A text that callers set.";

const VALUE_SCHEMA: &str = r#"{"type":"string","minLength":1,"writeOnly":true}"#;

const JSON_SUMMARY: &str = "A JSON object of any members that callers set.";

const JSON_SCHEMA: &str = r#"{"type":"object","writeOnly":true}"#;
