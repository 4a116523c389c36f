//! The console: a user interface for browsers, rendered on the server.
//!
//! The console calls the use cases of `keywright-core` as the user of the session. It has no authorization of its own: the
//! server verifies the session's access token on every request, as it does for the API, and audits each access under the same
//! actions. No page contains a secret until the user reveals it, one field at a time.
//!
//! - `login.rs`: login by OIDC, and the refresh of tokens; `session.rs`: the sessions;
//! - `request.rs`: cookies, forms, and the checks against requests from other sites;
//! - `page.rs`: the frame of every page, and the header fields of every response; `pages/`: one file per page;
//! - [`IdentityProvider`]: the port to the server's authentication and to the identity provider.
//!
//! To add a page, write its file in `pages/` and add its route to [`Console::routes`].

mod login;
mod page;
mod pages;
mod request;
mod session;

use std::{pin::Pin, sync::Arc};

use async_trait::async_trait;
use axum::{
    extract::Request,
    http::{self, Method, StatusCode, request::Parts},
    response::Response,
};
use keywright_core::{
    Failure, Secret, authorization::Caller, credential::Credentials,
    encryption_key::EncryptionKeys, permission::Actor, ports::Clock,
};

pub use session::SessionLimits;

use login::Login;
use page::{Refusal, secured};
use pages::{browse, credential, generate, overview, set};
use session::{Session, Sessions};

/// The console.
#[derive(Clone)]
pub struct Console(Arc<State>);

/// The settings of the console.
#[derive(Debug)]
pub struct ConsoleSettings {
    /// The origin at which browsers reach the server: `https`, host and port, without a path.
    pub origin: String,
    /// The id of the identity provider's client.
    pub client_id: String,
    /// The client's secret, if it has one.
    pub client_secret: Option<Secret>,
    /// The scopes to request. They must include `openid`.
    pub scopes: Vec<String>,
    /// The limits of sessions.
    pub sessions: SessionLimits,
}

/// The dependencies of the console.
pub struct ConsolePorts {
    /// The use cases of credentials.
    pub credentials: Arc<Credentials>,
    /// The use cases of encryption keys.
    pub encryption_keys: EncryptionKeys,
    /// The identity provider.
    pub provider: Arc<dyn IdentityProvider>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Returns the status and the message of a failure, as in the API.
    pub status_and_message: fn(Failure) -> (StatusCode, String),
}

/// The identity provider, and the verification of its tokens.
#[async_trait]
pub trait IdentityProvider: Send + Sync {
    /// Returns the provider's endpoints.
    async fn endpoints(&self) -> Result<Endpoints, ProviderError>;

    /// Sends a request to the token endpoint. A successful result has a body that is JSON without duplicate keys.
    async fn send(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> Result<http::Response<Vec<u8>>, ProviderError>;

    /// Verifies an access token like the token of a request to the API, and returns its actor.
    async fn actor(&self, access_token: &Secret) -> Result<Actor, ProviderError>;

    /// Verifies an ID token for this client with this nonce (OIDC Core 1.0, section 3.1.3.7).
    async fn check_id_token(
        &self,
        id_token: &Secret,
        client_id: &str,
        nonce: &str,
    ) -> Result<(), ProviderError>;
}

/// The endpoints of an identity provider.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// The URL of the login page, for browsers.
    pub authorization: String,
    /// The URL for token requests.
    pub token: String,
}

/// A request to the identity provider failed, or one of its tokens was rejected. The message contains no token.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ProviderError(pub String);

/// A route of the console.
pub struct ConsoleRoute {
    /// The HTTP method.
    pub method: Method,
    /// The path.
    pub path: &'static str,
    /// Whether requests need a session.
    pub access: Access,
    /// The action of its requests in the audit trail, or `None` if they are not audited.
    pub action: Option<&'static str>,
    /// The handler.
    pub handle: Handle,
}

/// The handler of a route.
pub type Handle =
    Box<dyn Fn(Request) -> Pin<Box<dyn Future<Output = Response> + Send>> + Send + Sync>;

/// The access that a route requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No session.
    Open,
    /// A session. The route may write, unless its method is GET.
    Session,
    /// A session. The route only reads, although its method is POST.
    ReadingSession,
}

struct State {
    ports: ConsolePorts,
    origin: String,
    login: Login,
    sessions: Sessions,
}

/// A request with a session.
struct Visit {
    caller: Arc<Caller>,
    session: Arc<Session>,
}

impl Console {
    /// Creates the console, without sending a request.
    #[must_use]
    pub fn new(settings: ConsoleSettings, ports: ConsolePorts) -> Self {
        let sessions = Sessions::new(settings.sessions);
        Self(Arc::new(State {
            origin: settings.origin.clone(),
            login: Login::new(settings, Arc::clone(&ports.provider)),
            sessions,
            ports,
        }))
    }

