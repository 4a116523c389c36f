//! An identity provider that publishes its keys over HTTPS.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use reqwest::{Certificate, Client, Url, redirect::Policy};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    provider_keys::IdentityProvider, published_keys::PublishedKeys, trusted_keys::TrustedKeys,
};

/// An identity provider that publishes its issuer and the URL of its keys at `<url>/.well-known/openid-configuration` (OIDC
/// Discovery 1.0). The keys default to `<url>/token_keys`, as for UAA.
///
/// The keys may be on another host, as for some providers, because the discovery document comes from a trusted provider over
/// verified TLS. Their URL must also be https, and its certificate is verified with the same CAs. Redirects are not followed.
pub struct HttpsIdentityProvider {
    client: Client,
    url: String,
    public_url: Option<String>,
    discovery_url: Url,
    /// The unusable keys in the last response, so that each is logged once.
    passed_over: Mutex<Vec<String>>,
}

/// The location of an identity provider, and its trusted CAs.
#[derive(Clone, Debug)]
pub struct HttpsIdentityProviderSettings {
    /// The URL, which must be https without a trailing slash; its path is the prefix of both documents.
    pub url: String,
    /// The URL in the provider's own documents, without a trailing slash, if it differs. URLs of keys below it are requested below
    /// `url`.
    pub public_url: Option<String>,
    /// The trusted CA certificates, PEM. Defaults to those of the system.
    pub trusted_certificates_pem: Option<String>,
    /// The timeout of a whole response: see [`HttpsIdentityProviderSettings::TIMEOUT`].
    pub timeout: Duration,
}

/// An invalid configuration of an identity provider.
#[derive(Debug, thiserror::Error)]
pub enum IdentityProviderRefused {
    /// The URL is not an https URL.
    #[error("the URL of the identity provider must be an https URL")]
    AddressMalformed,
    /// The trusted certificates are malformed.
    #[error("malformed PEM in the certificates trusted for the identity provider")]
    CertificatesMalformed(#[source] reqwest::Error),
    /// There are no trusted certificates.
    #[error("no PEM certificates in the file of certificates trusted for the identity provider")]
    CertificatesMissing,
    /// The client could not be created.
    #[error("could not create the client for the identity provider")]
    Client(#[source] reqwest::Error),
}

impl HttpsIdentityProviderSettings {
    /// The default timeout.
    pub const TIMEOUT: Duration = Duration::from_secs(5);
}

impl HttpsIdentityProvider {
    /// Creates the client, without sending a request.
    ///
    /// Installs the process's TLS provider (aws-lc), unless there is one.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn new(settings: &HttpsIdentityProviderSettings) -> Result<Self, IdentityProviderRefused> {
        let url = settings.url.clone();
        let discovery_url = https_url(&format!("{url}/{DISCOVERY_PATH}"))
            .ok_or(IdentityProviderRefused::AddressMalformed)?;
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let mut builder = Client::builder()
            .https_only(true)
            .redirect(Policy::none())
            .timeout(settings.timeout);
        if let Some(pem) = &settings.trusted_certificates_pem {
            let certificates = Certificate::from_pem_bundle(pem.as_bytes())
                .map_err(IdentityProviderRefused::CertificatesMalformed)?;
            if certificates.is_empty() {
                return Err(IdentityProviderRefused::CertificatesMissing);
            }
            builder = builder.tls_certs_only(certificates);
        }
        Ok(Self {
            client: builder.build().map_err(IdentityProviderRefused::Client)?,
            url,
            public_url: settings.public_url.clone(),
            discovery_url,
            passed_over: Mutex::default(),
        })
    }

    /// Returns the URL of the keys.
    fn keys_url(&self, discovery: &Discovery) -> Result<Url, DocumentError> {
        let fallback = || format!("{}/{KEYS_PATH}", self.url);
        let address = match &discovery.jwks_uri {
            Some(named) => self.as_reached(named),
            None => fallback(),
        };
        https_url(&address).ok_or(DocumentError::KeysAddressMalformed)
    }

    /// Returns the URL for this server of a URL in the provider's documents.
    fn as_reached(&self, address: &str) -> String {
        let public_url = self.public_url.as_deref();
        let below = public_url
            .and_then(|public_url| address.strip_prefix(public_url))
            .filter(|below| below.starts_with('/'));
        match below {
            Some(below) => format!("{}{below}", self.url),
            None => address.to_owned(),
        }
    }

    /// Logs unusable keys, each once while it is published.
    fn log_passed_over(&self, passed_over: Vec<String>) {
        let mut logged = self
            .passed_over
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for key in passed_over.iter().filter(|key| !logged.contains(key)) {
            tracing::warn!(key, "ignored a key published by the identity provider");
        }
        *logged = passed_over;
    }

    async fn fetch<T: DeserializeOwned>(&self, url: &Url) -> Result<T, DocumentError> {
        let mut response = self
            .client
            .get(url.clone())
            .send()
            .await?
            .error_for_status()?;
        let mut document = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if document.len() + chunk.len() > DOCUMENT_BYTES_MAX {
                return Err(DocumentError::TooLarge);
            }
            document.extend_from_slice(&chunk);
        }
        keywright_json::read_bytes(&document).map_err(DocumentError::Malformed)
    }
}

