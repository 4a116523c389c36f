//! The client of one server.

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
use transport::{Answer, Transport};
use wait::Waits;

/// A client of one server. It is cheap to clone, and all clones share connections and login.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

/// What all clones of a client share.
struct Shared {
    transport: Transport,
    login: Login,
    waits: Waits,
    login_options: LoginOptions,
    user_actions: Option<UserActions>,
}

impl Client {
    /// Begins to make a client of the server at an address: `https`, a host, and a port where it is not 443.
    pub fn builder(server: &str) -> ClientBuilder {
        ClientBuilder::new(server)
    }

    /// The server's address, without a slash at its end.
    #[must_use]
    pub fn server(&self) -> &str {
        self.shared.transport.server()
    }

    /// Logs in now rather than with the first request.
    ///
    /// # Errors
    /// When the identity provider refuses, or it or the server can't be reached.
    pub async fn log_in(&self) -> Result<Tokens, Error> {
        self.shared.login.log_in(&self.shared.provider()).await
    }

    /// Ends the login at the identity provider, so that its refresh token is of no use any more. An access token that has
    /// expired is renewed for it once.
    ///
    /// # Errors
    /// When there is no login, or the provider refuses or has no way to end one.
    pub async fn log_out(&self) -> Result<(), Error> {
        self.shared.login.log_out(&self.shared.provider()).await
    }

    /// Sends a request of the API and reads the answer.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Error> {
        let body = self.send(call).await?;
        keywright_json::utf8(&body)
            .and_then(keywright_json::check_response)
            .and_then(Checked::read)
            .map_err(Error::AnswerMalformed)
    }

    /// Sends a request of the API whose answer says no more than that it was done.
    pub(crate) async fn tell(&self, call: &Call) -> Result<(), Error> {
        self.send(call).await.map(|_| ())
    }

    /// Sends a request of the API, and sends it again after a while when the server was not available for it.
    async fn send(&self, call: &Call) -> Result<Zeroizing<Vec<u8>>, Error> {
        let mut retries = 0;
        loop {
            let (error, retry_after) = match self.send_once(call).await? {
                Ok(answer) if answer.is_success() => return Ok(answer.body),
                Ok(answer) if answer.is_unavailable() => {
                    let retry_after = answer.retry_after;
                    (Error::from(Refusal::from(answer)), retry_after)
                }
                Ok(answer) => return Err(Refusal::from(answer).into()),
                Err(error) if call.may_be_sent_again_after(&error) => (error, None),
                Err(error) => return Err(error),
            };
            if !self.shared.waits.wait(retries, retry_after).await {
                return Err(error);
            }
            retries += 1;
        }
    }

    /// Sends a request of the API, and once more with another token when it had expired.
    ///
    /// # Errors
    /// When there is no token to be had, for which was waited already; the inner one, when there is no answer.
    async fn send_once(&self, call: &Call) -> Result<Result<Answer, Error>, Error> {
        let Shared {
            transport, login, ..
        } = &*self.shared;
        let provider = self.shared.provider();
        let token = login.access_token(&provider).await?;
        let answer = transport.send(call, token.as_ref()).await;
        let is_expired = Answer::says_that_the_token_has_expired;
        if !answer.as_ref().is_ok_and(is_expired) {
            return Ok(answer);
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

impl From<Answer> for Refusal {
    fn from(answer: Answer) -> Self {
        Self::read(answer.status, &answer.body)
    }
}
