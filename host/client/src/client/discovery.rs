//! The endpoints of an identity provider (OIDC Discovery 1.0; RFC 8414).

use reqwest::Url;
use serde::Deserialize;

use super::transport;

/// The endpoints of an identity provider, and the variants of the protocol that it supports.
pub(super) struct Endpoints {
    /// The provider's address, as published by the server.
    pub(super) provider: String,
    /// The issuer, if the provider publishes a discovery document.
    pub(super) issuer: Option<String>,
    pub(super) token: String,
    pub(super) authorization: Option<String>,
    pub(super) device_authorization: Option<String>,
    pub(super) revocation: Revocation,
    /// The methods to send a client's secret, in the order of attempts.
    pub(super) secret_methods: Vec<SecretMethod>,
    /// Whether the provider implements UAA's variant of OAuth 2.0, in which public clients send an empty secret.
    pub(super) is_uaa: bool,
    /// Whether each authorization response names the issuer (RFC 9207).
    pub(super) names_issuer: bool,
    /// Whether the provider's list of PKCE challenge methods lacks S256.
    pub(super) lacks_s256: bool,
}

/// How a client sends its secret to the token endpoint (RFC 6749, section 2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecretMethod {
    /// In the `Authorization` header: `client_secret_basic`.
    Basic,
    /// In the form: `client_secret_post`.
    Post,
}

/// How to revoke a login.
pub(super) enum Revocation {
    /// By `DELETE` on this address followed by the token's id, as in UAA.
    ByTokenId(String),
    /// By sending the token to this endpoint (RFC 7009).
    ByToken(String),
    /// The provider does not support revocation.
    Unsupported,
}

impl Endpoints {
    /// Returns UAA's endpoints, for a provider without a usable discovery document.
    pub(super) fn of_uaa(url: &str) -> Self {
        Self {
            provider: url.to_owned(),
            issuer: None,
            token: format!("{url}/oauth/token"),
            authorization: None,
            device_authorization: None,
            revocation: Revocation::ByTokenId(format!("{url}/oauth/token/revoke")),
            secret_methods: vec![SecretMethod::Post],
            is_uaa: true,
            names_issuer: false,
            lacks_s256: false,
        }
    }
}