#[async_trait]
impl IdentityProvider for HttpsIdentityProvider {
    async fn keys(&self) -> Result<TrustedKeys, Box<dyn std::error::Error + Send + Sync>> {
        let discovery: Discovery = self.fetch(&self.discovery_url).await?;
        if discovery.issuer.is_empty() {
            return Err(DocumentError::NoIssuer.into());
        }
        let keys_url = self.keys_url(&discovery)?;
        let published = self.fetch::<PublishedKeys>(&keys_url).await?.usable();
        self.log_passed_over(published.passed_over);
        if published.keys.is_empty() {
            return Err(DocumentError::NoKey.into());
        }
        Ok(TrustedKeys::new(discovery.issuer, published.keys))
    }
}

/// A document of the provider is invalid.
#[derive(Debug, thiserror::Error)]
enum DocumentError {
    #[error("the document is malformed")]
    Malformed(#[source] keywright_json::JsonError),
    #[error("jwks_uri in the discovery document must be an https URL")]
    KeysAddressMalformed,
    #[error("the discovery document has an empty issuer")]
    NoIssuer,
    #[error("there is no RSA key for RS256 or P-256 key for ES256 among the published keys")]
    NoKey,
    #[error("the document is larger than {DOCUMENT_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the request to the provider failed")]
    Unanswered(#[from] reqwest::Error),
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: Option<String>,
}

fn https_url(address: &str) -> Option<Url> {
    Url::parse(address)
        .ok()
        .filter(|url| url.scheme() == "https")
}

/// The path of the discovery document, relative to the provider's URL.
const DISCOVERY_PATH: &str = ".well-known/openid-configuration";

/// The path of UAA's keys, relative to its URL.
const KEYS_PATH: &str = "token_keys";

/// Maximum size of a provider's document.
const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str, pem: Option<&str>) -> HttpsIdentityProviderSettings {
        HttpsIdentityProviderSettings {
            url: url.to_owned(),
            public_url: None,
            trusted_certificates_pem: pem.map(str::to_owned),
            timeout: HttpsIdentityProviderSettings::TIMEOUT,
        }
    }

    #[test]
    fn only_https_urls_are_accepted() {
        for url in ["http://uaa.example", "", "uaa.example", "ftp://uaa.example"] {
            assert!(
                matches!(
                    HttpsIdentityProvider::new(&settings(url, None)),
                    Err(IdentityProviderRefused::AddressMalformed)
                ),
                "{url}"
            );
        }
    }

    #[test]
    fn trusted_certificates_must_be_certificates() {
        for pem in [
            "",
            "x",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            assert!(
                HttpsIdentityProvider::new(&settings("https://uaa.example", Some(pem))).is_err(),
                "{pem}"
            );
        }
    }

    #[test]
    fn keys_are_at_the_discovered_or_the_default_url() {
        let provider = HttpsIdentityProvider::new(&HttpsIdentityProviderSettings {
            public_url: Some("https://login.example/uaa".to_owned()),
            ..settings("https://uaa.internal:8443/uaa", None)
        })
        .unwrap();
        for (named, url) in [
            (None, Some("https://uaa.internal:8443/uaa/token_keys")),
            (
                Some("https://login.example/uaa/token_keys"),
                Some("https://uaa.internal:8443/uaa/token_keys"),
            ),
            (
                Some("https://login.example/uaa/a/jwks?x=1"),
                Some("https://uaa.internal:8443/uaa/a/jwks?x=1"),
            ),
            (
                Some("https://login.example/uaab/keys"),
                Some("https://login.example/uaab/keys"),
            ),
            (
                Some("https://keys.example/set"),
                Some("https://keys.example/set"),
            ),
            (Some("http://login.example/uaa/token_keys"), None),
            (Some("http://keys.example/set"), None),
            (Some("file:///etc/passwd"), None),
            (Some("/token_keys"), None),
            (Some(""), None),
        ] {
            let discovery = Discovery {
                issuer: "issuer".to_owned(),
                jwks_uri: named.map(str::to_owned),
            };
            let found = provider.keys_url(&discovery).ok();
            assert_eq!(found.as_ref().map(Url::as_str), url, "{named:?}");
        }
    }
}
