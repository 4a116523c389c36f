//! Who a client is, as far as tokens say it.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use tokio::sync::{Mutex, MutexGuard};

use super::{Error, Grant, Tokens, identity::IdentityProvider};
use crate::Secret;

/// Who is told of new tokens.
pub(super) type Renewed = Box<dyn Fn(&Tokens) + Send + Sync>;

/// The tokens of a client, and what they are had by. A client without both sends no token: it has a client certificate, or
/// asks for what is open to all.
pub(super) struct Login {
    grant: Option<Grant>,
    renewed: Option<Renewed>,
    /// Held while tokens are asked for, so that requests that find theirs expired together ask once.
    held: Mutex<Held>,
    /// How often they were asked for in vain, because nobody was there to give them.
    outages: AtomicU64,
}

/// What is held of a login.
struct Held {
    tokens: Option<Tokens>,
    /// Why they could not be asked for the last time that nobody was there to give them.
    outage: Option<Error>,
}

/// The turn of one request to look at the tokens and to ask for others.
struct Turn<'a> {
    held: MutexGuard<'a, Held>,
    /// How many outages there were when it began to wait for its turn.
    outages_before: u64,
}

impl Login {
    pub(super) fn new(
        grant: Option<Grant>,
        tokens: Option<Tokens>,
        renewed: Option<Renewed>,
    ) -> Self {
        Self {
            grant,
            renewed,
            held: Mutex::new(Held {
                tokens,
                outage: None,
            }),
            outages: AtomicU64::new(0),
        }
    }

    /// Asks for tokens by the grant.
    pub(super) async fn log_in(&self, provider: &IdentityProvider<'_>) -> Result<Tokens, Error> {
        let mut turn = self.turn().await;
        let grant = self.grant.as_ref().ok_or(Error::NotLoggedIn)?;
        self.ask(provider, grant, &mut turn).await
    }

    /// Ends the login. Some providers take no access token for it that has expired: then one that is fresh ends it.
    pub(super) async fn log_out(&self, provider: &IdentityProvider<'_>) -> Result<(), Error> {
        let mut turn = self.turn().await;
        let tokens = turn.held.tokens.take().ok_or(Error::NotLoggedIn)?;
        let refused = match provider.revoke(&tokens).await {
            Err(Error::LoginRefused(refusal)) if refusal.status == UNAUTHORIZED => refusal,
            told => return told,
        };
        let Some(refresh_token) = tokens.refresh_token else {
            return Err(Error::LoginRefused(refused));
        };
        let fresh = provider.tokens(&Grant::RefreshToken(refresh_token)).await?;
        provider.revoke(&fresh).await
    }

    /// The access token, if requests are to show one.
    pub(super) async fn access_token(
        &self,
        provider: &IdentityProvider<'_>,
    ) -> Result<Option<Secret>, Error> {
        let mut turn = self.turn().await;
        match (&turn.held.tokens, &self.grant) {
            (Some(tokens), _) => Ok(Some(tokens.access_token.clone())),
            (None, Some(grant)) => {
                let tokens = self.ask(provider, grant, &mut turn).await?;
                Ok(Some(tokens.access_token))
            }
            (None, None) => Ok(None),
        }
    }

    /// An access token in the place of one that has expired, unless another request has fetched one already: by the refresh
    /// token, or else by the grant.
    pub(super) async fn renewed(
        &self,
        provider: &IdentityProvider<'_>,
        expired: Option<&Secret>,
    ) -> Result<Option<Secret>, Error> {
        let mut turn = self.turn().await;
        if let Some(tokens) = &turn.held.tokens
            && Some(&tokens.access_token) != expired
        {
            return Ok(Some(tokens.access_token.clone()));
        }
        let tokens = turn.held.tokens.as_ref();
        let refresh_token = tokens.and_then(|tokens| tokens.refresh_token.clone());
        if let Some(refresh_token) = refresh_token {
            let refresh = Grant::RefreshToken(refresh_token);
            match self.ask(provider, &refresh, &mut turn).await {
                Ok(tokens) => return Ok(Some(tokens.access_token)),
                Err(Error::LoginRefused(_)) => {}
                Err(cause) => return Err(cause),
            }
        }
        match &self.grant {
            None | Some(Grant::RefreshToken(_)) => Err(Error::LoginExpired),
            Some(grant) => {
                let tokens = self.ask(provider, grant, &mut turn).await?;
                Ok(Some(tokens.access_token))
            }
        }
    }

    /// Waits until nobody else asks for tokens.
    async fn turn(&self) -> Turn<'_> {
        let outages_before = self.outages.load(Ordering::Relaxed);
        Turn {
            held: self.held.lock().await,
            outages_before,
        }
    }

    /// Asks for tokens and keeps them. Where nobody was there to give them to a request for which this one waited, this one is
    /// told the same: otherwise those that came together would try for as long as the retries take, one after the other.
    async fn ask(
        &self,
        provider: &IdentityProvider<'_>,
        grant: &Grant,
        turn: &mut Turn<'_>,
    ) -> Result<Tokens, Error> {
        let outage = turn.held.outage.as_ref().and_then(Error::outage);
        if let Some(outage) = outage
            && self.outages.load(Ordering::Relaxed) != turn.outages_before
        {
            return Err(outage);
        }
        let mut given = match provider.tokens(grant).await {
            Ok(given) => given,
            Err(error) => {
                if let Some(outage) = error.outage() {
                    turn.held.outage = Some(outage);
                    self.outages.fetch_add(1, Ordering::Relaxed);
                }
                return Err(error);
            }
        };
        // A provider that gives no other refresh token means that the old one goes on (RFC 6749, section 6).
        if let (None, Grant::RefreshToken(used)) = (&given.refresh_token, grant) {
            given.refresh_token = Some(used.clone());
        }
        if let Some(renewed) = &self.renewed {
            renewed(&given);
        }
        turn.held.tokens = Some(given.clone());
        Ok(given)
    }
}

/// How a provider answers that does not take the access token (RFC 6750, section 3.1).
const UNAUTHORIZED: u16 = 401;

impl fmt::Debug for Login {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Login")
            .field("grant", &self.grant)
            .finish_non_exhaustive()
    }
}
