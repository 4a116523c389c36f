//! The console: a user interface for browsers, rendered on the server.
//!
//! The console calls the use cases of `keywright-core` as the user of the session. It has no authorization of its own: the
//! server verifies the session's access token on every request, as it does for the API, and audits each access under the same
//! actions. No page contains a secret until the user reveals it, one field at a time.
//!
//! - `login.rs`: the client of the identity provider; `session.rs`: the sessions; `state.rs`: the state of all handlers;
//! - `request.rs`: cookies, forms, and the checks against requests from other sites;
//! - `page.rs`: the frame of every page, and the header fields of every response; `pages/`: one file per page;
//! - `script.js`: adds buttons that copy, to elements with `data-copy`, and refreshes sections with `data-live` and an id;
//! - [`IdentityProvider`]: the port to the server's authentication and to the identity provider.
//!
//! To add a page, add its address to `paths.rs`, write its file in `pages/`, and add its route to [`Console::routes`]. Open it in
//! Chromium in a test in `tests/console/chromium/`, which checks it.

mod login;
mod page;
mod pages;
mod paths;
mod ports;
mod request;
mod session;
mod state;

use std::{pin::Pin, sync::Arc};

use axum::{
    extract::Request,
    http::{Method, StatusCode, request::Parts},
    response::Response,
};
use keywright_core::Secret;

pub use ports::{ConsolePorts, ConsoleSettings, Endpoints, IdentityProvider, ProviderError};
pub use session::SessionLimits;

use login::Login;
use page::{PageError, secured};
use pages::{browse, credential, generate, login as login_pages, overview, set};
use session::{Sessions, Visit};
use state::State;

/// The console.
#[derive(Clone)]
pub struct Console(Arc<State>);

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
            self.open(paths::LOGIN, login_pages::start),
            self.open(paths::CALLBACK, login_pages::finish),
            self.open(paths::LOGGED_OUT, login_pages::logged_out),
            self.open(paths::STYLE, async |_, _| Ok(page::style())),
            self.open(paths::SCRIPT, async |_, _| Ok(page::script())),
            self.open(paths::ICON, async |_, _| Ok(page::icon())),
            self.visited(&get, paths::BROWSE, (Session, Some("FIND")), browse::show),
            self.visited(
                &get,
                paths::OVERVIEW,
                (Session, Some("FIND")),
                overview::show,
            ),
            self.visited(
                &get,
                paths::CREDENTIAL,
                (Session, Some("VIEW")),
                credential::show,
            ),
            self.visited(
                &post,
                paths::REVEAL,
                (ReadingSession, Some("GET")),
                credential::reveal,
            ),
            self.visited(
                &post,
                paths::REGENERATE,
                (Session, Some("REGENERATE")),
                credential::regenerate,
            ),
            self.visited(
                &post,
                paths::DELETE,
                (Session, Some("DELETE")),
                credential::delete,
            ),
            self.visited(&get, paths::GENERATE, (Session, None), generate::show),
            self.visited(
                &post,
                paths::GENERATE,
                (Session, Some("GENERATE")),
                generate::submit,
            ),
            self.visited(&get, paths::SET, (Session, None), set::show),
            self.visited(&post, paths::SET, (Session, Some("SET")), set::submit),
            self.visited(
                &post,
                paths::LOGOUT,
                (ReadingSession, None),
                login_pages::log_out,
            ),
        ]
    }

    /// Returns the access token of the session of a request, and adds the session to the request's extensions.
    ///
    /// # Errors
    /// The response to a request without a valid session, or from another site.
    pub async fn access_token(&self, request: &mut Parts) -> Result<Secret, Response> {
        let state = &self.0;
        let refused = |refusal: PageError| secured(refusal.into_response());
        request::check_site(request, &state.origin).map_err(refused)?;
        let now = state.ports.clock.now();
        let id = request::cookie(&request.headers, session::COOKIE);
        let is_by_user = !request::is_refresh(request);
        let Some((id, session)) =
            id.and_then(|id| Some((id, state.sessions.find(id, now, is_by_user)?)))
        else {
            return Err(secured(login_pages::without_session(request)));
        };
        match state.login.access_token(&session, now).await {
            Ok(token) => {
                request.extensions.insert(session);
                Ok(token)
            }
            Err(error) => {
                tracing::debug!(%error, "ended a console session");
                state.sessions.end(id);
                Err(secured(login_pages::without_session(request)))
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
            StatusCode::UNAUTHORIZED => login_pages::session_over(method, target),
            status => PageError::new(status, message).into_response(),
        })
    }

    fn open<F, R>(&self, path: &'static str, handler: F) -> ConsoleRoute
    where
        F: Fn(Arc<State>, Request) -> R + Send + Sync + Copy + 'static,
        R: Future<Output = Result<Response, PageError>> + Send + 'static,
    {
        let state = Arc::clone(&self.0);
        ConsoleRoute {
            method: Method::GET,
            path,
            access: Access::Open,
            action: None,
            handle: Box::new(move |request| {
                let responding = handler(Arc::clone(&state), request);
                Box::pin(async move {
                    secured(responding.await.unwrap_or_else(PageError::into_response))
                })
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
        R: Future<Output = Result<Response, PageError>> + Send + 'static,
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
                    let visit = Visit::of(&request);
                    let responding = match visit.clone() {
                        Some(visit) => handler(state, visit, request).await,
                        None => Err(PageError::new(
                            StatusCode::UNAUTHORIZED,
                            "there is no session",
                        )),
                    };
                    let refused = |error: PageError| error.into_response_to(visit.as_ref());
                    secured(responding.unwrap_or_else(refused))
                })
            }),
        }
    }
}