/// The fields of a discovery document that a login needs.
#[derive(Deserialize)]
pub(super) struct Document {
    issuer: String,
    token_endpoint: Option<String>,
    authorization_endpoint: Option<String>,
    device_authorization_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl Document {
    /// Checks the document of the provider at this address, and returns its endpoints.
    pub(super) fn endpoints(self, url: &str) -> Result<Endpoints, String> {
        let uaa_token_endpoint = format!("{url}/oauth/token");
        let is_issuer = transport::address(&self.issuer).is_ok_and(|issuer| issuer.as_str() == url);
        let is_uaa = self.issuer == uaa_token_endpoint;
        if !is_issuer && !is_uaa {
            // The configured issuer of a UAA can differ from its address. Its endpoints are fixed, so its document is not needed.
            if self.token_endpoint.as_ref() == Some(&uaa_token_endpoint) {
                return Ok(Endpoints::of_uaa(url));
            }
            return Err(format!(
                "the issuer is {:?}, but the server names {url:?} as its identity provider",
                self.issuer
            ));
        }
        let secret_methods = if is_uaa {
            vec![SecretMethod::Post]
        } else {
            secret_methods(self.token_endpoint_auth_methods_supported.as_deref())
        };
        let token = self.token_endpoint.ok_or("token_endpoint is missing")?;
        let revocation = match self.revocation_endpoint {
            Some(endpoint) => Revocation::ByToken(https_url("revocation_endpoint", endpoint)?),
            None if token == uaa_token_endpoint => Revocation::ByTokenId(format!("{token}/revoke")),
            None => Revocation::Unsupported,
        };
        let optional = |field, endpoint: Option<String>| {
            endpoint
                .map(|endpoint| https_url(field, endpoint))
                .transpose()
        };
        Ok(Endpoints {
            provider: url.to_owned(),
            token: https_url("token_endpoint", token)?,
            authorization: optional("authorization_endpoint", self.authorization_endpoint)?,
            device_authorization: optional(
                "device_authorization_endpoint",
                self.device_authorization_endpoint,
            )?,
            revocation,
            secret_methods,
            is_uaa,
            names_issuer: self.authorization_response_iss_parameter_supported,
            lacks_s256: self
                .code_challenge_methods_supported
                .is_some_and(|methods| !methods.iter().any(|method| method == "S256")),
            issuer: Some(self.issuer),
        })
    }
}

/// Returns the supported methods to send a secret. `client_secret_basic` is the default (RFC 8414, section 2).
fn secret_methods(supported: Option<&[String]>) -> Vec<SecretMethod> {
    let Some(supported) = supported else {
        return vec![SecretMethod::Basic];
    };
    [
        ("client_secret_basic", SecretMethod::Basic),
        ("client_secret_post", SecretMethod::Post),
    ]
    .into_iter()
    .filter(|(name, _)| supported.iter().any(|method| method == name))
    .map(|(_, method)| method)
    .collect()
}

/// Returns the addresses at which a provider may publish its document.
pub(super) fn document_urls(url: &str) -> Vec<String> {
    let mut urls = vec![format!("{url}/.well-known/openid-configuration")];
    if let Ok(mut inserted) = Url::parse(url) {
        let path = inserted.path().trim_end_matches('/');
        let path = format!("/.well-known/oauth-authorization-server{path}");
        inserted.set_path(&path);
        urls.push(inserted.into());
    }
    urls
}

fn https_url(field: &str, endpoint: String) -> Result<String, String> {
    match parse_https(&endpoint) {
        Some(url) if url.fragment().is_none() => Ok(endpoint),
        _ => Err(not_https(field)),
    }
}

/// Parses and normalizes the address of a page that the user opens.
pub(super) fn page_url(field: &str, address: &str) -> Result<String, String> {
    let url = parse_https(address).ok_or_else(|| not_https(field))?;
    Ok(url.into())
}

fn parse_https(address: &str) -> Option<Url> {
    let url = Url::parse(address).ok()?;
    let names_user = !url.username().is_empty() || url.password().is_some();
    (url.scheme() == "https" && !names_user).then_some(url)
}

fn not_https(field: &str) -> String {
    format!("{field} is not an https address")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const URL: &str = "https://id.example/realms/a";

    fn endpoints(changes: &Value) -> Result<Endpoints, String> {
        let mut document = json!({"issuer": URL, "token_endpoint": format!("{URL}/token")});
        let fields = document.as_object_mut().unwrap();
        fields.extend(changes.as_object().unwrap().clone());
        let document: Document = keywright_json::read(&document.to_string()).unwrap();
        document.endpoints(URL)
    }

    #[test]
    fn a_document_of_another_issuer_is_refused() {
        for (issuer, is_accepted) in [
            (URL, true),
            ("https://id.example/realms/a/", true),
            ("https://ID.example:443/realms/a", true),
            ("https://id.example/realms/a/oauth/token", true),
            ("https://id.example/realms/b", false),
            ("https://id.example", false),
            ("http://id.example/realms/a", false),
            ("https://evil.example/realms/a", false),
            ("", false),
        ] {
            let read = endpoints(&json!({"issuer": issuer}));
            assert_eq!(read.is_ok(), is_accepted, "{issuer}");
        }
    }

    #[test]
    fn a_uaa_with_another_issuer_is_used_without_its_document() {
        let read = endpoints(&json!({
            "issuer": "https://public.example/oauth/token",
            "token_endpoint": format!("{URL}/oauth/token"),
            "authorization_endpoint": "https://public.example/oauth/authorize",
        }))
        .unwrap();
        assert!(read.is_uaa && read.issuer.is_none());
        assert_eq!(read.token, format!("{URL}/oauth/token"));
        assert!(read.authorization.is_none());
    }

    #[test]
    fn endpoints_must_be_https_addresses() {
        for field in [
            "token_endpoint",
            "authorization_endpoint",
            "device_authorization_endpoint",
            "revocation_endpoint",
        ] {
            for address in [
                "http://id.example/x",
                "id.example",
                "https://user:hunter2@id.example/x",
                "https://id.example/x#y",
                "file:///etc/passwd",
                "",
            ] {
                let refused = endpoints(&json!({field: address})).err().unwrap();
                assert_eq!(refused, format!("{field} is not an https address"));
            }
            assert!(endpoints(&json!({field: "https://other.example/x?y=z"})).is_ok());
        }
        let refused = endpoints(&json!({"token_endpoint": null})).err();
        assert_eq!(refused.as_deref(), Some("token_endpoint is missing"));
    }
}
