//! A registry, and what is said with it.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use keywright_core::Secret;
use reqwest::{
    Body, Certificate, Client, Method, Request, Response, StatusCode, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
    redirect::{Attempt, Policy},
};

use crate::{
    Credentials, Fault, RegistryHost,
    authentication::{Challenge, TokenAnswer},
    told::Told,
};

/// How a registry is reached.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Who asks; nobody in particular where there is nothing.
    pub credentials: Option<Credentials>,
    /// The certificates, PEM, that alone are trusted to vouch for the registry, its server of tokens, and where it redirects to; those
    /// that the system trusts where there are none.
    pub trusted_certificates_pem: Option<String>,
    /// Whether it is spoken with by plain HTTP, which everybody between can read and change. What is pulled is verified by its
    /// digest all the same; the credentials are not protected.
    pub is_plain: bool,
}

/// Why a registry can't be used as it is configured.
#[derive(Debug, thiserror::Error)]
pub enum AccessRefused {
    /// Its address makes no URL.
    #[error("{0} is no host that can be asked")]
    Address(RegistryHost),
    /// The trusted certificates can't be read.
    #[error("the certificates trusted for the registry are not PEM certificates")]
    CertificatesMalformed(#[source] reqwest::Error),
    /// There is no certificate among them.
    #[error("there is no certificate among those trusted for the registry")]
    CertificatesMissing,
    /// The client could not be made.
    #[error("the client for the registry could not be made")]
    Client(#[source] reqwest::Error),
}

/// A registry.
pub struct Registry {
    client: Client,
    base: Url,
    credentials: Option<Credentials>,
    is_plain: bool,
    /// What it was last content with, as the value of the header `Authorization`.
    authorization: Mutex<Option<Secret>>,
}

/// What is asked of a registry.
pub(crate) struct Question {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) accept: Option<&'static str>,
    pub(crate) content_type: Option<&'static str>,
    pub(crate) body: Option<Vec<u8>>,
}

impl Registry {
    /// A registry, which is asked for nothing yet. It is reached through the proxy that the variables `HTTPS_PROXY`, `HTTP_PROXY`,
    /// `ALL_PROXY` and `NO_PROXY` name, in either case. One on this machine is reached without: what is said with it is not to
    /// leave the machine.
    ///
    /// Installs the process's TLS provider (aws-lc) if there is none so far.
    ///
    /// # Errors
    /// When its settings can't be used.
    pub fn new(host: &RegistryHost, access: Access) -> Result<Self, AccessRefused> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let scheme = if access.is_plain { "http" } else { "https" };
        let base = Url::parse(&format!("{scheme}://{host}/v2/"))
            .map_err(|_| AccessRefused::Address(host.clone()))?;
        let mut client = Client::builder()
            .https_only(!access.is_plain)
            .redirect(Policy::custom(redirect))
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("keywright/", env!("CARGO_PKG_VERSION")));
        if host.is_loopback() {
            client = client.no_proxy();
        }
        if let Some(pem) = &access.trusted_certificates_pem {
            let certificates = Certificate::from_pem_bundle(pem.as_bytes())
                .map_err(AccessRefused::CertificatesMalformed)?;
            if certificates.is_empty() {
                return Err(AccessRefused::CertificatesMissing);
            }
            client = client.tls_certs_only(certificates);
        }
        Ok(Self {
            client: client.build().map_err(AccessRefused::Client)?,
            base,
            credentials: access.credentials,
            is_plain: access.is_plain,
            authorization: Mutex::default(),
        })
    }

    /// The address of something in a repository; its end begins behind the repository's slash.
    pub(crate) fn url(&self, repository: &str, end: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("/v2/{repository}/{end}"));
        url
    }

    /// An address that the registry has given for an upload, which may be relative to the one that was asked.
    ///
    /// # Errors
    /// When it is none, or less protected than the registry itself.
    pub(crate) fn upload_url(&self, asked: &Url, location: &HeaderValue) -> Result<Url, Fault> {
        let location = location.to_str().ok();
        let url = location.and_then(|location| asked.join(location).ok());
        let is_taken =
            |url: &Url| url.scheme() == "https" || (self.is_plain && url.scheme() == "http");
        url.filter(is_taken).ok_or(Fault::UploadAddress)
    }

    /// Asks for something that has a size that it may have.
    pub(crate) async fn get(
        &self,
        url: Url,
        what: &'static str,
        accept: Option<&'static str>,
        bytes_max: u64,
    ) -> Result<Vec<u8>, Fault> {
        let response = self.ask(Question {
            accept,
            ..Question::new(Method::GET, url)
        });
        let response = response.await?;
        let response = self.expect(response, what, &[StatusCode::OK]).await?;
        whole(response, what, bytes_max).await
    }

    /// Asks something, and once more as the registry wants it when it wants to know who is asking.
    ///
    /// # Errors
    /// Also when it is not the registry itself that wants to know, but where it redirects to or has an upload go: a stranger is
    /// not to say who learns the password (as in CVE-2020-15157).
    pub(crate) async fn ask(&self, question: Question) -> Result<Response, Fault> {
        let request = question.request();
        let again = request.try_clone();
        let first = self.send(request).await?;
        let (StatusCode::UNAUTHORIZED, Some(again)) = (first.status(), again) else {
            return Ok(first);
        };
        if !self.is_own(first.url()) {
            return Err(Fault::ChallengeUnknown(
                "it is another address that asks for it than the registry's own",
            ));
        }
        let Some(authorization) = self.meet(first.headers()).await? else {
            return Ok(first);
        };
        *self.known_authorization() = Some(authorization);
        self.send(again).await
    }

    /// An answer with one of these statuses.
    ///
    /// # Errors
    /// When it has another, with what the registry says to that.
    pub(crate) async fn expect(
        &self,
        response: Response,
        what: &'static str,
        taken: &[StatusCode],
    ) -> Result<Response, Fault> {
        let status = response.status();
        if taken.contains(&status) {
            return Ok(response);
        }
        // What a registry says beyond the limit, or does not say at all, is not needed.
        let said = whole(response, what, TOLD_BYTES_MAX).await;
        let told = Told::read(&said.unwrap_or_default());
        Err(match status {
            StatusCode::UNAUTHORIZED => Fault::Unauthorized {
                what,
                has_credentials: self.credentials.is_some(),
                told,
            },
            StatusCode::NOT_FOUND => Fault::NotFound { what, told },
            other => Fault::Answered {
                what,
                status: other.as_u16(),
                told,
            },
        })
    }

    async fn send(&self, mut request: Request) -> Result<Response, Fault> {
        let is_own = self.is_own(request.url());
        let known = self.known_authorization().clone();
        if let Some(known) = known.filter(|_| is_own) {
            authorize(&mut request, &known);
        }
        Ok(self.client.execute(request).await?)
    }

    /// Does what a challenge asks for; nothing where there is nothing that could be done.
    async fn meet(&self, head: &HeaderMap) -> Result<Option<Secret>, Fault> {
        let basic = self.credentials.as_ref().map(Credentials::basic);
        let url = match Challenge::read(head)? {
            Challenge::Basic => return Ok(basic),
            Challenge::Bearer(url) => url,
        };
        self.check_token_server(&url)?;
        let what = "a token";
        let mut request = Question::new(Method::GET, url).request();
        if let Some(basic) = &basic {
            authorize(&mut request, basic);
        }
        let response = self.client.execute(request).await?;
        let response = self.expect(response, what, &[StatusCode::OK]).await?;
        let answer = whole(response, what, TOKEN_BYTES_MAX).await?;
        TokenAnswer::bearer(&answer).map(Some)
    }

    /// Whether an address is the registry's own: of its scheme, host and port.
    fn is_own(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }

    /// Whether a token may be asked for there, with the user and the password: by https, or by plain HTTP where the registry
    /// is spoken with by that, and then on its own host alone.
    fn check_token_server(&self, url: &Url) -> Result<(), Fault> {
        match url.scheme() {
            "https" => Ok(()),
            "http" if self.is_plain && url.host() == self.base.host() => Ok(()),
            "http" if self.is_plain => Err(Fault::ChallengeUnknown(
                "its server of tokens is on another host, and not one of https",
            )),
            _ => Err(Fault::ChallengeUnknown(
                "its server of tokens is not one of https",
            )),
        }
    }

    fn known_authorization(&self) -> std::sync::MutexGuard<'_, Option<Secret>> {
        let locked = self.authorization.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Question {
    pub(crate) fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            accept: None,
            content_type: None,
            body: None,
        }
    }

    fn request(self) -> Request {
        let mut request = Request::new(self.method, self.url);
        for (name, value) in [(ACCEPT, self.accept), (CONTENT_TYPE, self.content_type)] {
            if let Some(value) = value {
                request
                    .headers_mut()
                    .insert(name, HeaderValue::from_static(value));
            }
        }
        *request.body_mut() = self.body.map(Body::from);
        request
    }
}

