//! Credential types: two types of the host, and one type per configured generator.

use std::fmt;

use crate::{
    credential::PluginIdentity,
    ports::{Generator, GeneratorDescription},
};

/// The maximum length of a type name, in characters.
const TYPE_CHARACTERS_MAX: usize = 63;

/// The name of a credential type, in lower case. A server need not have a type with this name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CredentialType(String);

impl CredentialType {
    /// The type whose value is a string set by callers.
    pub const VALUE: &str = "value";
    /// The type whose value is an arbitrary JSON object set by callers.
    pub const JSON: &str = "json";
    /// The type whose value is a password.
    pub const PASSWORD: &str = "password";
    /// The type of a user name with its password.
    pub const USER: &str = "user";
    /// The type of X.509 certificates, including CA certificates.
    pub const CERTIFICATE: &str = "certificate";
    /// The type of RSA key pairs.
    pub const RSA: &str = "rsa";
    /// The type of SSH key pairs.
    pub const SSH: &str = "ssh";

    /// The types of the specification, in its order. Values of all of them can be set.
    pub const SPECIFIED: [&str; 7] = [
        Self::VALUE,
        Self::JSON,
        Self::PASSWORD,
        Self::USER,
        Self::CERTIFICATE,
        Self::RSA,
        Self::SSH,
    ];

    /// Parses a type name in any casing.
    ///
    /// # Errors
    /// If it does not have 1 to 63 characters of `a-z`, `0-9` and `-`, or does not start with a letter.
    pub fn parse(text: &str) -> Result<Self, TypeError> {
        let name = text.to_ascii_lowercase();
        let well_formed = name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.len() <= TYPE_CHARACTERS_MAX
            && name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if well_formed {
            Ok(Self(name))
        } else {
            Err(TypeError)
        }
    }

    /// Returns the type of X.509 certificates.
    #[must_use]
    pub fn certificate() -> Self {
        Self(Self::CERTIFICATE.to_owned())
    }

    /// Returns the type's name, in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether values of this type are X.509 certificates, whose expiry, flags and signer the host reads.
    #[must_use]
    pub fn is_certificate(&self) -> bool {
        self.0 == Self::CERTIFICATE
    }

    /// Returns whether values of this type can only be set, not generated.
    #[must_use]
    pub fn is_set_only(&self) -> bool {
        self.0 == Self::VALUE || self.0 == Self::JSON
    }
}

impl fmt::Display for CredentialType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A malformed type name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a credential type must have 1 to {TYPE_CHARACTERS_MAX} characters of a-z, 0-9 and -, and start with a letter"
)]
pub struct TypeError;

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

    pub(super) fn generated(credential_type: &CredentialType, generator: &dyn Generator) -> Self {
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

const JSON_SUMMARY: &str = "A JSON object with any fields, set by callers.";

const JSON_SCHEMA: &str = r#"{"type":"object","writeOnly":true}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_are_converted_to_lower_case() {
        assert_eq!(
            CredentialType::parse("PassWord").unwrap().as_str(),
            "password"
        );
    }

    #[test]
    fn malformed_type_names_are_rejected() {
        let longest = "a".repeat(TYPE_CHARACTERS_MAX);
        assert!(CredentialType::parse(&longest).is_ok());
        let too_long = "a".repeat(TYPE_CHARACTERS_MAX + 1);
        for text in ["", "1a", "-a", "a_b", "a b", "ä", &too_long] {
            assert_eq!(CredentialType::parse(text), Err(TypeError), "{text}");
        }
    }
}
