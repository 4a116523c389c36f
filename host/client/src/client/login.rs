//! The tokens of a client: requests, renews and revokes them.

use std::{
    fs::File,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    sync::{Mutex, MutexGuard},
    task::spawn_blocking,
};

use super::{
    browser::tokens_by_browser,
    discovery::Revocation,
    error::Error,
    grant::{Grant, Tokens},
    provider::{ClientIdentity, IdentityProvider},
};
use crate::Secret;

/// The tokens of a client, and the grant to request them. With neither tokens nor a grant, the client sends no token: it has a
/// client certificate, or only sends requests that need no authentication.
#[derive(Default)]
pub(super) struct Login {
    pub(super) grant: Option<Grant>,
    /// The only identity provider that may get the grant, if set.
    pub(super) provider: Option<String>,
    /// The source of the token, or `None` if a login issued it.
    pub(super) token_source: Option<String>,
    pub(super) on_new_tokens: Option<OnNewTokens>,
    pub(super) before_renewal: Option<Arc<BeforeRenewal>>,
    /// Locked during a token request, so that concurrent requests with an expired token renew it only once.
    pub(super) state: Mutex<State>,
    /// The number of token requests that failed because the provider was unavailable.
    outages: AtomicU64,
}

pub(super) type OnNewTokens = Box<dyn Fn(&Tokens) + Send + Sync>;

pub(super) type BeforeRenewal = dyn Fn() -> StoredLogin + Send + Sync;

/// A login that is shared with other processes. They do not renew it until this is dropped.
#[derive(Default)]
pub(crate) struct StoredLogin {
    /// The latest tokens, if they are known.
    pub(crate) tokens: Option<Tokens>,
    pub(crate) _lock: Option<File>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) tokens: Option<Tokens>,
    /// The error of the last token request that failed because the provider was unavailable.
    outage: Option<Error>,
}

/// Exclusive access of one request to the state.
struct Access<'a> {
    state: MutexGuard<'a, State>,
    /// The number of outages before the request waited for access.
    outages_before: u64,
}

impl Login {
    /// Requests tokens with the grant.
    pub(super) async fn log_in(&self, provider: &IdentityProvider<'_>) -> Result<Tokens, Error> {
        let mut access = self.access().await;
        let grant = self.grant.as_ref().ok_or(Error::NotLoggedIn)?;
        self.request(provider, grant, &mut access).await
    }

    /// Revokes the login. If the provider refuses an expired access token, renews it once and tries again.
    pub(super) async fn log_out(&self, provider: &IdentityProvider<'_>) -> Result<(), Error> {
        let mut access = self.access().await;
        let tokens = access.state.tokens.clone().ok_or(Error::NotLoggedIn)?;
        let grant = self.grant.as_ref();
        let mut revoked = revoke(provider, &tokens, grant).await;
        if let (Err(Error::RevocationRefused(refusal)), Some(refresh_token)) =
            (&revoked, tokens.refresh_token)
            && refusal.status == UNAUTHORIZED
        {
            let refresh = Grant::RefreshToken(refresh_token);
            let fresh = self.request(provider, &refresh, &mut access).await?;
            revoked = revoke(provider, &fresh, grant).await;
        }
        // After a failure, the caller can try again.
        if revoked.is_ok() {
            access.state.tokens = None;
        }
        revoked
    }

    /// Returns the access token. Requests tokens if there are none yet. `None` if there is no grant either.
    pub(super) async fn access_token(
        &self,
        provider: &IdentityProvider<'_>,
    ) -> Result<Option<Secret>, Error> {
        let mut access = self.access().await;
        match (&access.state.tokens, &self.grant) {
            (Some(tokens), _) => Ok(Some(tokens.access_token.clone())),
            (None, Some(grant)) => {
                let tokens = self.request(provider, grant, &mut access).await?;
                Ok(Some(tokens.access_token))
            }
            (None, None) => Ok(None),
        }
    }

    /// Replaces an expired access token, unless another request has already replaced it. Uses the refresh token or, if that
    /// fails, the grant.
    pub(super) async fn renew(
        &self,
        provider: &IdentityProvider<'_>,
        expired: Option<&Secret>,
    ) -> Result<Option<Secret>, Error> {
        let mut access = self.access().await;
        if let Some(tokens) = &access.state.tokens
            && Some(&tokens.access_token) != expired
        {
            return Ok(Some(tokens.access_token.clone()));
        }
        // Other processes may use the same refresh token. Many providers accept it once, and treat a second use as theft.
        let stored = self.stored_login().await;
        if let Some(tokens) = &stored.tokens {
            access.state.tokens = Some(tokens.clone());
            if Some(&tokens.access_token) != expired {
                return Ok(Some(tokens.access_token.clone()));
            }
        }
        let tokens = access.state.tokens.as_ref();
        let refresh_token = tokens.and_then(|tokens| tokens.refresh_token.clone());
        if let Some(refresh_token) = refresh_token {
            let refresh = Grant::RefreshToken(refresh_token);
            match self.request(provider, &refresh, &mut access).await {
                Ok(tokens) => return Ok(Some(tokens.access_token)),
                Err(Error::LoginRefused(busy)) if busy.status == TOO_MANY_REQUESTS => {
                    return Err(Error::ProviderUnavailable(Box::new(busy.into())));
                }
                Err(Error::LoginRefused(_)) => {}
                Err(cause) => return Err(cause),
            }
        }
        match &self.grant {
            None | Some(Grant::RefreshToken(_)) => {
                let source = self.token_source.clone();
                Err(source.map_or(Error::LoginExpired, Error::TokenExpired))
            }
            Some(grant) => {
                let tokens = self.request(provider, grant, &mut access).await?;
                Ok(Some(tokens.access_token))
            }
        }
    }

