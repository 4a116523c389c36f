//! The client of a server, and its builder.

mod browser;
mod discovery;
mod error;
mod grant;
mod login;
mod provider;
mod transport;
mod waits;

use std::{fmt, sync::Arc, time::Duration};

use keywright_json::Checked;
use reqwest::{Certificate, Identity, redirect::Policy, tls};
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

pub use error::{Error, Loss, ResponseError};
pub use grant::{Grant, LoginOptions, Tokens, UserAction};
pub(crate) use grant::{TOKEN_BYTES_MAX, is_access_token};
pub(crate) use transport::{Call, UNTRUSTED, address};
pub use waits::Wait;

use grant::OnUserAction;
use login::Login;
pub(crate) use login::StoredLogin;
use provider::IdentityProvider;
use transport::{Response, Transport, build_error, send_with_retries};
use waits::{RETRIES_DEFAULT, Waits};

/// A client of one server. Cloning is cheap; clones share connections and login.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

/// The state shared by all clones of a client.
struct Shared {
    transport: Transport,
    login: Login,
    waits: Waits,
    login_options: LoginOptions,
    on_user_action: Option<OnUserAction>,
}

impl Client {
    /// Returns a builder for the server at this address: `https`, a host, and an optional port.
    pub fn builder(server: &str) -> ClientBuilder {
        ClientBuilder {
            server: server.to_owned(),
            authorities_pem: Vec::new(),
            identity_pem: None,
            login: Login::default(),
            login_options: LoginOptions::default(),
            on_user_action: None,
            waits: Waits {
                retries_max: RETRIES_DEFAULT,
                on_wait: None,
            },
        }
    }

    /// Returns the server's address without a trailing slash.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.shared.transport.server
    }

    /// Returns the address of the server's identity provider, which gets the secrets of a login. The server chooses it.
    pub async fn identity_provider(&self) -> Result<String, Error> {
        self.shared.provider().url().await
    }

    /// Logs in now instead of before the first request.
    pub async fn log_in(&self) -> Result<Tokens, Error> {
        self.shared.login.log_in(&self.shared.provider()).await
    }

    /// Revokes the login at the identity provider, so that its refresh token becomes invalid. Renews an expired access token once,
    /// if the provider requires a valid one.
    pub async fn log_out(&self) -> Result<(), Error> {
        self.shared.login.log_out(&self.shared.provider()).await
    }

    /// Sends a request and parses the response.
    pub(crate) async fn execute<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Error> {
        let response = self.send(call).await?;
        keywright_json::utf8(&response.body)
            .and_then(keywright_json::check_response)
            .and_then(Checked::read)
            .map_err(Error::ResponseMalformed)
    }

    /// Sends a request whose response has no body. A body is an error: a proxy may respond with a page and status 200.
    pub(crate) async fn execute_without_result(&self, call: &Call) -> Result<(), Error> {
        let response = self.send(call).await?;
        let is_empty = response.body.is_empty();
        is_empty.then_some(()).ok_or(Error::ResponseNotEmpty)
    }

    async fn send(&self, call: &Call) -> Result<Response, Error> {
        send_with_retries(call, &self.shared.waits, || self.send_once(call)).await
    }

    /// Sends a request. If the token has expired, renews it and sends the request again.
    ///
    /// # Errors
    /// The outer error if no token is available, even after retries, or the token is invalid; the inner error if the server does
    /// not respond.
    async fn send_once(&self, call: &Call) -> Result<Result<Response, Error>, Error> {
        let Shared {
            transport, login, ..
        } = &*self.shared;
        let provider = self.shared.provider();
        let token = login.access_token(&provider).await?;
        let response = transport.send(call, token.as_ref()).await;
        if let Some(origin) = &login.token_source
            && response.as_ref().is_ok_and(Response::reports_invalid_token)
        {
            return Err(Error::TokenInvalid {
                origin: origin.clone(),
                server: transport.server.clone(),
            });
        }
        let is_expired = Response::reports_expired_token;
        if !response.as_ref().is_ok_and(is_expired) {
            return Ok(response);
        }
        let renewed = login.renew(&provider, token.as_ref()).await?;
        Ok(transport.send(call, renewed.as_ref()).await)
    }
}

impl Shared {
    fn provider(&self) -> IdentityProvider<'_> {
        IdentityProvider {
            transport: &self.transport,
            waits: &self.waits,
            options: &self.login_options,
            on_user_action: self.on_user_action.as_ref(),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Client({})", self.server())
    }
}

/// A builder of a [`Client`].
#[must_use]
pub struct ClientBuilder {
    server: String,
    authorities_pem: Vec<Vec<u8>>,
    identity_pem: Option<Zeroizing<Vec<u8>>>,
    login: Login,
    login_options: LoginOptions,
    on_user_action: Option<OnUserAction>,
    waits: Waits,
}

impl ClientBuilder {
    /// Trusts these CA certificates (PEM) instead of the system's, for the server and its identity provider. Further calls add
    /// more.
    pub fn trusting_only(mut self, authorities_pem: impl Into<Vec<u8>>) -> Self {
        self.authorities_pem.push(authorities_pem.into());
        self
    }

