//! Login by OIDC: the authorization code flow with PKCE (OIDC Core 1.0, section 3.1; RFC 7636), and the refresh of
//! tokens.
//!
//! A separate cookie contains the state, the nonce and the PKCE verifier of a login, so that a login uses no memory of the
//! server before it succeeds. The session's cookie is `SameSite=Strict`, so browsers don't send it with a request to which the
//! identity provider redirected. Therefore the login ends with a page of the console that opens the requested page.

use std::{
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::http::{self, StatusCode};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta, Utc};
use keywright_core::{Secret, log, permission::Actor};
use oauth2::{
    AccessToken, AuthUrl, AuthorizationCode, Client, ClientId, ClientSecret, CsrfToken,
    EndpointNotSet, EndpointSet, ExtraTokenFields, PkceCodeChallenge, PkceCodeVerifier,
    RedirectUrl, RefreshToken, RequestTokenError, Scope, StandardRevocableToken,
    StandardTokenResponse, TokenResponse, TokenUrl,
    basic::{
        BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenIntrospectionResponse,
        BasicTokenType,
    },
};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    task::JoinError,
};

use crate::{
    page::PageError,
    paths::CALLBACK,
    ports::{ConsoleSettings, Endpoints, IdentityProvider, ProviderError},
    session::{Session, SessionTokens, random_text},
};

/// The console's client of the identity provider.
pub(crate) struct Login {
    provider: Arc<dyn IdentityProvider>,
    settings: ConsoleSettings,
    /// The last result of looking up the provider's endpoints, with its time.
    endpoints: Mutex<Option<(Instant, Result<Endpoints, ProviderError>)>>,
    /// The networks of the clients whose logins wait for the provider.
    in_progress: parking_lot::Mutex<Vec<IpAddr>>,
}

/// A permit for a login to wait for the provider, until it is dropped.
pub(crate) struct LoginPermit<'a> {
    login: &'a Login,
    network: IpAddr,
}

impl Drop for LoginPermit<'_> {
    fn drop(&mut self) {
        let mut networks = self.login.in_progress.lock();
        let own = networks.iter().position(|other| *other == self.network);
        if let Some(own) = own {
            networks.swap_remove(own);
        }
    }
}

/// Returns the origin of an https address without a path, as browsers send it in `Origin`. `None` for other addresses.
#[must_use]
pub fn origin(address: &str) -> Option<String> {
    let address = RedirectUrl::new(address.to_owned()).ok()?;
    let origin = address.url().origin().ascii_serialization();
    let is_origin = address.url().as_str() == format!("{origin}/");
    (is_origin && address.url().scheme() == "https").then_some(origin)
}

/// A client of the `oauth2` crate with the two endpoints of the code flow.
type CodeClient = Client<
    BasicErrorResponse,
    Tokens,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointSet,
>;

type Sending = Pin<Box<dyn Future<Output = Result<http::Response<Vec<u8>>, ProviderError>> + Send>>;

type Tokens = StandardTokenResponse<IdFields, BasicTokenType>;

/// The field of a token response that OIDC adds.
#[derive(Debug, Deserialize, Serialize)]
struct IdFields {
    id_token: Option<AccessToken>,
}

impl ExtraTokenFields for IdFields {}

/// A login in progress, as stored in its cookie.
pub(crate) struct StartedLogin {
    pub(crate) state: String,
    nonce: String,
    verifier: String,
    /// The page to show after the login.
    pub(crate) then: String,
}

impl StartedLogin {
    /// Starts a login. `then` must be a page of the console.
    pub(crate) fn new(then: &str) -> Self {
        Self {
            state: random_text(),
            nonce: random_text(),
            verifier: random_text(),
            then: then.to_owned(),
        }
    }

    pub(crate) fn to_cookie(&self) -> String {
        let then = URL_SAFE_NO_PAD.encode(&self.then);
        [&self.state, &self.nonce, &self.verifier, &then]
            .map(String::as_str)
            .join(".")
    }

    pub(crate) fn of_cookie(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('.').collect();
        let [state, nonce, verifier, then] = parts.try_into().ok()?;
        let then = String::from_utf8(URL_SAFE_NO_PAD.decode(then).ok()?).ok()?;
        Some(Self {
            state: state.to_owned(),
            nonce: nonce.to_owned(),
            verifier: verifier.to_owned(),
            then,
        })
    }
}

