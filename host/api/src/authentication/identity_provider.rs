//! An identity provider that publishes its keys over HTTPS, as a key set (RFC 7517, section 5).

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use reqwest::{Certificate, Client, Url, redirect::Policy};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    trusted_keys::{TrustedKey, TrustedKeys},
    verification_key::{SignatureAlgorithm, VerificationKey, VerificationKeyError},
};

/// A source of published keys.
#[async_trait]
pub(super) trait IdentityProvider: Send + Sync {
    /// Returns the current keys and the issuer of tokens.
    async fn keys(&self) -> Result<TrustedKeys, Box<dyn std::error::Error + Send + Sync>>;
}

/// An identity provider that publishes its issuer and the URL of its keys at `<url>/.well-known/openid-configuration` (OIDC
/// Discovery 1.0). The URL of the keys defaults to `<url>/token_keys`, as in UAA.
///
/// The keys may be on another host, because the discovery document comes from a trusted provider over verified TLS. The URL of
/// the keys must also be https, and that host's certificate is verified with the same CAs. Redirects are not followed.
pub struct HttpsIdentityProvider {
    client: Client,
    url: String,
    public_url: Option<String>,
    discovery_url: Url,
    /// Log messages about ignored keys in the last response, to log each only once.
    ignored: Mutex<Vec<String>>,
}

/// The URLs of an identity provider, and the CAs trusted for it.
#[derive(Clone, Debug)]
pub struct HttpsIdentityProviderSettings {
    /// The https URL, without a trailing slash. The discovery document and, by default, the keys are below it.
    pub url: String,
    /// The URL in the provider's own documents, without a trailing slash, if it differs from `url`. If the URL of the keys is
    /// below it, this prefix is replaced by `url`.
    pub public_url: Option<String>,
    /// The trusted CA certificates, in PEM. Defaults to the system's trusted CAs.
    pub trusted_certificates_pem: Option<String>,
    /// The timeout of each request, including its response body. See [`HttpsIdentityProviderSettings::TIMEOUT`].
    pub timeout: Duration,
}

/// An invalid configuration of an identity provider.
#[derive(Debug, thiserror::Error)]
pub enum IdentityProviderError {
    /// The URL is not an https URL.
    #[error("the URL of the identity provider must be an https URL")]
    AddressMalformed,
    /// The trusted certificates are malformed.
    #[error("malformed PEM in the certificates trusted for the identity provider")]
    CertificatesMalformed(#[source] reqwest::Error),
    /// There are no trusted certificates.
    #[error(
        "the file of certificates trusted for the identity provider contains no PEM certificate"
    )]
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
    /// Installs aws-lc as the process's TLS provider, unless one is already installed.
    pub fn new(settings: &HttpsIdentityProviderSettings) -> Result<Self, IdentityProviderError> {
        let url = settings.url.clone();
        let discovery_url = https_url(&format!("{url}/{DISCOVERY_PATH}"))
            .ok_or(IdentityProviderError::AddressMalformed)?;
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let mut builder = Client::builder()
            .https_only(true)
            .redirect(Policy::none())
            .timeout(settings.timeout);
        if let Some(pem) = &settings.trusted_certificates_pem {
            let certificates = Certificate::from_pem_bundle(pem.as_bytes())
                .map_err(IdentityProviderError::CertificatesMalformed)?;
            if certificates.is_empty() {
                return Err(IdentityProviderError::CertificatesMissing);
            }
            builder = builder.tls_certs_only(certificates);
        }
        Ok(Self {
            client: builder.build().map_err(IdentityProviderError::Client)?,
            url,
            public_url: settings.public_url.clone(),
            discovery_url,
            ignored: Mutex::default(),
        })
    }

    /// Returns the URL of the keys: `jwks_uri`, or the default.
    fn keys_url(&self, discovery: &Discovery) -> Result<Url, DocumentError> {
        let fallback = || format!("{}/{KEYS_PATH}", self.url);
        let address = match &discovery.jwks_uri {
            Some(named) => self.as_reached(named),
            None => fallback(),
        };
        https_url(&address).ok_or(DocumentError::KeysAddressMalformed)
    }

    /// Converts a URL in the provider's documents to the URL at which this server reaches it.
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

    /// Logs ignored keys, except keys that were already ignored in the previous response.
    fn log_ignored(&self, ignored: Vec<String>) {
        let mut logged = self.ignored.lock().unwrap_or_else(PoisonError::into_inner);
        for key in ignored.iter().filter(|key| !logged.contains(key)) {
            tracing::warn!(key, "ignored a key published by the identity provider");
        }
        *logged = ignored;
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
        self.log_ignored(published.ignored);
        if published.keys.is_empty() {
            return Err(DocumentError::NoKey.into());
        }
        Ok(TrustedKeys::new(discovery.issuer, published.keys))
    }
}