    /// Returns all routes.
    #[must_use]
    pub fn routes(&self) -> Vec<ConsoleRoute> {
        use Access::{ReadingSession, Session};
        let (get, post) = (Method::GET, Method::POST);
        vec![
            self.open(login::LOGIN, login::start),
            self.open(login::CALLBACK, login::finish),
            self.open(login::LOGGED_OUT, login::logged_out),
            self.open(page::STYLE_PATH, page::style),
            self.open(page::ICON_PATH, page::icon),
            self.visited(&get, browse::PATH, (Session, Some("FIND")), browse::show),
            self.visited(
                &get,
                overview::PATH,
                (Session, Some("FIND")),
                overview::show,
            ),
            self.visited(
                &get,
                credential::PATH,
                (Session, Some("VIEW")),
                credential::show,
            ),
            self.visited(
                &post,
                credential::REVEAL,
                (ReadingSession, Some("GET")),
                credential::reveal,
            ),
            self.visited(
                &post,
                credential::REGENERATE,
                (Session, Some("REGENERATE")),
                credential::regenerate,
            ),
            self.visited(
                &post,
                credential::DELETE,
                (Session, Some("DELETE")),
                credential::delete,
            ),
            self.visited(&get, generate::PATH, (Session, None), generate::show),
            self.visited(
                &post,
                generate::PATH,
                (Session, Some("GENERATE")),
                generate::submit,
            ),
            self.visited(&get, set::PATH, (Session, None), set::show),
            self.visited(&post, set::PATH, (Session, Some("SET")), set::submit),
            self.visited(&post, login::LOGOUT, (ReadingSession, None), login::log_out),
        ]
    }

    /// Returns the access token of the session of a request, and adds the session to the request's extensions.
    ///
    /// # Errors
    /// The response to a request without a valid session, or from another site.
    pub async fn access_token(&self, request: &mut Parts) -> Result<Secret, Response> {
        let state = &self.0;
        let refused = |refusal: Refusal| secured(refusal.into_response());
        request::check_site(request, &state.origin).map_err(refused)?;
        let now = state.ports.clock.now();
        let id = request::cookie(&request.headers, session::COOKIE);
        let Some((id, session)) = id.and_then(|id| Some((id, state.sessions.find(id, now)?)))
        else {
            return Err(secured(login::without_session(request)));
        };
        match state.login.access_token(&session, now).await {
            Ok(token) => {
                request.extensions.insert(session);
                Ok(token)
            }
            Err(error) => {
                tracing::debug!(%error, "ended a console session");
                state.sessions.end(id);
                Err(secured(login::without_session(request)))
            }
        }
    }

    /// Returns the page for a request that the server refused before it was handled.
    #[must_use]
    pub fn refused(
        &self,
        method: &Method,
        target: &str,
        status: StatusCode,
        message: &str,
    ) -> Response {
        secured(match status {
            StatusCode::UNAUTHORIZED => login::session_over(method, target),
            status => Refusal::new(status, message).into_response(),
        })
    }

    fn open<F, R>(&self, path: &'static str, handler: F) -> ConsoleRoute
    where
        F: Fn(Arc<State>, Request) -> R + Send + Sync + Copy + 'static,
        R: Future<Output = Result<Response, Refusal>> + Send + 'static,
    {
        let state = Arc::clone(&self.0);
        ConsoleRoute {
            method: Method::GET,
            path,
            access: Access::Open,
            action: None,
            handle: Box::new(move |request| {
                let responding = handler(Arc::clone(&state), request);
                Box::pin(
                    async move { secured(responding.await.unwrap_or_else(Refusal::into_response)) },
                )
            }),
        }
    }

    fn visited<F, R>(
        &self,
        method: &Method,
        path: &'static str,
        (access, action): (Access, Option<&'static str>),
        handler: F,
    ) -> ConsoleRoute
    where
        F: Fn(Arc<State>, Visit, Request) -> R + Send + Sync + Copy + 'static,
        R: Future<Output = Result<Response, Refusal>> + Send + 'static,
    {
        let state = Arc::clone(&self.0);
        ConsoleRoute {
            method: method.clone(),
            path,
            access,
            action,
            handle: Box::new(move |request| {
                let state = Arc::clone(&state);
                Box::pin(async move {
                    let responding = match Visit::of(&request) {
                        Some(visit) => handler(state, visit, request).await,
                        None => Err(Refusal::new(
                            StatusCode::UNAUTHORIZED,
                            "there is no session",
                        )),
                    };
                    secured(responding.unwrap_or_else(Refusal::into_response))
                })
            }),
        }
    }
}

impl Visit {
    fn of(request: &Request) -> Option<Self> {
        let extensions = request.extensions();
        Some(Self {
            caller: Arc::clone(extensions.get::<Arc<Caller>>()?),
            session: Arc::clone(extensions.get::<Arc<Session>>()?),
        })
    }
}

impl State {
    /// Returns the page of a failure, with the status and the message of the API.
    fn failed(&self, failure: Failure) -> Refusal {
        let (status, message) = (self.ports.status_and_message)(failure);
        Refusal::new(status, &message)
    }
}
