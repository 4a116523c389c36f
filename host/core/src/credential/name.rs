//! Credential names for storing and for lookups, path prefixes, and credential types.

use std::{borrow::Cow, fmt, sync::Arc};

/// The maximum length of a credential name, in characters, including its leading slash.
pub const NAME_CHARACTERS_MAX: usize = 255;

/// A well-formed credential name, with a leading slash and its original casing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialName(String);

impl CredentialName {
    /// Parses a name to store. Prepends a missing leading slash.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        if text.is_empty() || text == "/" {
            return Err(NameError::Missing);
        }
        let name = with_leading_slash(text);
        if !name.chars().all(is_name_character) {
            return Err(NameError::Character);
        }
        if name.ends_with('/') || name.contains("//") {
            return Err(NameError::Slashes);
        }
        if name.chars().count() > NAME_CHARACTERS_MAX {
            return Err(NameError::TooLong);
        }
        Ok(Self(name.into_owned()))
    }

    /// Wraps a stored name without checking it.
    pub fn from_stored(name: String) -> Self {
        Self(name)
    }

    /// Returns the name with its leading slash, with the casing of its first version.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name in lower case, the key of its credential.
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Returns the lookup form of the name.
    pub fn lookup(&self) -> LookupName {
        LookupName::new(&self.0)
    }
}

impl fmt::Display for CredentialName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A requested name with its leading slash. It is not checked: a malformed name matches no credential. Clones share the text.
#[derive(Clone, Debug)]
pub struct LookupName {
    requested: Arc<str>,
    folded: Arc<str>,
}

impl LookupName {
    /// Prepends a missing slash and folds case.
    pub fn new(text: &str) -> Self {
        let requested: Arc<str> = with_leading_slash(text).into();
        let folded = if requested.bytes().any(|byte| byte.is_ascii_uppercase()) {
            requested.to_ascii_lowercase().into()
        } else {
            Arc::clone(&requested)
        };
        Self { requested, folded }
    }

    /// Returns the name in the caller's casing.
    pub fn requested(&self) -> &str {
        &self.requested
    }

    /// Returns the name in lower case. Two names refer to the same credential if their lower-case forms are equal.
    pub fn folded(&self) -> &str {
        &self.folded
    }

    /// Returns whether this is the name of a credential, in any casing.
    pub fn is(&self, name: &CredentialName) -> bool {
        self.folded.eq_ignore_ascii_case(name.as_str())
    }
}

impl PartialEq for LookupName {
    fn eq(&self, other: &Self) -> bool {
        self.folded == other.folded
    }
}

impl Eq for LookupName {}

/// The common prefix of all names below a path: in lower case, with a slash at both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPrefix(String);

impl PathPrefix {
    /// Adds missing slashes. The empty path is the prefix of every name.
    pub fn new(text: &str) -> Self {
        let mut prefix = with_leading_slash(text).to_ascii_lowercase();
        if !prefix.ends_with('/') {
            prefix.push('/');
        }
        Self(prefix)
    }

    /// Returns the prefix, in lower case, with a slash at both ends.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether a name is strictly below the path.
    pub(crate) fn contains(&self, name: &LookupName) -> bool {
        name.folded().starts_with(&self.0)
    }
}

/// The error of a malformed credential name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum NameError {
    #[error(
        "a credential name may contain only letters, digits and the characters _ - / . : ( ) [ ]"
    )]
    Character,
    #[error("a credential name is required")]
    Missing,
    #[error("a credential name must not end with a slash or contain two slashes in a row")]
    Slashes,
    #[error(
        "a credential name must have at most {NAME_CHARACTERS_MAX} characters, including its leading slash"
    )]
    TooLong,
}

fn with_leading_slash(text: &str) -> Cow<'_, str> {
    if text.starts_with('/') {
        text.into()
    } else {
        format!("/{text}").into()
    }
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || matches!(
            character,
            '_' | '-' | '/' | '.' | ':' | '(' | ')' | '[' | ']'
        )
}

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
    pub fn certificate() -> Self {
        Self(Self::CERTIFICATE.to_owned())
    }

    /// Returns the type's name, in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether values of this type are X.509 certificates, whose expiry, flags and signer the host reads.
    pub fn is_certificate(&self) -> bool {
        self.0 == Self::CERTIFICATE
    }

    /// Returns whether values of this type can only be set, not generated.
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

#[cfg(test)]
mod tests {
    use super::*;

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
