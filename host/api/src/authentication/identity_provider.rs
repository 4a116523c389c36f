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

/// An identity provider that says at `<url>/.well-known/openid-configuration` what its tokens name as their issuer, and
/// where its keys are (OIDC Discovery 1.0). One that does not say where has them at `<url>/token_keys`, as UAA
/// does.
///
/// The address of the keys may be on another host, as it is with some providers: what was said over verified TLS by whom
/// the operator trusts with everybody's identity is believed. It must be https too, and its certificate is held against
/// the same authorities. Redirections are not followed.
pub struct HttpsIdentityProvider {
    client: Client,
    url: String,
    public_url: Option<String>,
    discovery_url: Url,
    /// The published keys that could not be used when it was last asked, so that each is logged once.
    passed_over: Mutex<Vec<String>>,
}

/// Where an identity provider is, and how it is known.
#[derive(Clone, Debug)]
pub struct HttpsIdentityProviderSettings {
    /// Its address, which must be `https` and not end with a slash; its path is kept before the paths of the two documents.
    pub url: String,
    /// Its address as its own documents have it, without a slash at the end, when that is another. Keys that it names below
    /// that one are asked for below `url`.
    pub public_url: Option<String>,
    /// Certificates in PEM that alone are trusted to vouch for it; without them, those that the system trusts.
    pub trusted_certificates_pem: Option<String>,
    /// How long a whole answer may take: see [`HttpsIdentityProviderSettings::TIMEOUT`].
    pub timeout: Duration,
}

/// An identity provider that can't be used as it is configured.
#[derive(Debug, thiserror::Error)]
pub enum IdentityProviderRefused {
    /// The address is none.
    #[error("the address of the identity provider must be an https address")]
    AddressMalformed,
    /// The trusted certificates can't be read.
    #[error("the certificates trusted for the identity provider are not PEM certificates")]
    CertificatesMalformed(#[source] reqwest::Error),
    /// There is no certificate among them.
    #[error("there is no certificate among those trusted for the identity provider")]
    CertificatesMissing,
    /// The client could not be made.
    #[error("the client for the identity provider could not be made")]
    Client(#[source] reqwest::Error),
}

impl HttpsIdentityProviderSettings {
    /// The timeout where nothing else is configured.
    pub const TIMEOUT: Duration = Duration::from_secs(5);
}

impl HttpsIdentityProvider {
    /// Makes the client; the provider is asked for nothing yet.
    ///
    /// Installs the process's TLS provider (aws-lc) if there is none so far.
    ///
    /// # Errors
    /// When the settings can't be used.
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

    /// Where the keys are.
    fn keys_url(&self, discovery: &Discovery) -> Result<Url, DocumentRefused> {
        let fallback = || format!("{}/{KEYS_PATH}", self.url);
        let address = match &discovery.jwks_uri {
            Some(named) => self.as_reached(named),
            None => fallback(),
        };
        https_url(&address).ok_or(DocumentRefused::KeysAddressMalformed)
    }

    /// An address of the provider's documents, as this server reaches it.
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

    /// Logs what is not used of the published keys, each once for as long as it is published.
    fn log_passed_over(&self, passed_over: Vec<String>) {
        let mut logged = self
            .passed_over
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for key in passed_over.iter().filter(|key| !logged.contains(key)) {
            tracing::warn!(
                key,
                "a key that the identity provider publishes is not used"
            );
        }
        *logged = passed_over;
    }

    async fn fetch<T: DeserializeOwned>(&self, url: &Url) -> Result<T, DocumentRefused> {
        let mut response = self
            .client
            .get(url.clone())
            .send()
            .await?
            .error_for_status()?;
        let mut document = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if document.len() + chunk.len() > DOCUMENT_BYTES_MAX {
                return Err(DocumentRefused::TooLarge);
            }
            document.extend_from_slice(&chunk);
        }
        keywright_json::read_bytes(&document).map_err(DocumentRefused::Malformed)
    }
}

#[async_trait]
impl IdentityProvider for HttpsIdentityProvider {
    async fn keys(&self) -> Result<TrustedKeys, Box<dyn std::error::Error + Send + Sync>> {
        let discovery: Discovery = self.fetch(&self.discovery_url).await?;
        if discovery.issuer.is_empty() {
            return Err(DocumentRefused::NoIssuer.into());
        }
        let keys_url = self.keys_url(&discovery)?;
        let published = self.fetch::<PublishedKeys>(&keys_url).await?.usable();
        self.log_passed_over(published.passed_over);
        if published.keys.is_empty() {
            return Err(DocumentRefused::NoKey.into());
        }
        Ok(TrustedKeys::new(discovery.issuer, published.keys))
    }
}

/// Why a document of the provider is of no use.
#[derive(Debug, thiserror::Error)]
enum DocumentRefused {
    #[error("the document is malformed")]
    Malformed(#[source] keywright_json::JsonError),
    #[error("the address of the keys, jwks_uri in the discovery document, is no https address")]
    KeysAddressMalformed,
    #[error("the discovery document has an empty issuer")]
    NoIssuer,
    #[error("none of the published keys is an RSA key for RS256 or a P-256 key for ES256")]
    NoKey,
    #[error("the document is larger than {DOCUMENT_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the provider did not answer as it should")]
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

/// Where a provider says what it is, below its own address.
const DISCOVERY_PATH: &str = ".well-known/openid-configuration";

/// Where UAA has its keys, below its own address.
const KEYS_PATH: &str = "token_keys";

/// The largest document that is taken from a provider.
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
    fn only_https_addresses_are_taken() {
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
    fn keys_are_where_the_provider_says_and_below_its_own_address_when_it_does_not() {
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