impl Login {
    pub(crate) fn new(settings: ConsoleSettings, provider: Arc<dyn IdentityProvider>) -> Self {
        Self {
            provider,
            settings,
            endpoints: Mutex::default(),
            in_progress: parking_lot::Mutex::default(),
        }
    }

    /// Returns the access token of a session, after refreshing it if it is about to expire.
    pub(crate) async fn access_token(
        self: &Arc<Self>,
        session: &Session,
        now: DateTime<Utc>,
    ) -> Result<Secret, ProviderError> {
        let tokens = Arc::clone(&session.tokens).lock_owned().await;
        let refreshed_before = match tokens.refresh_token {
            Some(_) => now + REFRESHED_BEFORE_EXPIRY,
            None => now,
        };
        if !tokens.are_expired_at(refreshed_before) {
            return Ok(tokens.access_token.clone());
        }
        let refreshing = Arc::clone(self).refreshed(tokens, session.actor.clone(), now);
        // A task continues if the browser disconnects. Otherwise, the new refresh token would be lost, and the provider treats a
        // second use of the previous one as theft.
        let refreshing = tokio::spawn(log::await_with_request_id(log::request_id(), refreshing));
        let ended = |error: JoinError| Err(ProviderError(error.to_string()));
        refreshing.await.unwrap_or_else(ended)
    }

    /// Refreshes the tokens, and returns the access token. A failure is returned to all requests of the session for
    /// [`FAILURE_AGE_MAX`], so that they don't wait for the provider one after the other.
    async fn refreshed(
        self: Arc<Self>,
        mut tokens: OwnedMutexGuard<SessionTokens>,
        actor: Actor,
        now: DateTime<Utc>,
    ) -> Result<Secret, ProviderError> {
        let failed = tokens.failed_refresh.take();
        let recent = failed.filter(|(since, _)| since.elapsed() < FAILURE_AGE_MAX);
        let is_expired = tokens.are_expired_at(now);
        let (since, error) = match recent {
            Some(failed) => failed,
            None => match self.refresh(&mut tokens, &actor, now).await {
                Ok(()) => return Ok(tokens.access_token.clone()),
                Err(error) => {
                    if !is_expired {
                        tracing::warn!(%error, "could not refresh the token of a console session");
                    }
                    (Instant::now(), error.0)
                }
            },
        };
        tokens.failed_refresh = Some((since, error.clone()));
        if is_expired {
            return Err(ProviderError(error));
        }
        Ok(tokens.access_token.clone())
    }

    async fn refresh(
        &self,
        tokens: &mut SessionTokens,
        actor: &Actor,
        now: DateTime<Utc>,
    ) -> Result<(), ProviderError> {
        let refresh_token = tokens
            .refresh_token
            .as_ref()
            .ok_or_else(|| ProviderError("the access token has expired".to_owned()))?;
        let client = self.client().await?;
        let token = RefreshToken::new(refresh_token.expose().to_owned());
        let send = self.sender();
        let mut request = client.exchange_refresh_token(&token);
        if let Some(resource) = &self.settings.resource {
            request = request.add_extra_param(RESOURCE, resource);
        }
        let refreshed = request.request_async(&send).await;
        let refreshed = refreshed.map_err(|error| request_failed(&error))?;
        let refreshed = session_tokens(&refreshed, now);
        if refreshed.refresh_token.is_some() {
            tokens.refresh_token = refreshed.refresh_token;
        }
        if self.provider.actor(&refreshed.access_token).await? != *actor {
            return Err(ProviderError(
                "the refreshed token belongs to another user".to_owned(),
            ));
        }
        tokens.access_token = refreshed.access_token;
        tokens.expires_at = refreshed.expires_at;
        Ok(())
    }

    /// Returns a function that sends a request of the `oauth2` crate.
    fn sender(&self) -> impl Fn(http::Request<Vec<u8>>) -> Sending + use<> {
        let provider = Arc::clone(&self.provider);
        move |request| {
            let provider = Arc::clone(&provider);
            Box::pin(async move { provider.send(request).await })
        }
    }

