//! An identity provider that publishes its keys over HTTPS.

use std::time::Duration;

use async_trait::async_trait;
use jsonwebtoken::DecodingKey;
use reqwest::{Certificate, Client, Url, redirect::Policy};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    provider_keys::IdentityProvider,
    trusted_keys::{TrustedKey, TrustedKeys},
};

/// An identity provider that publishes a JWK set at `<url>/token_keys` and its issuer at
/// `<url>/.well-known/openid-configuration`.
pub struct HttpsIdentityProvider {
    client: Client,
    keys_url: Url,
    discovery_url: Url,
}

/// Where an identity provider is, and how it is known.
#[derive(Clone, Debug)]
pub struct HttpsIdentityProviderSettings {
    /// Its address, which must be `https`; its path is kept before the paths of the two documents.
    pub url: String,
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
        let document_url = |path: &str| {
            let url = format!("{}/{path}", settings.url.trim_end_matches('/'));
            Url::parse(&url)
                .ok()
                .filter(|url| url.scheme() == "https")
                .ok_or(IdentityProviderRefused::AddressMalformed)
        };
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
            keys_url: document_url("token_keys")?,
            discovery_url: document_url(".well-known/openid-configuration")?,
            client: builder.build().map_err(IdentityProviderRefused::Client)?,
        })
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
        serde_json::from_slice(&document).map_err(DocumentRefused::Malformed)
    }
}

#[async_trait]
impl IdentityProvider for HttpsIdentityProvider {
    async fn keys(&self) -> Result<TrustedKeys, Box<dyn std::error::Error + Send + Sync>> {
        let discovery: Discovery = self.fetch(&self.discovery_url).await?;
        let published: PublishedKeys = self.fetch(&self.keys_url).await?;
        let keys = published.usable();
        if keys.is_empty() {
            return Err(DocumentRefused::NoKey.into());
        }
        Ok(TrustedKeys::new(discovery.issuer, keys))
    }
}

/// Why a document of the provider is of no use.
#[derive(Debug, thiserror::Error)]
enum DocumentRefused {
    #[error("the document is malformed")]
    Malformed(#[source] serde_json::Error),
    #[error("none of the published keys is an RSA key for RS256 signatures")]
    NoKey,
    #[error("the document is larger than {DOCUMENT_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the provider did not answer as it should")]
    Unanswered(#[from] reqwest::Error),
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
}

#[derive(Deserialize)]
struct PublishedKeys {
    keys: Vec<PublishedKey>,
}

#[derive(Deserialize)]
struct PublishedKey {
    kty: Option<String>,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    key_use: Option<String>,
    n: Option<String>,
    e: Option<String>,
}

impl PublishedKeys {
    /// The RSA keys among them that may sign with RS256; others are passed over.
    fn usable(self) -> Vec<TrustedKey> {
        self.keys
            .into_iter()
            .filter_map(PublishedKey::trusted)
            .take(KEYS_MAX)
            .collect()
    }
}

impl PublishedKey {
    fn trusted(self) -> Option<TrustedKey> {
        let is_usable = self.kty.as_deref() == Some("RSA")
            && self.alg.is_none_or(|alg| alg == "RS256")
            && self.key_use.is_none_or(|key_use| key_use == "sig");
        if !is_usable {
            return None;
        }
        let key = DecodingKey::from_rsa_components(&self.n?, &self.e?).ok()?;
        Some(TrustedKey { id: self.kid, key })
    }
}

/// The largest document that is taken from a provider.
const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

/// How many keys of a provider are used.
const KEYS_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(url: &str, pem: Option<&str>) -> HttpsIdentityProviderSettings {
        HttpsIdentityProviderSettings {
            url: url.to_owned(),
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
    fn only_rsa_signature_keys_are_used() {
        let rsa = json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"});
        for (extra, is_used) in [
            (json!({}), true),
            (json!({"use": "sig", "alg": "RS256", "value": "PEM"}), true),
            (json!({"use": "enc"}), false),
            (json!({"alg": "RS512"}), false),
            (json!({"kty": "EC"}), false),
            (json!({"kty": "oct"}), false),
            (json!({"n": null}), false),
            (json!({"n": "!"}), false),
        ] {
            let mut key = rsa.clone();
            for (name, value) in extra.as_object().unwrap() {
                key[name] = value.clone();
            }
            let published: PublishedKeys = serde_json::from_value(json!({"keys": [key]})).unwrap();
            assert_eq!(!published.usable().is_empty(), is_used, "{extra}");
        }
    }
}