/// A document of the provider is invalid or could not be fetched.
#[derive(Debug, thiserror::Error)]
enum DocumentError {
    #[error("the document is malformed")]
    Malformed(#[source] keywright_json::JsonError),
    #[error("jwks_uri in the discovery document must be an https URL")]
    KeysAddressMalformed,
    #[error("the discovery document has an empty issuer")]
    NoIssuer,
    #[error("the key set has neither an RSA key for RS256 nor a P-256 key for ES256")]
    NoKey,
    #[error("the document is larger than {DOCUMENT_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the request to the provider failed")]
    RequestFailed(#[from] reqwest::Error),
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

/// A key set as it was published.
#[derive(Deserialize)]
pub(super) struct PublishedKeys {
    keys: Vec<Value>,
}

/// The usable keys of a key set.
pub(super) struct UsableKeys {
    /// The keys to verify tokens with.
    pub(super) keys: Vec<TrustedKey>,
    /// Log messages about keys that are for tokens but can't be used.
    pub(super) ignored: Vec<String>,
}

#[derive(Deserialize)]
struct PublishedKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    key_use: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl PublishedKeys {
    /// Returns the RSA keys for RS256 and the P-256 keys for ES256. Keys of other types and for other uses are ignored silently:
    /// the provider publishes them for other services.
    pub(super) fn usable(self) -> UsableKeys {
        let mut usable = UsableKeys {
            keys: Vec::new(),
            ignored: Vec::new(),
        };
        for published in self.keys {
            let Ok(published) = serde_json::from_value::<PublishedKey>(published) else {
                usable.ignore(None, "does not conform to RFC 7517");
                continue;
            };
            if !published.is_for_tokens() {
                continue;
            }
            match published.verification_key() {
                Ok(_) if usable.keys.len() == KEYS_MAX => {
                    usable.ignore(published.kid.as_deref(), "too many keys");
                }
                Ok(key) => usable.keys.push(TrustedKey {
                    id: published.kid,
                    key,
                }),
                Err(VerificationKeyError::LengthRefused) => usable.ignore(
                    published.kid.as_deref(),
                    "length of the modulus must be between 2048 and 8192 bits",
                ),
                Err(VerificationKeyError::Malformed) => {
                    usable.ignore(published.kid.as_deref(), "malformed public key");
                }
            }
        }
        usable
    }
}

impl UsableKeys {
    fn ignore(&mut self, key_id: Option<&str>, reason: &str) {
        let key_id: String = key_id
            .unwrap_or("without an id")
            .chars()
            .take(LOGGED_ID_CHARACTERS_MAX)
            .collect();
        self.ignored.push(format!("{key_id}: {reason}"));
    }
}

impl PublishedKey {
    /// Returns the algorithm for the key's type, without checking `alg`.
    fn algorithm(&self) -> Option<SignatureAlgorithm> {
        match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => Some(SignatureAlgorithm::Rs256),
            ("EC", Some("P-256")) => Some(SignatureAlgorithm::Es256),
            _ => None,
        }
    }

    /// Returns whether the key may verify tokens. `alg`, `use` and `key_ops` are optional, but must match.
    fn is_for_tokens(&self) -> bool {
        let agrees = |algorithm: SignatureAlgorithm| {
            let declared = self.alg.as_deref();
            declared.is_none_or(|declared| declared == algorithm.name())
        };
        let key_use = self.key_use.as_deref();
        let operations = self.key_ops.as_ref();
        self.algorithm().is_some_and(agrees)
            && key_use.is_none_or(|key_use| key_use == "sig")
            && operations.is_none_or(|names| names.iter().any(|name| name == "verify"))
    }

    fn verification_key(&self) -> Result<VerificationKey, VerificationKeyError> {
        fn field(value: Option<&String>) -> Result<&str, VerificationKeyError> {
            value
                .map(String::as_str)
                .ok_or(VerificationKeyError::Malformed)
        }
        match self.algorithm() {
            Some(SignatureAlgorithm::Rs256) => {
                VerificationKey::of_rsa_components(field(self.n.as_ref())?, field(self.e.as_ref())?)
            }
            Some(SignatureAlgorithm::Es256) => VerificationKey::of_p256_coordinates(
                field(self.x.as_ref())?,
                field(self.y.as_ref())?,
            ),
            None => Err(VerificationKeyError::Malformed),
        }
    }
}

/// Maximum number of keys used from a provider.
const KEYS_MAX: usize = 32;

/// Maximum length of a key's id in the log.
const LOGGED_ID_CHARACTERS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    use serde_json::json;

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
                    Err(IdentityProviderError::AddressMalformed)
                ),
                "{url}"
            );
        }
    }

    #[test]
    fn invalid_trusted_certificates_are_rejected() {
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

    fn usable(keys: &Value) -> UsableKeys {
        let published: PublishedKeys = serde_json::from_value(json!({ "keys": keys })).unwrap();
        published.usable()
    }

    fn changed(key: &Value, changes: &Value) -> Value {
        let mut key = key.clone();
        for (name, value) in changes.as_object().unwrap() {
            key[name] = value.clone();
        }
        key
    }

    fn rsa_key(bytes: usize) -> Value {
        json!({"kty": "RSA", "kid": "a", "n": URL_SAFE_NO_PAD.encode(vec![0xff; bytes]), "e": "AQAB"})
    }

    fn p256_key() -> Value {
        json!({
            "kty": "EC",
            "crv": "P-256",
            "x": "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY",
            "y": "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU",
        })
    }

    #[test]
    fn only_signing_keys_for_rs256_and_es256_are_used() {
        for (key, changes, is_used, is_logged) in [
            (rsa_key(256), json!({}), true, false),
            (
                rsa_key(256),
                json!({"use": "sig", "alg": "RS256", "value": "PEM"}),
                true,
                false,
            ),
            (
                rsa_key(256),
                json!({"key_ops": ["verify"], "x5c": ["x"], "x5u": "y"}),
                true,
                false,
            ),
            (rsa_key(256), json!({"use": "enc"}), false, false),
            (rsa_key(256), json!({"key_ops": ["encrypt"]}), false, false),
            (rsa_key(256), json!({"alg": "RS512"}), false, false),
            (rsa_key(256), json!({"alg": "ES256"}), false, false),
            (rsa_key(256), json!({"alg": "rs256"}), false, false),
            (rsa_key(256), json!({"kty": "EC"}), false, false),
            (
                rsa_key(256),
                json!({"kty": "oct", "k": "AAAA"}),
                false,
                false,
            ),
            (rsa_key(256), json!({"n": null}), false, true),
            (rsa_key(256), json!({"n": "!"}), false, true),
            (rsa_key(256), json!({"kid": 1}), false, true),
            (rsa_key(256), json!({"kty": null}), false, true),
            (rsa_key(255), json!({}), false, true),
            (p256_key(), json!({}), true, false),
            (
                p256_key(),
                json!({"alg": "ES256", "use": "sig"}),
                true,
                false,
            ),
            (p256_key(), json!({"alg": "RS256"}), false, false),
            (p256_key(), json!({"crv": "P-384"}), false, false),
            (p256_key(), json!({"crv": null}), false, false),
            (p256_key(), json!({"kty": "OKP"}), false, false),
            (p256_key(), json!({"y": null}), false, true),
            (p256_key(), json!({"y": "AAAA"}), false, true),
        ] {
            let usable = usable(&json!([changed(&key, &changes)]));
            assert_eq!(!usable.keys.is_empty(), is_used, "{changes}");
            assert_eq!(!usable.ignored.is_empty(), is_logged, "{changes}");
        }
    }

    #[test]
    fn an_unusable_key_does_not_affect_others() {
        let usable = usable(&json!([1, rsa_key(128), {}, p256_key(), rsa_key(256)]));
        assert_eq!(usable.keys.len(), 2);
        assert_eq!(usable.ignored.len(), 3);
    }

    #[test]
    fn at_most_the_maximum_number_of_keys_is_used() {
        let usable = usable(&vec![p256_key(); KEYS_MAX + 1].into());
        assert_eq!(usable.keys.len(), KEYS_MAX);
        assert_eq!(usable.ignored.len(), 1);
    }
}
