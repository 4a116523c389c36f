//! Credentials for registries, and authentication challenges: `Basic` (RFC 7617), or `Bearer` with a token from a token server (the
//! token authentication of the distribution project).

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use keywright_core::Secret;
use reqwest::{
    Url,
    header::{HeaderMap, WWW_AUTHENTICATE},
};
use serde::Deserialize;
use serde_json::Value;
use zeroize::Zeroizing;

use crate::{RegistryError, RegistryHost};

/// A user name, and a password or access token.
#[derive(Clone, Debug)]
pub struct Credentials {
    user: String,
    password: Secret,
}

impl Credentials {
    /// Creates credentials from a user and a password. The error is the rule that prevents sending them in an HTTP header.
    pub fn new(user: String, password: Secret) -> Result<Self, String> {
        let is_sendable = |text: &str| !text.chars().any(char::is_control);
        let is_user = !user.is_empty() && !user.contains(':') && is_sendable(&user);
        if !is_user || !is_sendable(password.expose()) {
            return Err(UNSENDABLE.to_owned());
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
struct DockerConfigFile {
    auths: BTreeMap<String, DockerConfigEntry>,
}

#[derive(Deserialize)]
struct DockerConfigEntry {
    #[serde(default)]
    auth: Option<String>,
}

impl DockerConfig {
    /// Parses the contents of a Docker configuration file. The error is the violated rule.
    pub fn read(text: &Secret) -> Result<Self, String> {
        let file: DockerConfigFile = keywright_json::read(text.expose()).map_err(|cause| {
            format!("must be a JSON object with the field `auths`, as written by `docker login`: {cause}")
        })?;
        let auths = file.auths.into_iter();
        let auths = auths.map(|(host, entry)| (host, entry.auth.map(Secret::new)));
        Ok(Self {
            auths: auths.collect(),
        })
    }

    /// Returns the credentials for a registry, if there are any. The error is the rule that its entry violates.
    pub fn credentials(&self, host: &RegistryHost) -> Result<Option<Credentials>, String> {
        let Some(Some(auth)) = self.auths.get(host.as_str()) else {
            return Ok(None);
        };
        let malformed = || format!("the entry for {host} must be a base64-encoded USER:PASSWORD");
        let decoded = BASE64_STANDARD.decode(auth.expose()).map(Zeroizing::new);
        let decoded = decoded.map_err(|_| malformed())?;
        let text = std::str::from_utf8(&decoded).map_err(|_| malformed())?;
        let (user, password) = text.split_once(':').ok_or_else(malformed)?;
        Credentials::new(user.to_owned(), Secret::new(password.to_owned())).map(Some)
    }
}

const UNSENDABLE: &str = "the user must not be empty or contain a colon; user and password must not contain control characters";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// The registry requires a user and a password.
    Basic,
    /// The registry requires a token from this URL.
    Bearer(Url),
}

impl Challenge {
    /// Returns the first supported challenge in the headers of a response.
    pub(crate) fn read(head: &HeaderMap) -> Result<Self, RegistryError> {
        let challenges = head.get_all(WWW_AUTHENTICATE).iter();
        let mut challenges = challenges.filter_map(|value| Self::parse(value.to_str().ok()?));
        challenges.next().ok_or_else(|| {
            RegistryError::challenge("expected Basic, or Bearer with the URL of a token server")
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let parameters = parameters(rest);
        let named = |name: &str| {
            let mut found = parameters.iter().filter(|(known, _)| known == name);
            found.next().map(|(_, value)| value.as_str())
        };
        let mut url = Url::parse(named("realm")?).ok()?;
        for name in ["service", "scope"] {
            if let Some(value) = named(name) {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        Some(Self::Bearer(url))
    }
}

/// Returns the value of the `Authorization` header for the response of a token server.
pub(crate) fn bearer(body: &[u8]) -> Result<Secret, RegistryError> {
    let response: Value = keywright_json::read_bytes(body).unwrap_or_default();
    let mut tokens = ["token", "access_token"].into_iter();
    let token = tokens.find_map(|name| response.get(name)?.as_str());
    let is_token = |token: &&str| token.bytes().all(|byte| byte.is_ascii_graphic());
    let missing = "the response of its token server contains no token";
    let token = token.filter(is_token);
    let token = token.ok_or_else(|| RegistryError::challenge(missing))?;
    Ok(Secret::new(format!("Bearer {token}")))
}

/// Parses the parameters of a challenge: `name=value` or `name="value"`, separated by commas (RFC 9110, section 11.2).
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut parameters = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches([',', ' ', '\t']).to_ascii_lowercase();
        let value;
        (value, rest) = if let Some(quoted) = after.trim_start().strip_prefix('"') {
            unquoted(quoted)
        } else {
            let (value, rest) = after.split_once(',').unwrap_or((after, ""));
            (value.trim().to_owned(), rest)
        };
        parameters.push((name, value));
    }
    parameters
}

/// Splits the text after an opening quote into the quoted string and the rest.
fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((index, letter)) = letters.next() {
        match letter {
            '"' => return (value, text.get(index + 1..).unwrap_or_default()),
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            _ => value.push(letter),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(values: &[&str]) -> Option<String> {
        let mut head = HeaderMap::new();
        for value in values {
            head.append(WWW_AUTHENTICATE, value.parse().unwrap());
        }
        match Challenge::read(&head).ok()? {
            Challenge::Basic => Some("basic".to_owned()),
            Challenge::Bearer(url) => Some(url.to_string()),
        }
    }

    #[test]
    fn first_supported_challenge_is_used() {
        let bearer = r#"Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a/b:pull""#;
        let expected =
            "https://auth.example/token?service=registry.example&scope=repository%3Aa%2Fb%3Apull";
        for (values, expected) in [
            (&[bearer][..], Some(expected)),
            (&["Negotiate", bearer], Some(expected)),
            (
                &[r#"bearer scope="a\"b,c=d" , realm=https://a/"#],
                Some("https://a/?scope=a%22b%2Cc%3Dd"),
            ),
            (&["Basic realm=\"x\"", bearer], Some("basic")),
            (&["BASIC"], Some("basic")),
            (&["Bearer"], None),
            (&["Bearer realm=\"nowhere\""], None),
            (&["Bearer realm=\"https://a"], Some("https://a/")),
            (&["Digest realm=\"x\""], None),
            (&[], None),
        ] {
            assert_eq!(challenge(values).as_deref(), expected, "{values:?}");
        }
    }

    #[test]
    fn the_field_token_or_access_token_has_no_control_characters() {
        for (body, expected) in [
            (r#"{"token": "abc"}"#, Some("Bearer abc")),
            (r#"{"access_token": "abc"}"#, Some("Bearer abc")),
            (r#"{"token": "a\r\nb"}"#, None),
            ("{}", None),
            ("", None),
        ] {
            let bearer = super::bearer(body.as_bytes()).ok();
            assert_eq!(bearer.as_ref().map(Secret::expose), expected, "{body}");
        }
    }

    fn read(auth: &str) -> Result<Option<Credentials>, String> {
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
        let malformed = "the entry for h:5000 must be a base64-encoded USER:PASSWORD";
        assert_eq!(read("hunter2").unwrap_err(), malformed);
        let without_colon = BASE64_STANDARD.encode("hunter2");
        assert_eq!(read(&without_colon).unwrap_err(), malformed);
        for text in ["", "[]", r#"{"auths": 1}"#, r#"{"credsStore": "x"}"#] {
            let refused = DockerConfig::read(&Secret::new(text.to_owned())).err();
            let refused = refused.unwrap_or_default();
            assert!(refused.starts_with("must be a JSON object"), "{text}");
        }
    }

    #[test]
    fn credentials_unfit_for_a_header_are_rejected() {
        for (user, password) in [("", "p"), ("a:b", "p"), ("a\n", "p"), ("a", "p\r")] {
            let refused = Credentials::new(user.to_owned(), Secret::new(password.to_owned()));
            assert_eq!(refused.err(), Some(UNSENDABLE.to_owned()));
        }
    }
}