fn authorize(request: &mut Request, authorization: &Secret) {
    if let Ok(mut value) = HeaderValue::from_str(authorization.expose()) {
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
    }
}

/// The body of an answer, which is not larger than it may be: neither by what the answer says of itself, nor by what comes.
async fn whole(
    mut response: Response,
    what: &'static str,
    bytes_max: u64,
) -> Result<Vec<u8>, Fault> {
    let too_large = Fault::TooLarge { what, bytes_max };
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

/// Follows a few redirections, and none from what is protected to what is not. The client leaves the credentials out where
/// they lead to another host.
fn redirect(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let was_protected = attempt.previous().iter().any(|url| url.scheme() == "https");
    if attempt.previous().len() > REDIRECTS_MAX {
        return attempt.error(format!("it redirects more than {REDIRECTS_MAX} times"));
    }
    if was_protected && attempt.url().scheme() != "https" {
        return attempt.error("it redirects to what is not https");
    }
    attempt.follow()
}

/// How long it may take until a connection is there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How many redirections are followed.
const REDIRECTS_MAX: usize = 5;
/// The largest text with which a registry says what went wrong, in bytes. A larger one is left out.
const TOLD_BYTES_MAX: u64 = 4 * 1024;
/// The largest answer of a server of tokens, in bytes.
const TOKEN_BYTES_MAX: u64 = 64 * 1024;