    /// Returns the provider's endpoints, which are looked up again after [`ENDPOINTS_AGE_MAX`]. A failure is returned to all
    /// callers for [`FAILURE_AGE_MAX`], so that they don't wait for the provider one after the other.
    async fn endpoints(&self) -> Result<Endpoints, ProviderError> {
        let mut last = self.endpoints.lock().await;
        if let Some((since, result)) = last.as_ref() {
            let age_max = if result.is_ok() {
                ENDPOINTS_AGE_MAX
            } else {
                FAILURE_AGE_MAX
            };
            if since.elapsed() < age_max {
                return result.clone();
            }
        }
        let result = self.provider.endpoints().await;
        *last = Some((Instant::now(), result.clone()));
        result
    }

    pub(crate) fn permit(&self, network: IpAddr) -> Result<LoginPermit<'_>, PageError> {
        let mut networks = self.in_progress.lock();
        let of_network = networks.iter().filter(|other| **other == network).count();
        if networks.len() >= LOGINS_IN_PROGRESS_MAX || of_network >= LOGINS_OF_NETWORK_MAX {
            let message = "too many logins are in progress; try again later";
            return Err(PageError::new(StatusCode::SERVICE_UNAVAILABLE, message));
        }
        networks.push(network);
        Ok(LoginPermit {
            login: self,
            network,
        })
    }

    async fn client(&self) -> Result<CodeClient, ProviderError> {
        let endpoints = self.endpoints().await?;
        let malformed = |_| ProviderError("an endpoint of the provider is not a URL".to_owned());
        let settings = &self.settings;
        let redirect = format!("{}{CALLBACK}", settings.origin);
        let mut client = Client::new(ClientId::new(settings.client_id.clone()))
            .set_auth_uri(AuthUrl::new(endpoints.authorization).map_err(malformed)?)
            .set_token_uri(TokenUrl::new(endpoints.token).map_err(malformed)?)
            .set_redirect_uri(RedirectUrl::new(redirect).map_err(malformed)?);
        if let Some(secret) = &settings.client_secret {
            client = client.set_client_secret(ClientSecret::new(secret.expose().to_owned()));
        }
        Ok(client)
    }

    pub(crate) async fn page(&self, started: &StartedLogin) -> Result<String, ProviderError> {
        let verifier = PkceCodeVerifier::new(started.verifier.clone());
        let state = started.state.clone();
        let client = self.client().await?;
        let scopes = self.settings.scopes.iter().cloned();
        let mut request = client
            .authorize_url(|| CsrfToken::new(state))
            .add_scopes(scopes.map(Scope::new))
            .add_extra_param("nonce", started.nonce.clone())
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
        if let Some(resource) = &self.settings.resource {
            request = request.add_extra_param(RESOURCE, resource);
        }
        Ok(request.url().0.to_string())
    }

    /// Returns the address of the provider's logout page, if it is known without a request. The page asks the user, because the
    /// address contains no token.
    pub(crate) fn logout_page(&self) -> Option<String> {
        // A request for the endpoints holds the lock.
        let last = self.endpoints.try_lock().ok()?;
        let (_, result) = last.as_ref()?;
        let url = result.as_ref().ok()?.logout.as_ref()?;
        let separator = if url.contains('?') { '&' } else { '?' };
        let client_id = form_urlencoded::Serializer::new(String::new())
            .append_pair("client_id", &self.settings.client_id)
            .finish();
        Some(format!("{url}{separator}{client_id}"))
    }

    /// Exchanges the code of a login for tokens, and checks the ID token.
    pub(crate) async fn exchange(
        &self,
        started: &StartedLogin,
        code: &str,
        now: DateTime<Utc>,
    ) -> Result<SessionTokens, LoginError> {
        let client = self.client().await.map_err(LoginError::Unavailable)?;
        let send = self.sender();
        let mut request = client
            .exchange_code(AuthorizationCode::new(code.to_owned()))
            .set_pkce_verifier(PkceCodeVerifier::new(started.verifier.clone()));
        if let Some(resource) = &self.settings.resource {
            request = request.add_extra_param(RESOURCE, resource);
        }
        let tokens = request.request_async(&send).await;
        let tokens = tokens.map_err(|error| match error {
            RequestTokenError::Request(error) => LoginError::Unavailable(error),
            error => request_failed(&error).into(),
        })?;
        let id_token = tokens.extra_fields().id_token.as_ref();
        let id_token = id_token.ok_or_else(|| {
            let message = "the provider returned no ID token; allow the client the scope openid";
            ProviderError(message.to_owned())
        })?;
        let id_token = Secret::new(id_token.secret().clone());
        let client_id = &self.settings.client_id;
        let checking = self
            .provider
            .check_id_token(&id_token, client_id, &started.nonce);
        checking.await?;
        Ok(session_tokens(&tokens, now))
    }
}