    /// Waits until no other process renews the login, and returns it.
    async fn stored_login(&self) -> StoredLogin {
        let Some(before_renewal) = self.before_renewal.clone() else {
            return StoredLogin::default();
        };
        let stored = spawn_blocking(move || before_renewal());
        stored.await.unwrap_or_default()
    }

    /// Waits until no other request uses the state.
    async fn access(&self) -> Access<'_> {
        let outages_before = self.outages.load(Ordering::Relaxed);
        Access {
            state: self.state.lock().await,
            outages_before,
        }
    }

    /// Requests tokens and stores them.
    ///
    /// If the provider was unavailable for another request while this request was waiting for access, returns the same error.
    /// Without this rule, concurrent requests would make all their retries one after the other.
    async fn request(
        &self,
        provider: &IdentityProvider<'_>,
        grant: &Grant,
        access: &mut Access<'_>,
    ) -> Result<Tokens, Error> {
        let outage = access.state.outage.clone();
        if let Some(outage) = outage
            && self.outages.load(Ordering::Relaxed) != access.outages_before
        {
            return Err(outage);
        }
        let refreshed = access.state.tokens.as_ref();
        let refreshed = refreshed.filter(|_| matches!(grant, Grant::RefreshToken(_)));
        let issued_by = refreshed.and_then(|tokens| tokens.issued_by.as_deref());
        let issued_by = issued_by.or(self.provider.as_deref());
        let mut tokens = match tokens_by_grant(provider, grant, issued_by).await {
            Ok(tokens) => tokens,
            Err(error) => {
                if error.is_unavailable() {
                    access.state.outage = Some(error.clone());
                    self.outages.fetch_add(1, Ordering::Relaxed);
                }
                return Err(error);
            }
        };
        // If the response contains no new refresh token, the old refresh token stays valid (RFC 6749, section 6).
        if let (None, Grant::RefreshToken(used)) = (&tokens.refresh_token, grant) {
            tokens.refresh_token = Some(used.clone());
        }
        if let Some(on_new_tokens) = &self.on_new_tokens {
            on_new_tokens(&tokens);
        }
        access.state.tokens = Some(tokens.clone());
        Ok(tokens)
    }
}

/// Requests tokens with a grant. `issued_by` is the provider of its refresh token, if known.
async fn tokens_by_grant(
    provider: &IdentityProvider<'_>,
    grant: &Grant,
    issued_by: Option<&str>,
) -> Result<Tokens, Error> {
    let endpoints = provider.endpoints(issued_by).await?;
    let (client, form) = match grant {
        Grant::ClientCredentials {
            client_id,
            client_secret,
        } => {
            let client = ClientIdentity {
                id: client_id,
                secret: Some(client_secret),
            };
            let mut form = vec![("grant_type", "client_credentials")];
            form.extend(provider.options.initial_parameters());
            (client, form)
        }
        Grant::Password { username, password } => {
            let mut form = vec![
                ("grant_type", "password"),
                ("username", username),
                ("password", password.expose()),
            ];
            form.extend(provider.options.initial_parameters());
            (provider.public_client(), form)
        }
        Grant::RefreshToken(refresh_token) => {
            let mut form = vec![
                ("grant_type", "refresh_token"),
                ("refresh_token", refresh_token.expose()),
            ];
            form.extend(provider.options.resource_parameter());
            (provider.public_client(), form)
        }
        Grant::DeviceCode => return provider.tokens_by_device(&endpoints).await,
        Grant::AuthorizationCode => return tokens_by_browser(provider, &endpoints).await,
    };
    provider.request_tokens(&endpoints, client, form).await
}

/// Revokes a login, with the client's secret if the grant has it.
async fn revoke(
    provider: &IdentityProvider<'_>,
    tokens: &Tokens,
    grant: Option<&Grant>,
) -> Result<(), Error> {
    let endpoints = provider.endpoints(tokens.issued_by.as_deref()).await?;
    let revoked = match &endpoints.revocation {
        Revocation::ByTokenId(url) => {
            let id = tokens.id().ok_or(Error::TokenWithoutId)?;
            let url = format!("{url}/{id}");
            let request = || {
                let request = provider.transport.http.delete(&url);
                request.bearer_auth(tokens.access_token.expose())
            };
            provider.send(&url, request).await
        }
        Revocation::ByToken(url) => {
            let client = match grant {
                Some(Grant::ClientCredentials {
                    client_id,
                    client_secret,
                }) => ClientIdentity {
                    id: client_id,
                    secret: Some(client_secret),
                },
                _ if provider.options.is_of_client => return Err(Error::ClientSecretMissing),
                _ => provider.public_client(),
            };
            let (token, hint) = match &tokens.refresh_token {
                Some(refresh_token) => (refresh_token, "refresh_token"),
                None => (&tokens.access_token, "access_token"),
            };
            let form = [("token", token.expose()), ("token_type_hint", hint)];
            provider.post(&endpoints, url, client, &form).await
        }
        Revocation::Unsupported => Err(Error::GrantUnsupported("revocation_endpoint")),
    };
    match revoked {
        Err(Error::LoginRefused(refusal)) => Err(Error::RevocationRefused(refusal)),
        revoked => revoked.map(|_| ()),
    }
}

/// The status for an access token that the provider does not accept (RFC 6750, section 3.1).
const UNAUTHORIZED: u16 = 401;

/// The status for too many requests of a client (RFC 6585, section 4). The login is still valid.
const TOO_MANY_REQUESTS: u16 = 429;
