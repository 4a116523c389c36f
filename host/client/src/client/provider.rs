//! Sends requests to an identity provider (OAuth 2.0): discovery, token requests with the client's authentication (RFC 6749,
//! sections 2.3 and 3.2), and the login with a code that the user enters on another device (RFC 8628).

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::{Instant, sleep};

use super::{
    discovery::{Document, Endpoints, SecretMethod, document_urls, page_url},
    error::{Error, Loss, ResponseError},
    grant::{LoginOptions, OnUserAction, TOKEN_BYTES_MAX, Tokens, UserAction, is_access_token},
    transport::{Call, Response, Transport, address, receive_from_provider, send_with_retries},
    waits::Waits,
};
use crate::Secret;

pub(super) struct IdentityProvider<'a> {
    pub(super) transport: &'a Transport,
    pub(super) waits: &'a Waits,
    pub(super) options: &'a LoginOptions,
    pub(super) on_user_action: Option<&'a OnUserAction>,
}

impl IdentityProvider<'_> {
    /// Discovers the provider's endpoints from its address, which the server publishes.
    ///
    /// Fetches the OIDC discovery document or, if the provider responds with 404, the RFC 8414 metadata document. A provider that
    /// responds to both requests with 404 is treated as a UAA. `issued_by` is the provider that issued the tokens to send.
    ///
    /// # Errors
    /// [`Error::ProviderChanged`] if the server's provider is not `issued_by`.
    pub(super) async fn endpoints(&self, issued_by: Option<&str>) -> Result<Endpoints, Error> {
        let url = self.url().await?;
        if issued_by.is_some_and(|issuer| issuer != url) {
            return Err(Error::ProviderChanged(url));
        }
        for document_url in document_urls(&url) {
            let request = || self.transport.http.get(&document_url);
            let response = match self.send(&document_url, request).await {
                Ok(response) => response,
                Err(Error::LoginRefused(refusal)) if refusal.status == NOT_FOUND => continue,
                Err(Error::LoginRefused(refusal)) => {
                    let reason = format!("status {}", refusal.status);
                    return Err(malformed(&document_url, reason));
                }
                Err(error) => return Err(error),
            };
            let document: Document = parse(&document_url, &response)?;
            let endpoints = document.endpoints(&url);
            return endpoints.map_err(|reason| malformed(&document_url, reason));
        }
        Ok(Endpoints::of_uaa(&url))
    }

    pub(super) async fn request_tokens(
        &self,
        endpoints: &Endpoints,
        client: ClientIdentity<'_>,
        form: Form<'_>,
    ) -> Result<Tokens, Error> {
        let mut form = form;
        if endpoints.is_uaa {
            form.push(("response_type", "token"));
        }
        let response = self
            .post(endpoints, &endpoints.token, client, &form)
            .await?;
        let response: TokenResponse = parse(&endpoints.token, &response)?;
        let is_bearer = response
            .token_type
            .is_none_or(|token_type| token_type.eq_ignore_ascii_case("bearer"));
        if !is_bearer {
            let reason = "the tokens are not bearer tokens";
            return Err(malformed(&endpoints.token, reason));
        }
        if !is_access_token(response.access_token.expose()) {
            let reason =
                format!("access_token must be 1 to {TOKEN_BYTES_MAX} bytes of visible ASCII");
            return Err(malformed(&endpoints.token, reason));
        }
        Ok(Tokens {
            access_token: response.access_token,
            refresh_token: response.refresh_token,
            issued_by: Some(endpoints.provider.clone()),
        })
    }

    /// Sends a form to an endpoint that authenticates clients.
    ///
    /// A provider lists the supported methods to send a secret, but may require a specific method from each client. If it refuses
    /// a method with `invalid_client`, tries the next method.
    pub(super) async fn post(
        &self,
        endpoints: &Endpoints,
        url: &str,
        client: ClientIdentity<'_>,
        form: &[(&str, &str)],
    ) -> Result<Response, Error> {
        let Some(secret) = client.secret else {
            let mut form = [form, &[("client_id", client.id)]].concat();
            if endpoints.is_uaa {
                form.push(("client_secret", ""));
            }
            return self
                .send(url, || self.transport.form(url, &form, None))
                .await;
        };
        let reason = "it supports neither client_secret_basic nor client_secret_post";
        let mut refused = malformed(url, reason);
        for method in &endpoints.secret_methods {
            let response = match method {
                SecretMethod::Basic => {
                    let basic = Some((client.id, secret));
                    self.send(url, || self.transport.form(url, form, basic))
                        .await
                }
                SecretMethod::Post => {
                    let own = [("client_id", client.id), ("client_secret", secret.expose())];
                    let form = [form, &own].concat();
                    self.send(url, || self.transport.form(url, &form, None))
                        .await
                }
            };
            match response {
                Err(Error::LoginRefused(refusal)) if refusal.error == "invalid_client" => {
                    refused = Error::LoginRefused(refusal);
                }
                response => return response,
            }
        }
        Err(refused)
    }

    /// Requests a code, shows it, and polls until the user has entered it.
    pub(super) async fn tokens_by_device(&self, endpoints: &Endpoints) -> Result<Tokens, Error> {
        let url = endpoints.device_authorization.as_ref();
        let url = url.ok_or(Error::GrantUnsupported("device_authorization_endpoint"))?;
        let client = self.public_client();
        let form = self.options.initial_parameters();
        let response = self.post(endpoints, url, client, &form).await?;
        let malformed = |reason: String| malformed(url, reason);
        let authorization: DeviceAuthorization = parse(url, &response)?;
        let page = page_url("verification_uri", &authorization.verification_uri);
        let page_with_code = authorization.verification_uri_complete.as_deref();
        let page_with_code = page_with_code.map(|page| page_url("verification_uri_complete", page));
        let expires_in = Duration::from_secs(authorization.expires_in).min(CODE_AGE_MAX);
        let expires_at = Instant::now() + expires_in;
        let interval = authorization.interval.map_or(INTERVAL, Duration::from_secs);
        self.report(&UserAction::EnterCode {
            page: page.map_err(malformed)?,
            page_with_code: page_with_code.transpose().map_err(malformed)?,
            code: authorization.user_code,
            expires_in,
        });
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
            ("device_code", authorization.device_code.expose()),
        ];
        let form = [&form[..], &self.options.resource_parameter()].concat();
        self.poll(endpoints, client, &form, interval, expires_at)
            .await
    }

    async fn poll(
        &self,
        endpoints: &Endpoints,
        client: ClientIdentity<'_>,
        form: &Form<'_>,
        interval: Duration,
        expires_at: Instant,
    ) -> Result<Tokens, Error> {
        let mut interval = interval.clamp(INTERVAL_MIN, CODE_AGE_MAX);
        loop {
            if Instant::now() + interval > expires_at {
                return Err(Error::LoginTimedOut);
            }
            sleep(interval).await;
            match self.request_tokens(endpoints, client, form.clone()).await {
                Err(Error::LoginRefused(refusal)) => match refusal.error.as_str() {
                    "authorization_pending" => {}
                    "slow_down" => interval += SLOWER_BY,
                    "expired_token" => return Err(Error::LoginTimedOut),
                    _ => return Err(Error::LoginRefused(refusal)),
                },
                response => return response,
            }
        }
    }

    /// Returns the client through which users log in. It has no secret.
    pub(super) fn public_client(&self) -> ClientIdentity<'_> {
        ClientIdentity {
            id: self.options.client_id.as_deref().unwrap_or(COMMAND_LINE),
            secret: None,
        }
    }

    pub(super) fn report(&self, action: &UserAction) {
        if let Some(on_user_action) = self.on_user_action {
            on_user_action(action);
        }
    }

    /// Returns the provider's address, as published by the server.
    pub(super) async fn url(&self) -> Result<String, Error> {
        let call = Call::new(Method::GET, "/info");
        let send = || async { Ok(self.transport.send(&call, None).await) };
        let other_server = |cause| Error::OtherServer {
            server: self.transport.server.clone(),
            cause: Box::new(cause),
        };
        let response = match send_with_retries(&call, self.waits, send).await {
            Err(Error::Refused(refusal)) if refusal.status != UNAVAILABLE => {
                // The message of another server would not explain the error.
                return Err(other_server(
                    ResponseError::read(refusal.status, b"").into(),
                ));
            }
            response => response?,
        };
        let info: Info = keywright_json::read_bytes(&response.body)
            .map_err(|cause| other_server(Error::ResponseMalformed(cause)))?;
        if info.auth_server.url.is_empty() {
            return Err(Error::NoIdentityProvider);
        }
        address(&info.auth_server.url)
    }

    /// Sends a request to this address and returns the provider's response if it succeeds.
    ///
    /// Retries 5xx responses and connection failures other than [`Loss::Lasting`] a limited number of times. Retries are safe: a
    /// repeated login returns another token, and a repeated revocation changes nothing.
    pub(super) async fn send(
        &self,
        url: &str,
        request: impl Fn() -> RequestBuilder,
    ) -> Result<Response, Error> {
        let mut retries = 0;
        loop {
            let (error, retry_after) = match receive_from_provider(request(), url).await {
                Ok(response) if response.is_success() => return Ok(response),
                Ok(response) if response.status >= 500 => {
                    let retry_after = response.retry_after;
                    (Error::Refused(response.into()), retry_after)
                }
                Ok(response) => return Err(Error::LoginRefused(response.into())),
                Err(error @ Error::Unreachable { loss, .. }) if loss != Loss::Lasting => {
                    (error, None)
                }
                Err(error @ Error::Unreachable { .. }) => {
                    return Err(Error::ProviderUnavailable(Box::new(error)));
                }
                Err(error) => return Err(error),
            };
            if !self
                .waits
                .wait("the identity provider", retries, retry_after)
                .await
            {
                return Err(Error::ProviderUnavailable(Box::new(error)));
            }
            retries += 1;
        }
    }
}

