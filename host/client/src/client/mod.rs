//! The client of a server.

mod builder;
mod call;
mod error;
mod identity;
mod login;
mod transport;
mod wait;

use std::{fmt, sync::Arc};

use keywright_json::Checked;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

pub use builder::ClientBuilder;
pub(crate) use call::Call;
pub use error::{Error, Loss, Refusal};
pub use identity::{Grant, LoginOptions, Tokens, UserAction};
pub use wait::Wait;

use identity::{IdentityProvider, UserActions};
use login::Login;
pub(crate) use transport::address;
use transport::{Response, Transport};
use wait::Waits;

/// A client of one server. Cloning is cheap; clones share connections and login.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

/// The state shared by all clones of a client.
struct Shared {
    transport: Transport,
    login: Login,
    waits: Waits,
    login_options: LoginOptions,
    user_actions: Option<UserActions>,
}

impl Client {
    /// Returns a builder for the server at this address: `https`, a host, and an optional port.
    pub fn builder(server: &str) -> ClientBuilder {
        ClientBuilder::new(server)
    }

    /// Returns the server's address without a trailing slash.
    #[must_use]
    pub fn server(&self) -> &str {
        self.shared.transport.server()
    }

    /// Logs in now instead of before the first request.
    ///
    /// # Errors
    /// When the identity provider refuses the login, or the provider or the server is unreachable.
    pub async fn log_in(&self) -> Result<Tokens, Error> {
        self.shared.login.log_in(&self.shared.provider()).await
    }

    /// Revokes the login at the identity provider, so that its refresh token becomes invalid. Renews an expired access token once,
    /// if the provider requires a valid one.
    ///
    /// # Errors
    /// When there is no login, or the provider refuses or does not support the revocation.
    pub async fn log_out(&self) -> Result<(), Error> {
        self.shared.login.log_out(&self.shared.provider()).await
    }

    /// Sends a request and parses the response.
    pub(crate) async fn execute<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Error> {
        let body = self.send(call).await?;
        keywright_json::utf8(&body)
            .and_then(keywright_json::check_response)
            .and_then(Checked::read)
            .map_err(Error::AnswerMalformed)
    }

    /// Sends a request and ignores the body of the response.
    pub(crate) async fn execute_without_result(&self, call: &Call) -> Result<(), Error> {
        self.send(call).await.map(|_| ())
    }

    /// Sends a request, and retries it with backoff while the server is unavailable.
    async fn send(&self, call: &Call) -> Result<Zeroizing<Vec<u8>>, Error> {
        let mut retries = 0;
        loop {
            let (error, retry_after) = match self.send_once(call).await? {
                Ok(response) if response.is_success() => return Ok(response.body),
                Ok(response) if response.is_unavailable() => {
                    let retry_after = response.retry_after;
                    (Error::from(Refusal::from(response)), retry_after)
                }
                Ok(response) => return Err(Refusal::from(response).into()),
                Err(error) if call.may_be_sent_again_after(&error) => (error, None),
                Err(error) => return Err(error),
            };
            if !self.shared.waits.wait(retries, retry_after).await {
                return Err(error);
            }
            retries += 1;
        }
    }

    /// Sends a request, and a second time with a new token if the token had expired.
    ///
    /// # Errors
    /// The outer error if no token is available, after the retries for it; the inner one if the server does not respond.
    async fn send_once(&self, call: &Call) -> Result<Result<Response, Error>, Error> {
        let Shared {
            transport, login, ..
        } = &*self.shared;
        let provider = self.shared.provider();
        let token = login.access_token(&provider).await?;
        let response = transport.send(call, token.as_ref()).await;
        let is_expired = Response::reports_expired_token;
        if !response.as_ref().is_ok_and(is_expired) {
            return Ok(response);
        }
        let renewed = login.renewed(&provider, token.as_ref()).await?;
        Ok(transport.send(call, renewed.as_ref()).await)
    }
}

impl Shared {
    fn provider(&self) -> IdentityProvider<'_> {
        IdentityProvider {
            transport: &self.transport,
            waits: &self.waits,
            options: &self.login_options,
            user_actions: self.user_actions.as_ref(),
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Shared")
            .field("transport", &self.transport)
            .field("login", &self.login)
            .field("waits", &self.waits)
            .finish_non_exhaustive()
    }
}

impl From<Response> for Refusal {
    fn from(response: Response) -> Self {
        Self::read(response.status, &response.body)
    }
}
