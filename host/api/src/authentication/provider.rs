//! An identity provider that publishes its keys over HTTPS, as a key set (RFC 7517, section 5), and the cache of its keys. Keys
//! are fetched at start-up, and again when they are old or a token has an unknown key id.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use parking_lot::{Mutex, RwLock};
use reqwest::{Certificate, Client, StatusCode, Url, header::HeaderMap, redirect::Policy};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::{
    sync::{Mutex as AsyncMutex, Semaphore},
    time::sleep,
};

use super::{keys::PublishedKeys, token::TrustedKeys};
use crate::response::error_chain;

/// A source of published keys.
#[async_trait]
pub(super) trait IdentityProvider: Send + Sync {
    /// Returns `None` if the provider publishes no usable key.
    async fn keys(&self) -> Result<Option<TrustedKeys>, Box<dyn std::error::Error + Send + Sync>>;
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
    /// The URL is not an https URL, or contains a user.
    #[error("the URL of the identity provider must be an https URL without a user")]
    AddressMalformed,
    /// The trusted CAs are malformed, or there are none.
    #[error("the CAs trusted for the identity provider must be one or more PEM certificates")]
    AuthoritiesMalformed(#[source] Option<reqwest::Error>),
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
        let discovery_url = https_url(&url)
            .and_then(|_| https_url(&format!("{url}/{DISCOVERY_PATH}")))
            .ok_or(IdentityProviderError::AddressMalformed)?;
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let mut builder = Client::builder()
            .https_only(true)
            .redirect(Policy::none())
            .timeout(settings.timeout);
        if let Some(pem) = &settings.trusted_certificates_pem {
            let certificates = Certificate::from_pem_bundle(pem.as_bytes())
                .map_err(|cause| IdentityProviderError::AuthoritiesMalformed(Some(cause)))?;
            if certificates.is_empty() {
                return Err(IdentityProviderError::AuthoritiesMalformed(None));
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

    /// Returns the discovery document.
    pub async fn login_endpoints(&self) -> Result<LoginEndpoints, ProviderRequestError> {
        let mut endpoints: LoginEndpoints = self.fetch(&self.discovery_url).await?;
        endpoints.token_endpoint = self.as_reached(&endpoints.token_endpoint);
        Ok(endpoints)
    }

    /// Sends a form to the provider, and returns the status and the body of the response: a JSON document with the checks of
    /// [`keywright_json::check`].
    pub async fn post(
        &self,
        url: &str,
        headers: HeaderMap,
        form: Vec<u8>,
    ) -> Result<(StatusCode, Vec<u8>), ProviderRequestError> {
        let url = https_url(url).ok_or(DocumentError::AddressMalformed)?;
        let request = self.client.post(url.clone()).headers(headers);
        let response = request.body(form).send().await;
        let response = response.map_err(DocumentError::from)?;
        let status = response.status();
        let document = received(response).await?;
        let malformed = |error| {
            if status.is_success() {
                DocumentError::Malformed(error)
            } else {
                DocumentError::StatusUnexpected(status, url.clone())
            }
        };
        let text = keywright_json::utf8(&document).map_err(malformed)?;
        keywright_json::check(text).map_err(malformed)?;
        Ok((status, document))
    }

    /// Returns the URL of the keys: `jwks_uri`, or the default.
    fn keys_url(&self, discovery: &Discovery) -> Result<Url, DocumentError> {
        let address = match &discovery.jwks_uri {
            Some(named) => self.as_reached(named),
            None => format!("{}/{KEYS_PATH}", self.url),
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
        let mut logged = self.ignored.lock();
        for key in ignored.iter().filter(|key| !logged.contains(key)) {
            tracing::warn!(key, "ignored a key published by the identity provider");
        }
        *logged = ignored;
    }

    async fn fetch<T: DeserializeOwned>(&self, url: &Url) -> Result<T, DocumentError> {
        let response = self.client.get(url.clone()).send().await?;
        let status = response.status();
        if !status.is_success() {
            return Err(DocumentError::StatusUnexpected(status, url.clone()));
        }
        let document = received(response).await?;
        keywright_json::read_bytes(&document).map_err(DocumentError::Malformed)
    }
}

/// Receives a document within the limit.
async fn received(mut response: reqwest::Response) -> Result<Vec<u8>, DocumentError> {
    let mut document = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if document.len() + chunk.len() > DOCUMENT_BYTES_MAX {
            return Err(DocumentError::TooLarge);
        }
        document.extend_from_slice(&chunk);
    }
    Ok(document)
}

#[async_trait]
impl IdentityProvider for HttpsIdentityProvider {
    async fn keys(&self) -> Result<Option<TrustedKeys>, Box<dyn std::error::Error + Send + Sync>> {
        let discovery: Discovery = self.fetch(&self.discovery_url).await?;
        if discovery.issuer.is_empty() {
            return Err(DocumentError::NoIssuer.into());
        }
        let keys_url = self.keys_url(&discovery)?;
        let published = self.fetch::<PublishedKeys>(&keys_url).await?.usable();
        self.log_ignored(published.ignored);
        let has_key = !published.keys.is_empty();
        Ok(has_key.then(|| TrustedKeys::new(discovery.issuer, published.keys)))
    }
}

/// The endpoints of a provider for the login of users.
#[derive(Clone, Debug, Deserialize)]
pub struct LoginEndpoints {
    /// The URL of the login page, for browsers.
    pub authorization_endpoint: String,
    /// The URL for token requests of this server.
    pub token_endpoint: String,
    /// The URL of the logout page, for browsers (OIDC RP-Initiated Logout 1.0).
    pub end_session_endpoint: Option<String>,
}

/// A request to an identity provider failed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ProviderRequestError(#[from] DocumentError);

/// A document of the provider is invalid or could not be fetched.
#[derive(Debug, thiserror::Error)]
enum DocumentError {
    #[error("the URL of the endpoint must be an https URL without a user")]
    AddressMalformed,
    #[error("the document is malformed")]
    Malformed(#[source] keywright_json::JsonError),
    #[error("jwks_uri in the discovery document must be an https URL without a user")]
    KeysAddressMalformed,
    #[error("the discovery document has an empty issuer")]
    NoIssuer,
    #[error("the provider responded to the request for {1} with status {0}")]
    StatusUnexpected(StatusCode, Url),
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

/// Parses an https URL without a user or a password, which would be logged.
pub fn https_url(address: &str) -> Option<Url> {
    Url::parse(address).ok().filter(|url| {
        url.scheme() == "https" && url.username().is_empty() && url.password().is_none()
    })
}

/// The path of the discovery document, relative to the provider's URL.
const DISCOVERY_PATH: &str = ".well-known/openid-configuration";

/// The path of UAA's keys, relative to its URL.
const KEYS_PATH: &str = "token_keys";

/// Maximum size of a provider's document.
const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

/// The cached keys of one provider.
///
/// The last fetched keys stay in use until the provider publishes others, or none. While it is unavailable, tokens remain valid until
/// they expire. Otherwise, an attack on the provider would lock out all callers.
pub(super) struct ProviderKeys {
    provider: Box<dyn IdentityProvider>,
    pace: KeyPace,
    current: RwLock<Option<(Arc<TrustedKeys>, Instant)>>,
    /// The end of the last fetch, which may have failed. Locked while fetching, so that there is one fetch at a time.
    last_fetch: AsyncMutex<Option<Instant>>,
    /// Permits for callers that wait for a fetch.
    waiting: Arc<Semaphore>,
}

/// Limits how often keys are fetched.
#[derive(Clone, Copy, Debug)]
pub struct KeyPace {
    /// The age at which keys are fetched again, so that a withdrawn key is not trusted for long.
    pub age_max: Duration,
    /// Minimum time between two fetches, even if tokens have unknown key ids.
    pub interval_min: Duration,
}

impl ProviderKeys {
    /// Creates the cache, without fetching keys.
    pub(super) fn new(provider: Box<dyn IdentityProvider>, pace: KeyPace) -> Arc<Self> {
        Arc::new(Self {
            provider,
            pace,
            current: RwLock::new(None),
            last_fetch: AsyncMutex::new(None),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
        })
    }

    /// Returns the cached keys.
    pub(super) fn current(&self) -> Option<Arc<TrustedKeys>> {
        self.cached().map(|(keys, _)| keys)
    }

    /// Returns the keys to verify a token with, and whether one of them has signed it. Returns `None` if there are no keys.
    ///
    /// If `have_signed` returns `None` for the cached keys, fetches new keys, unless [`WAITING_MAX`] callers are already waiting.
    pub(super) async fn for_token(
        self: &Arc<Self>,
        have_signed: impl Fn(&TrustedKeys) -> Option<bool>,
    ) -> Option<(Arc<TrustedKeys>, bool)> {
        let since = Instant::now();
        let known = self.current();
        if let Some(known) = &known
            && let Some(is_signed) = have_signed(known)
        {
            return Some((Arc::clone(known), is_signed));
        }
        self.renew(since).await;
        let (keys, _) = self.cached()?;
        let are_new = known.is_none_or(|known| !Arc::ptr_eq(&known, &keys));
        let is_signed = are_new && have_signed(&keys) == Some(true);
        Some((keys, is_signed))
    }

    /// Fetches the keys now, and again whenever they are old, also without requests: the first request after a quiet time must
    /// not be verified with a withdrawn key. So a failed fetch is soon retried.
    pub(super) async fn keep_fresh(self: Arc<Self>) {
        loop {
            self.renew(Instant::now()).await;
            let age = self.cached().map(|(_, since)| since.elapsed());
            let left = age.map_or(Duration::ZERO, |age| self.pace.age_max.saturating_sub(age));
            sleep(left.max(self.pace.interval_min).max(RETRY_PAUSE_MIN)).await;
        }
    }

    /// Fetches keys on a separate task, so that a cancelled caller does not cancel the fetch for others, and a panic does not end
    /// [`Self::keep_fresh`]. Does nothing if too many callers are waiting.
    async fn renew(self: &Arc<Self>, since: Instant) {
        let Ok(permit) = Arc::clone(&self.waiting).try_acquire_owned() else {
            return;
        };
        let keys = Arc::clone(self);
        let fetch = tokio::spawn(async move {
            keys.fetch(since).await;
            drop(permit);
        });
        if let Err(error) = fetch.await {
            tracing::error!(error = %error, "the task that fetches the identity provider's keys failed");
        }
    }

    /// Fetches keys and replaces the cached ones. Does nothing if another fetch has completed after `since`, or less than
    /// `interval_min` ago. Callers pass the time before they read the cached keys, so that callers that wait at the same time share
    /// one fetch, even if it fails.
    async fn fetch(&self, since: Instant) {
        let mut last_fetch = self.last_fetch.lock().await;
        if last_fetch.is_some_and(|last| last > since || last.elapsed() < self.pace.interval_min) {
            return;
        }
        match self.provider.keys().await {
            Ok(Some(keys)) => {
                let mut current = self.current.write();
                // Keep an unchanged set, because it caches verified tokens.
                let keys = match current.take() {
                    Some((known, _)) if known.equal(&keys) => known,
                    _ => Arc::new(keys),
                };
                *current = Some((keys, Instant::now()));
            }
            // All keys were withdrawn.
            Ok(None) => {
                *self.current.write() = None;
                tracing::warn!(
                    "discarded the identity provider's keys: it publishes neither an RSA key for RS256 nor a P-256 key for ES256",
                );
            }
            Err(error) => tracing::warn!(
                error = error_chain(error.as_ref()),
                "could not fetch the identity provider's keys",
            ),
        }
        *last_fetch = Some(Instant::now());
    }

    fn cached(&self) -> Option<(Arc<TrustedKeys>, Instant)> {
        self.current.read().clone()
    }
}

/// The minimum pause before keys are fetched again without requests.
const RETRY_PAUSE_MIN: Duration = Duration::from_millis(100);

/// Maximum number of callers that wait for the provider. They are not authenticated yet: without a limit, requests with invented
/// key ids could pile up while a provider hangs.
const WAITING_MAX: usize = 64;

#[cfg(test)]
mod tests;
