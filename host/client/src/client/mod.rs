//! The client of one server.

mod builder;
mod call;
mod error;
mod identity;
mod login;
mod transport;
mod wait;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

pub use builder::ClientBuilder;
pub(crate) use call::Call;
pub use error::{Error, Malformed, Refusal};
pub use identity::{Grant, Tokens};
pub use wait::Wait;

use identity::IdentityProvider;
use login::Login;
use transport::{Answer, Transport};
use wait::Waits;

/// A client of one server. It is cheap to clone, and all clones share connections and login.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

/// What all clones of a client share.
#[derive(Debug)]
struct Shared {
    transport: Transport,
    login: Login,
    waits: Waits,
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
    /// When there is no login, the access token says nothing of its id, or the provider refuses.
    pub async fn log_out(&self) -> Result<(), Error> {
        self.shared.login.log_out(&self.shared.provider()).await
    }

    /// Sends a request of the API and reads the answer.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Error> {
        let body = self.send(call).await?;
        serde_json::from_slice(&body).map_err(|cause| Error::AnswerMalformed(cause.into()))
    }

    /// Sends a request of the API whose answer says no more than that it was done.
    pub(crate) async fn tell(&self, call: &Call) -> Result<(), Error> {
        self.send(call).await.map(|_| ())
    }

    async fn send(&self, call: &Call) -> Result<Zeroizing<Vec<u8>>, Error> {
        let Shared {
            transport,
            login,
            waits,
        } = &*self.shared;
        let provider = self.shared.provider();
        let mut token = login.access_token(&provider).await?;
        let mut is_renewed = false;
        let mut attempts = 0;
        loop {
            let answer = transport.send(call, token.as_ref()).await?;
            if answer.is_success() {
                return Ok(answer.body);
            }
            if answer.says_that_the_token_has_expired() && !is_renewed {
                is_renewed = true;
                token = login.renewed(&provider, token.as_ref()).await?;
                continue;
            }
            if !answer.is_unavailable() || !waits.wait(attempts, answer.retry_after).await {
                return Err(Error::from(Refusal::from(answer)));
            }
            attempts += 1;
        }
    }
}

impl Shared {
    fn provider(&self) -> IdentityProvider<'_> {
        IdentityProvider {
            transport: &self.transport,
            waits: &self.waits,
        }
    }
}

impl From<Answer> for Refusal {
    fn from(answer: Answer) -> Self {
        Self::read(answer.status, &answer.body)
    }
}
