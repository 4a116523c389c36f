//! Which types a server knows, and what each takes and holds.

use crate::{
    credential::{CredentialType, Credentials, PluginIdentity},
    ports::{Generator, GeneratorDescription},
};

/// A type that a server knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownType {
    /// Its name.
    pub name: String,
    /// What it is, in one line.
    pub summary: String,
    /// What makes its values; none where they can only be set.
    pub plugin: Option<PluginIdentity>,
    /// The JSON Schema of the parameters from which a value is generated, JSON text; none where none can be.
    pub parameters_schema: Option<String>,
    /// The JSON Schema of its values as they are read, JSON text. What is `writeOnly` in it is secret.
    pub value_schema: String,
}

impl Credentials {
    /// The types that this server knows: those that are set only, then those that have a generator, in alphabetical order.
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
    /// The types that no plugin makes.
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