    /// Presents a client certificate: its chain, leaf first, and its private key, both PEM.
    pub fn client_certificate(mut self, chain_pem: &[u8], private_key_pem: &[u8]) -> Self {
        let mut identity = Zeroizing::new(Vec::with_capacity(
            chain_pem.len() + private_key_pem.len() + 1,
        ));
        identity.extend_from_slice(chain_pem);
        identity.push(b'\n');
        identity.extend_from_slice(private_key_pem);
        self.identity_pem = Some(identity);
        self
    }

    /// Logs in with this grant, before the first request and whenever the login has expired.
    pub fn grant(mut self, grant: Grant) -> Self {
        self.login.grant = Some(grant);
        self
    }

    /// Logs in only while this is the address of the server's identity provider.
    pub fn identity_provider(mut self, address: String) -> Self {
        self.login.provider = Some(address);
        self
    }

    /// Requests tokens with these options.
    pub fn login_options(mut self, options: LoginOptions) -> Self {
        self.login_options = options;
        self
    }

    /// Reports the steps that a user must take to complete a login with [`Grant::DeviceCode`] or [`Grant::AuthorizationCode`].
    pub fn on_user_action(mut self, report: impl Fn(&UserAction) + Send + Sync + 'static) -> Self {
        self.on_user_action = Some(Box::new(report));
        self
    }

    /// Uses existing tokens.
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.login.state.get_mut().tokens = Some(tokens);
        self
    }

    /// Sets the name of the file or variable that contains the token, for the error message when the token has expired or is invalid.
    pub fn token_source(mut self, source: String) -> Self {
        self.login.token_source = Some(source);
        self
    }

    /// Calls the function with new tokens, so that it can store them.
    pub fn on_new_tokens(mut self, store: impl Fn(&Tokens) + Send + Sync + 'static) -> Self {
        self.login.on_new_tokens = Some(Box::new(store));
        self
    }

    /// Calls the function before tokens are renewed, on a thread where it may block. It returns the tokens as other processes have
    /// stored them, which replace the known ones.
    pub(crate) fn before_renewal(
        mut self,
        stored: impl Fn() -> StoredLogin + Send + Sync + 'static,
    ) -> Self {
        self.login.before_renewal = Some(Arc::new(stored));
        self
    }

    /// Calls the function before each wait for an unavailable server.
    pub fn on_wait(mut self, report: impl Fn(Wait) + Send + Sync + 'static) -> Self {
        self.waits.on_wait = Some(Box::new(report));
        self
    }

    /// Sets the maximum number of retries of a request. Defaults to 4; 0 disables retries.
    ///
    /// The client retries while it can't connect to the server or the server responds with 503, except in read-only mode. It also
    /// retries a read whose connection is lost.
    ///
    /// A write may have taken effect despite a 503, if the server lost its database before the result. A retry then adds another
    /// version.
    pub fn retries_max(mut self, retries_max: u32) -> Self {
        self.waits.retries_max = retries_max;
        self
    }

    /// Builds the client. Sends no request yet.
    ///
    /// The client uses the proxies in `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in upper or lower case. It installs aws-lc as the
    /// process's TLS provider if none is installed.
    pub fn build(self) -> Result<Client, Error> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let mut http = reqwest::Client::builder()
            .https_only(true)
            .redirect(Policy::none())
            .tls_version_min(tls::Version::TLS_1_2)
            .user_agent(concat!("keywright/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(RESPONSE_TIMEOUT);
        if !self.authorities_pem.is_empty() {
            http = http.tls_certs_only(authorities(&self.authorities_pem)?);
        }
        if let Some(identity) = &self.identity_pem {
            let identity =
                Identity::from_pem(identity).map_err(|_| Error::ClientCertificateMalformed)?;
            http = http.identity(identity);
        }
        let http = http.build().map_err(|cause| {
            Error::Configuration(format!(
                "could not create the client: {}",
                build_error(&cause)
            ))
        })?;
        let shared = Shared {
            transport: Transport {
                http,
                server: address(&self.server)?,
            },
            login: self.login,
            waits: self.waits,
            login_options: self.login_options,
            on_user_action: self.on_user_action,
        };
        Ok(Client {
            shared: Arc::new(shared),
        })
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ClientBuilder")
    }
}

fn authorities(bundles: &[Vec<u8>]) -> Result<Vec<Certificate>, Error> {
    let mut certificates = Vec::new();
    for bundle in bundles {
        let found =
            Certificate::from_pem_bundle(bundle).map_err(|_| Error::AuthoritiesMalformed)?;
        if found.is_empty() {
            return Err(Error::AuthoritiesMalformed);
        }
        certificates.extend(found);
    }
    Ok(certificates)
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The timeout of a whole response. Long, because regenerating everything below a CA takes a while.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_and_client_certificates_must_be_pem() {
        for pem in ["", "no certificate"] {
            let refused = Client::builder("https://a.example").trusting_only(pem);
            assert!(matches!(refused.build(), Err(Error::AuthoritiesMalformed)));
        }
        let refused = Client::builder("https://a.example").client_certificate(b"x", b"y");
        assert!(matches!(
            refused.build(),
            Err(Error::ClientCertificateMalformed)
        ));
    }
}