/// Parses a response of the endpoint with this address.
fn parse<T: DeserializeOwned>(url: &str, response: &Response) -> Result<T, Error> {
    keywright_json::read_bytes(&response.body).map_err(|cause| malformed(url, cause.to_string()))
}

fn malformed(url: &str, reason: impl Into<String>) -> Error {
    Error::ProviderMalformed {
        url: url.to_owned(),
        reason: reason.into(),
    }
}

/// The names and values of a form.
type Form<'a> = Vec<(&'a str, &'a str)>;

/// A client as it identifies itself to the provider.
#[derive(Clone, Copy)]
pub(super) struct ClientIdentity<'a> {
    pub(super) id: &'a str,
    /// The secret of a confidential client.
    pub(super) secret: Option<&'a Secret>,
}

#[derive(Deserialize)]
struct TokenResponse {
    access_token: Secret,
    token_type: Option<String>,
    refresh_token: Option<Secret>,
}

#[derive(Deserialize)]
struct DeviceAuthorization {
    device_code: Secret,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: u64,
    interval: Option<u64>,
}

#[derive(Deserialize)]
struct Info {
    #[serde(rename = "auth-server")]
    auth_server: AuthServer,
}

#[derive(Deserialize)]
struct AuthServer {
    url: String,
}

/// The default id of the client through which users log in: in UAA deployments, the client of the CredHub command line.
const COMMAND_LINE: &str = "credhub_cli";

const NOT_FOUND: u16 = 404;

const UNAVAILABLE: u16 = 503;

/// The default interval between polls (RFC 8628, section 3.2).
const INTERVAL: Duration = Duration::from_secs(5);

/// The shortest interval between polls, even if the provider allows a shorter interval.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// The increase of the interval after `slow_down` (RFC 8628, section 3.5).
const SLOWER_BY: Duration = Duration::from_secs(5);

/// The longest wait for the user to enter a code, even if the code expires later.
const CODE_AGE_MAX: Duration = Duration::from_mins(30);
