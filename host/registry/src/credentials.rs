//! Credentials for registries.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use keywright_core::Secret;
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::RegistryHost;

/// A user name, and a password or access token.
#[derive(Clone, Debug)]
pub struct Credentials {
    user: String,
    password: Secret,
}

/// Why credentials were rejected.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsRefused {
    /// The Docker configuration file has a malformed entry for this registry.
    #[error("the entry for {0} must be a base64-encoded USER:PASSWORD")]
    AuthMalformed(RegistryHost),
    /// The Docker configuration file is malformed.
    #[error("must be a JSON object with the field `auths`, as written by `docker login`")]
    FileMalformed,
    /// The credentials can't be sent in an HTTP header.
    #[error(
        "the user must not be empty or contain a colon; user and password must not contain control characters"
    )]
    Malformed,
}

impl Credentials {
    /// Creates credentials from a user and a password.
    ///
    /// # Errors
    /// If they can't be sent in HTTP basic authentication (RFC 7617).
    pub fn new(user: String, password: Secret) -> Result<Self, CredentialsRefused> {
        let is_sendable = |text: &str| !text.chars().any(char::is_control);
        let is_user = !user.is_empty() && !user.contains(':') && is_sendable(&user);
        if !is_user || !is_sendable(password.expose()) {
            return Err(CredentialsRefused::Malformed);
        }
        Ok(Self { user, password })
    }

    /// Returns the value of the `Authorization` header.
    pub(crate) fn basic(&self) -> Secret {
        let plain = Zeroizing::new(format!("{}:{}", self.user, self.password.expose()));
        Secret::new(format!(
            "Basic {}",
            BASE64_STANDARD.encode(plain.as_bytes())
        ))
    }
}

/// A Docker configuration file (`~/.docker/config.json`), as `docker login` and other tools write it. Credential helpers are not
/// supported.
#[derive(Clone, Debug)]
pub struct DockerConfig {
    auths: BTreeMap<String, Option<Secret>>,
}

#[derive(Deserialize)]
struct File {
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    auth: Option<String>,
}

impl DockerConfig {
    /// Parses the contents of a Docker configuration file.
    pub fn read(text: &Secret) -> Result<Self, CredentialsRefused> {
        let file: File =
            keywright_json::read(text.expose()).map_err(|_| CredentialsRefused::FileMalformed)?;
        let auths = file.auths.into_iter();
        let auths = auths.map(|(host, entry)| (host, entry.auth.map(Secret::new)));
        Ok(Self {
            auths: auths.collect(),
        })
    }

    /// Returns the credentials for a registry, if there are any.
    ///
    /// # Errors
    /// If the entry for the registry is malformed.
    pub fn credentials(
        &self,
        host: &RegistryHost,
    ) -> Result<Option<Credentials>, CredentialsRefused> {
        let Some(Some(auth)) = self.auths.get(host.as_str()) else {
            return Ok(None);
        };
        let malformed = || CredentialsRefused::AuthMalformed(host.clone());
        let decoded = BASE64_STANDARD.decode(auth.expose()).map(Zeroizing::new);
        let decoded = decoded.map_err(|_| malformed())?;
        let text = std::str::from_utf8(&decoded).map_err(|_| malformed())?;
        let (user, password) = text.split_once(':').ok_or_else(malformed)?;
        Credentials::new(user.to_owned(), Secret::new(password.to_owned())).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(auth: &str) -> Result<Option<Credentials>, CredentialsRefused> {
        let text = format!(r#"{{"auths": {{"h:5000": {{"auth": "{auth}"}}, "empty": {{}}}}}}"#);
        let config = DockerConfig::read(&Secret::new(text))?;
        assert!(config.credentials(&"empty".parse().unwrap())?.is_none());
        assert!(config.credentials(&"other".parse().unwrap())?.is_none());
        config.credentials(&"h:5000".parse().unwrap())
    }

    #[test]
    fn docker_config_has_credentials_by_host() {
        let credentials = read(&BASE64_STANDARD.encode("ada:pass:word"))
            .unwrap()
            .unwrap();
        let expected = format!("Basic {}", BASE64_STANDARD.encode("ada:pass:word"));
        assert_eq!(credentials.basic().expose(), expected);
        assert!(!format!("{credentials:?}").contains("pass:word"));
    }

    #[test]
    fn malformed_docker_config_is_rejected() {
        let host = "h:5000".parse().unwrap();
        let malformed = CredentialsRefused::AuthMalformed(host);
        assert_eq!(read("hunter2").unwrap_err(), malformed);
        let without_colon = BASE64_STANDARD.encode("hunter2");
        assert_eq!(read(&without_colon).unwrap_err(), malformed);
        for text in ["", "[]", r#"{"auths": 1}"#, r#"{"credsStore": "x"}"#] {
            let refused = DockerConfig::read(&Secret::new(text.to_owned())).err();
            assert_eq!(refused, Some(CredentialsRefused::FileMalformed), "{text}");
        }
    }

    #[test]
    fn credentials_unfit_for_a_header_are_rejected() {
        for (user, password) in [("", "p"), ("a:b", "p"), ("a\n", "p"), ("a", "p\r")] {
            let refused = Credentials::new(user.to_owned(), Secret::new(password.to_owned()));
            assert_eq!(refused.err(), Some(CredentialsRefused::Malformed));
        }
    }
}
