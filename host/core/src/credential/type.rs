//! Credential types: two that the host knows by itself, and as many more as there are generators configured.

use std::fmt;

/// The longest name of a credential type, in characters.
const TYPE_CHARACTERS_MAX: usize = 63;

/// The name of a credential type, in lower case.
///
/// It exists for any well-formed name; whether a server has such a type is for its configuration to say.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CredentialType(String);

impl CredentialType {
    /// The type whose value is one string that callers set.
    pub const VALUE: &str = "value";
    /// The type whose value is a free JSON object that callers set.
    pub const JSON: &str = "json";
    /// The type whose value is a password.
    pub const PASSWORD: &str = "password";
    /// The type of a user name with its password.
    pub const USER: &str = "user";
    /// The type of X.509 certificates, authorities included.
    pub const CERTIFICATE: &str = "certificate";
    /// The type of RSA key pairs.
    pub const RSA: &str = "rsa";
    /// The type of SSH key pairs.
    pub const SSH: &str = "ssh";

    /// The types of the specification, in its order: every one of them is settable.
    pub const SPECIFIED: [&str; 7] = [
        Self::VALUE,
        Self::JSON,
        Self::PASSWORD,
        Self::USER,
        Self::CERTIFICATE,
        Self::RSA,
        Self::SSH,
    ];

    /// Parses a type name of any casing.
    ///
    /// # Errors
    /// When it is not 1 to 63 of `a-z`, `0-9` and `-` that begin with a letter.
    pub fn parse(text: &str) -> Result<Self, TypeMalformed> {
        let name = text.to_ascii_lowercase();
        let well_formed = name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.len() <= TYPE_CHARACTERS_MAX
            && name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if well_formed {
            Ok(Self(name))
        } else {
            Err(TypeMalformed)
        }
    }

    /// The type of X.509 certificates.
    #[must_use]
    pub fn certificate() -> Self {
        Self(Self::CERTIFICATE.to_owned())
    }

    /// The type's name, in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether values of this type are X.509 certificates, of which the host itself reads expiry, flags and signer.
    #[must_use]
    pub fn is_certificate(&self) -> bool {
        self.0 == Self::CERTIFICATE
    }

    /// Whether values of this type can only be set, because no generator may make them.
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

/// A text that is no name of a credential type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a credential type must have 1 to {TYPE_CHARACTERS_MAX} characters of a-z, 0-9 and -, and start with a letter"
)]
pub struct TypeMalformed;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_casing_is_accepted_and_lowered() {
        assert_eq!(
            CredentialType::parse("PassWord").unwrap().as_str(),
            "password"
        );
    }

    #[test]
    fn malformed_names_are_refused() {
        let longest = "a".repeat(TYPE_CHARACTERS_MAX);
        assert!(CredentialType::parse(&longest).is_ok());
        let too_long = "a".repeat(TYPE_CHARACTERS_MAX + 1);
        for text in ["", "1a", "-a", "a_b", "a b", "ä", &too_long] {
            assert_eq!(CredentialType::parse(text), Err(TypeMalformed), "{text}");
        }
    }
}