fn session_tokens(tokens: &Tokens, now: DateTime<Utc>) -> SessionTokens {
    let lifetime = tokens
        .expires_in()
        .and_then(|lifetime| TimeDelta::from_std(lifetime).ok());
    let refresh_token = tokens.refresh_token();
    SessionTokens {
        access_token: Secret::new(tokens.access_token().secret().clone()),
        refresh_token: refresh_token.map(|token| Secret::new(token.secret().clone())),
        expires_at: lifetime.and_then(|lifetime| now.checked_add_signed(lifetime)),
        failed_refresh: None,
    }
}

/// A failed login.
pub(crate) enum LoginError {
    /// The message can contain the provider's internal address.
    Unavailable(ProviderError),
    /// The message is for the user.
    Refused(ProviderError),
}

impl From<ProviderError> for LoginError {
    fn from(error: ProviderError) -> Self {
        Self::Refused(error)
    }
}

/// Returns the message of a failed token request. A malformed response is omitted: it can contain a token.
fn request_failed(error: &RequestTokenError<ProviderError, BasicErrorResponse>) -> ProviderError {
    ProviderError(match error {
        RequestTokenError::ServerResponse(response) => {
            format!(
                "the provider refuses the request for a token: {}",
                response.error().as_ref()
            )
        }
        RequestTokenError::Request(error) => error.0.clone(),
        RequestTokenError::Parse(..) => "the provider's response is malformed".to_owned(),
        RequestTokenError::Other(message) => message.clone(),
    })
}

/// The parameter with the service for which a token is requested.
const RESOURCE: &str = "resource";

/// Maximum number of logins that wait for the identity provider. The users are not authenticated yet.
const LOGINS_IN_PROGRESS_MAX: usize = 16;

/// Maximum number of these logins of clients in one network, so that forged callbacks of one client don't block the logins of
/// others.
const LOGINS_OF_NETWORK_MAX: usize = 4;

/// The age at which the provider's endpoints are looked up again.
const ENDPOINTS_AGE_MAX: Duration = Duration::from_mins(5);

/// The time for which a failed request to the provider is not repeated.
const FAILURE_AGE_MAX: Duration = Duration::from_secs(5);

