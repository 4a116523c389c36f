//! The HTTP client for one registry.

use std::time::Duration;

use keywright_core::Secret;
use parking_lot::Mutex;
use reqwest::{
    Certificate, Client, Method, Request, RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, LOCATION},
    redirect::Policy,
};

use crate::{
    Credentials, RegistryError, RegistryHost,
    authentication::{Challenge, bearer},
    error::message_of,
};

/// How to connect to a registry.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The credentials, or `None` for anonymous access.
    pub credentials: Option<Credentials>,
    /// The trusted CA certificates (PEM) for the registry, its token server, and the targets of its redirects. Defaults to the
    /// certificates that the system trusts.
    pub trusted_certificates_pem: Option<String>,
    /// Whether to use plain HTTP, which does not protect the credentials. Pulled files are still verified by their digests.
    pub is_plain: bool,
}

/// The reason why the configuration of a registry was rejected.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum RegistryAccessError {
    #[error("{0} is not a valid host")]
    Address(RegistryHost),
    #[error("the CAs trusted for the registry must be one or more PEM certificates")]
    AuthoritiesMalformed(#[source] Option<reqwest::Error>),
    #[error("could not create the client for the registry")]
    Client(#[source] reqwest::Error),
}

/// A client for one registry.
pub struct Registry {
    client: Client,
    base: Url,
    credentials: Option<Credentials>,
    is_plain: bool,
    /// The value of the `Authorization` header for the registry's last challenge. All later requests to the registry include it.
    authorization: Mutex<Option<Secret>>,
}

impl Registry {
    /// Creates a client without sending a request. The client uses the proxy configured in the environment variables
    /// `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in upper or lower case. It uses no proxy for a loopback host,
    /// because requests to it must not leave the machine.
    ///
    /// Installs the process's TLS provider (aws-lc) unless one is installed.
    pub fn new(host: &RegistryHost, access: Access) -> Result<Self, RegistryAccessError> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let scheme = if access.is_plain { "http" } else { "https" };
        let base = Url::parse(&format!("{scheme}://{host}/v2/"))
            .map_err(|_| RegistryAccessError::Address(host.clone()))?;
        let mut client = Client::builder()
            .https_only(!access.is_plain)
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("keywright/", env!("CARGO_PKG_VERSION")));
        if host.is_loopback() {
            client = client.no_proxy();
        }
        if let Some(pem) = &access.trusted_certificates_pem {
            let certificates = Certificate::from_pem_bundle(pem.as_bytes())
                .map_err(|cause| RegistryAccessError::AuthoritiesMalformed(Some(cause)))?;
            if certificates.is_empty() {
                return Err(RegistryAccessError::AuthoritiesMalformed(None));
            }
            client = client.tls_certs_only(certificates);
        }
        Ok(Self {
            client: client.build().map_err(RegistryAccessError::Client)?,
            base,
            credentials: access.credentials,
            is_plain: access.is_plain,
            authorization: Mutex::default(),
        })
    }

    /// Returns the URL of a resource in a repository. `path` is relative to the repository.
    pub(crate) fn url(&self, repository: &str, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("/v2/{repository}/{path}"));
        url
    }

    /// Resolves the registry's `Location` for an upload, which may be relative to the requested URL.
    ///
    /// # Errors
    /// If the location is malformed or does not use https. Plain HTTP is allowed if the registry itself uses it.
    pub(crate) fn upload_url(
        &self,
        requested: &Url,
        location: &HeaderValue,
    ) -> Result<Url, RegistryError> {
        let location = location.to_str().ok();
        let url = location.and_then(|location| requested.join(location).ok());
        let is_allowed =
            |url: &Url| url.scheme() == "https" || (self.is_plain && url.scheme() == "http");
        url.filter(is_allowed)
            .ok_or_else(RegistryError::upload_address)
    }

    /// Downloads a resource of at most `bytes_max` bytes.
    pub(crate) async fn get(
        &self,
        url: Url,
        resource: &'static str,
        accept: Option<&'static str>,
        bytes_max: u64,
    ) -> Result<Vec<u8>, RegistryError> {
        let mut request = self.request(Method::GET, url);
        if let Some(accept) = accept {
            request = request.header(ACCEPT, accept);
        }
        let response = self.send(request).await?;
        let response = self.expect(response, resource, StatusCode::OK).await?;
        whole(response, resource, bytes_max).await
    }

    pub(crate) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.client.request(method, url)
    }

    /// Sends a request. If the registry requires authentication, authenticates and sends it once more.
    ///
    /// # Errors
    /// If the request fails; or if the challenge comes from another origin, such as the target of a redirect or an
    /// upload: responding to it could disclose the password to that origin (as in CVE-2020-15157).
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, RegistryError> {
        let request = request.build()?;
        let again = request.try_clone();
        let first = self.send_once(request).await?;
        let (StatusCode::UNAUTHORIZED, Some(again)) = (first.status(), again) else {
            return Ok(first);
        };
        if !self.is_own(first.url()) {
            return Err(RegistryError::challenge(
                "the challenge comes from another address than the registry's own",
            ));
        }
        let Some(authorization) = self.authenticate(first.headers()).await? else {
            return Ok(first);
        };
        *self.authorization.lock() = Some(authorization);
        self.send_once(again).await
    }

    /// Checks that a response has this status.
    ///
    /// # Errors
    /// If it has another status. The error includes the registry's message.
    pub(crate) async fn expect(
        &self,
        response: Response,
        resource: &'static str,
        expected: StatusCode,
    ) -> Result<Response, RegistryError> {
        let status = response.status();
        if status == expected {
            return Ok(response);
        }
        let body = whole(response, resource, ERROR_BYTES_MAX).await;
        let message = message_of(&body.unwrap_or_default());
        let user = if self.credentials.is_some() {
            "the configured user"
        } else {
            "anonymous users"
        };
        Err(match status {
            StatusCode::UNAUTHORIZED => RegistryError::Failed(format!(
                "the registry denies {user} access to {resource} (status 401{message}); check the user and password configured for it"
            )),
            StatusCode::NOT_FOUND if expected == StatusCode::OK => {
                RegistryError::NotFound(format!(
                    "{resource} is not in the registry (status 404{message}); check the host, the repository and the digest"
                ))
            }
            StatusCode::NOT_FOUND => RegistryError::Failed(format!(
                "the host does not accept {resource} (status 404{message}); check that it is a registry, and that the repository exists"
            )),
            other => RegistryError::Failed(format!(
                "the registry responded to the request for {resource} with status {}{message}",
                other.as_u16()
            )),
        })
    }

    async fn send_once(&self, mut request: Request) -> Result<Response, RegistryError> {
        let is_own = self.is_own(request.url());
        let known = self.authorization.lock().clone();
        if let Some(known) = known.filter(|_| is_own) {
            authorize(&mut request, &known);
        }
        self.execute(request).await
    }

    /// Sends a request. Follows up to [`REDIRECTS_MAX`] redirects with the same method, but no redirect from https to another scheme,
    /// and no 303 after a method that changes data. From the first redirect to another origin on, requests lack the credentials.
    /// reqwest would omit them only in the request to the first URL of the other origin.
    async fn execute(&self, mut request: Request) -> Result<Response, RegistryError> {
        for _ in 0..=REDIRECTS_MAX {
            let redirected = request.try_clone();
            let response = self.client.execute(request).await?;
            let (Some(url), Some(mut next)) = (redirect_target(&response), redirected) else {
                return Ok(response);
            };
            if response.status() == StatusCode::SEE_OTHER && !next.method().is_safe() {
                return Ok(response);
            }
            if next.url().scheme() == "https" && url.scheme() != "https" {
                let reason = "a redirect from https to another scheme";
                return Err(RegistryError::Unreachable(reason.to_owned()));
            }
            if next.url().origin() != url.origin() {
                next.headers_mut().remove(AUTHORIZATION);
            }
            *next.url_mut() = url;
            request = next;
        }
        let reason = format!("more than {REDIRECTS_MAX} redirects");
        Err(RegistryError::Unreachable(reason))
    }

    /// Returns the value of the `Authorization` header that the challenge requires. `None` if it requires credentials, but the
    /// registry is configured without credentials.
    async fn authenticate(&self, headers: &HeaderMap) -> Result<Option<Secret>, RegistryError> {
        let basic = self.credentials.as_ref().map(Credentials::basic);
        let url = match Challenge::read(headers)? {
            Challenge::Basic => return Ok(basic),
            Challenge::Bearer(url) => url,
        };
        self.check_token_server(&url)?;
        let resource = "a token";
        let mut request = Request::new(Method::GET, url);
        if let Some(basic) = &basic {
            authorize(&mut request, basic);
        }
        let response = self.execute(request).await?;
        let response = self.expect(response, resource, StatusCode::OK).await?;
        let body = whole(response, resource, TOKEN_BYTES_MAX).await?;
        bearer(&body).map(Some)
    }

    /// Returns whether a URL has the registry's scheme, host and port.
    fn is_own(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }

    /// Checks that the credentials may be sent to this token server: over https, or over plain HTTP if the registry itself uses
    /// plain HTTP and the token server has the same host.
    fn check_token_server(&self, url: &Url) -> Result<(), RegistryError> {
        match url.scheme() {
            "https" => Ok(()),
            "http" if self.is_plain && url.host() == self.base.host() => Ok(()),
            "http" if self.is_plain => Err(RegistryError::challenge(
                "its token server is on another host and does not use https",
            )),
            _ => Err(RegistryError::challenge(
                "its token server does not use https",
            )),
        }
    }
}

fn authorize(request: &mut Request, authorization: &Secret) {
    if let Ok(mut value) = HeaderValue::from_str(authorization.expose()) {
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
    }
}

/// Reads the body of a response. Checks both `Content-Length` and the received bytes against the size limit.
async fn whole(
    mut response: Response,
    resource: &'static str,
    bytes_max: u64,
) -> Result<Vec<u8>, RegistryError> {
    let too_large = RegistryError::too_large(resource, bytes_max);
    if response
        .content_length()
        .is_some_and(|length| length > bytes_max)
    {
        return Err(too_large);
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let length = u64::try_from(bytes.len() + chunk.len()).unwrap_or(u64::MAX);
        if length > bytes_max {
            return Err(too_large);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Returns the URL to which a response redirects, if it is a redirect.
fn redirect_target(response: &Response) -> Option<Url> {
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let target = response.url().join(location).ok()?;
    REDIRECTS.contains(&response.status()).then_some(target)
}

const REDIRECTS: [StatusCode; 5] = [
    StatusCode::MOVED_PERMANENTLY,
    StatusCode::FOUND,
    StatusCode::SEE_OTHER,
    StatusCode::TEMPORARY_REDIRECT,
    StatusCode::PERMANENT_REDIRECT,
];
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of redirects for one request.
const REDIRECTS_MAX: usize = 5;
/// The largest error response, in bytes. The message of a larger response is ignored.
const ERROR_BYTES_MAX: u64 = 4 * 1024;
/// The largest response of a token server, in bytes.
const TOKEN_BYTES_MAX: u64 = 64 * 1024;