/// The remaining lifetime below which an access token is refreshed.
const REFRESHED_BEFORE_EXPIRY: TimeDelta = TimeDelta::seconds(30);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::session::{SessionLimits, Sessions};
    use async_trait::async_trait;

    /// A provider that responds to no request, or only to the look-up of the endpoints, and counts the others.
    #[derive(Default)]
    struct NoProvider {
        endpoints: Option<Endpoints>,
        requests: AtomicUsize,
    }

    impl NoProvider {
        fn no_response<T>(&self) -> Result<T, ProviderError> {
            self.requests.fetch_add(1, Ordering::SeqCst);
            Err(ProviderError("no response".to_owned()))
        }
    }

    #[async_trait]
    impl IdentityProvider for NoProvider {
        async fn endpoints(&self) -> Result<Endpoints, ProviderError> {
            self.endpoints
                .clone()
                .map_or_else(|| self.no_response(), Ok)
        }

        async fn send(
            &self,
            _: http::Request<Vec<u8>>,
        ) -> Result<http::Response<Vec<u8>>, ProviderError> {
            self.no_response()
        }

        async fn actor(&self, _: &Secret) -> Result<Actor, ProviderError> {
            Err(ProviderError("no actor".to_owned()))
        }

        async fn check_id_token(&self, _: &Secret, _: &str, _: &str) -> Result<(), ProviderError> {
            Err(ProviderError("no nonce".to_owned()))
        }
    }

    fn login(provider: Arc<NoProvider>) -> Login {
        let settings = ConsoleSettings {
            origin: "https://console.example".to_owned(),
            client_id: "console".to_owned(),
            client_secret: None,
            scopes: vec!["openid".to_owned()],
            resource: None,
            sessions: SessionLimits {
                age_max: Duration::from_secs(1),
                idle_max: Duration::from_secs(1),
                sessions_max: 1,
                sessions_per_actor_max: 1,
            },
        };
        Login::new(settings, provider)
    }

    #[test]
    fn one_login_past_a_limit_is_refused_until_another_ends() {
        let login = login(Arc::default());
        let permit = |network: u8| login.permit(IpAddr::from([192, 0, 2, network]));
        let networks = LOGINS_IN_PROGRESS_MAX.div_ceil(LOGINS_OF_NETWORK_MAX);
        let mut permits = Vec::new();
        for network in 1..=u8::try_from(networks).unwrap() {
            permits.extend((0..LOGINS_OF_NETWORK_MAX).map(|_| permit(network).unwrap()));
            let refused = permit(network).err().unwrap();
            assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
        }
        assert!(permit(0).is_err());
        permits.pop();
        assert!(permit(0).is_ok());
    }

    #[tokio::test]
    async fn a_failed_look_up_of_the_endpoints_is_not_repeated_at_once() {
        let provider = Arc::new(NoProvider::default());
        let login = login(Arc::clone(&provider));
        let started = StartedLogin::new("/console");
        for _ in 0..2 {
            assert!(login.page(&started).await.is_err());
            let failed = login.exchange(&started, "code", DateTime::UNIX_EPOCH).await;
            assert!(matches!(failed, Err(LoginError::Unavailable(_))));
        }
        assert_eq!(provider.requests.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_failed_refresh_is_not_repeated_at_once() {
        let url = || "https://provider.example".to_owned();
        let provider = Arc::new(NoProvider {
            endpoints: Some(Endpoints {
                authorization: url(),
                token: url(),
                logout: None,
            }),
            ..NoProvider::default()
        });
        let login = Arc::new(login(Arc::clone(&provider)));
        let now = DateTime::UNIX_EPOCH;
        let tokens = SessionTokens {
            access_token: Secret::new("access".to_owned()),
            refresh_token: Some(Secret::new("refresh".to_owned())),
            expires_at: Some(now + TimeDelta::seconds(1)),
            failed_refresh: None,
        };
        let sessions = Sessions::new(login.settings.sessions);
        let actor = Actor::parse("uaa-user:a").unwrap();
        let id = sessions.start(actor, tokens, now).unwrap();
        let session = sessions.find(&id, now, true).unwrap();
        for seconds in [0, 0, 1, 1] {
            let now = now + TimeDelta::seconds(seconds);
            let token = login.access_token(&session, now).await;
            assert_eq!(token.is_ok(), seconds == 0);
        }
        assert_eq!(provider.requests.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn origins_are_as_browsers_send_them() {
        for (address, expected) in [
            ("https://a.example", Some("https://a.example")),
            ("https://A.example:08844", Some("https://a.example:8844")),
            ("https://a.example:443/", Some("https://a.example")),
            ("https://[0:0::1]:8844", Some("https://[::1]:8844")),
            ("https://[::1", None),
            ("https://a.example/b", None),
            ("https://a.example?b", None),
            ("https://a.example#b", None),
            ("https://b@a.example", None),
            ("http://a.example", None),
            ("a.example", None),
        ] {
            assert_eq!(origin(address).as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn a_started_login_survives_its_cookie() {
        let started = StartedLogin::new("/console?path=/a.b");
        let read = StartedLogin::of_cookie(&started.to_cookie()).unwrap();
        assert_eq!(read.state, started.state);
        assert_eq!(read.nonce, started.nonce);
        assert_eq!(read.verifier, started.verifier);
        assert_eq!(read.then, "/console?path=/a.b");
        for malformed in ["", "a.b.c", "a.b.c.!", "a.b.c.L2E.e"] {
            assert!(StartedLogin::of_cookie(malformed).is_none(), "{malformed}");
        }
    }
}
