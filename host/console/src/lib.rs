//! The console: a user interface for browsers, rendered on the server.
//!
//! The console calls the use cases of `keywright-core` as the user of the session. It has no authorization of its own: the
//! server verifies the session's access token on every request, as it does for the API, and audits each access. No page contains
//! a secret until the user reveals it, one field at a time.
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

pub use login::origin;
pub use ports::{ConsolePorts, ConsoleSettings, Endpoints, IdentityProvider, ProviderError};
pub use session::SessionLimits;

use login::Login;
use page::{PageError, PageResult, secured};
use pages::{
    browse, certificate, certificates, credential, download, expiring, explain, generate,
    keys_and_plugins, login as login_pages, overview, permission, permissions, rotation, set,
};
use session::{Session, Sessions};
use state::{State, Visit};

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
    pub fn new(settings: ConsoleSettings, ports: ConsolePorts) -> Self {
        let sessions = Sessions::new(settings.sessions);
        Self(Arc::new(State {
            origin: settings.origin.clone(),
            login: Arc::new(Login::new(settings, Arc::clone(&ports.provider))),
            sessions,
            ports,
        }))
    }

    /// Returns all routes.
    pub fn routes(&self) -> Vec<ConsoleRoute> {
        let (find, view) = (Some("FIND"), Some("VIEW"));
        let permissions_of = Some("GET_PERMISSIONS");
        let certificates_of = Some("GET_ALL_CERTIFICATES");
        let move_version = Some("UPDATE_TRANSITIONAL_VERSION");
        vec![
            self.open(paths::LOGIN, login_pages::start),
            self.open(paths::CALLBACK, login_pages::finish),
            self.open(paths::LOGGED_OUT, login_pages::logged_out),
            self.open(paths::STYLE, async |_, _| Ok(page::style())),
            self.open(paths::SCRIPT, async |_, _| Ok(page::script())),
            self.open(paths::ICON, async |_, _| Ok(page::icon())),
            self.page(paths::BROWSE, find, browse::show),
            self.page(paths::OVERVIEW, find, overview::show),
            self.page(paths::EXPIRING, find, expiring::show),
            self.page(paths::CREDENTIAL, view, credential::show),
            reading_form(self.page(paths::REVEAL, Some("GET"), credential::reveal)),
            form(self.page(
                paths::REGENERATE,
                Some("REGENERATE"),
                credential::regenerate,
            )),
            form(self.page(paths::DELETE, Some("DELETE"), credential::delete)),
            self.page(paths::GENERATE, None, generate::show),
            form(self.page(paths::GENERATE, Some("GENERATE"), generate::submit)),
            self.page(paths::SET, None, set::show),
            form(self.page(paths::SET, Some("SET"), set::submit)),
            self.page(paths::CERTIFICATES, certificates_of, certificates::show),
            self.page(paths::CERTIFICATE, view, certificate::show),
            self.page(paths::DOWNLOAD, Some("DOWNLOAD"), download::send),
            self.page(paths::ROTATION, view, rotation::show),
            form(self.page(paths::ROTATION, move_version, rotation::advance)),
            self.page(paths::PERMISSIONS, permissions_of, permissions::show),
            self.page(paths::EXPLAIN, Some("EXPLAIN_PERMISSIONS"), explain::show),
            self.page(paths::ADD_PERMISSION, None, permission::show_form),
            form(self.page(
                paths::ADD_PERMISSION,
                Some("ADD_PERMISSIONS"),
                permission::add,
            )),
            self.page(paths::PERMISSION, permissions_of, permission::show),
            form(self.page(
                paths::CHANGE_PERMISSION,
                Some("PATCH_PERMISSIONS"),
                permission::change,
            )),
            form(self.page(
                paths::REMOVE_PERMISSION,
                Some("DELETE_PERMISSIONS"),
                permission::remove,
            )),
            self.page(paths::KEYS_AND_PLUGINS, None, keys_and_plugins::show),
            reading_form(self.page(paths::LOGOUT, None, login_pages::log_out)),
            self.page(paths::UNKNOWN, None, no_such_page),
            reading_form(self.page(paths::UNKNOWN, None, no_such_page)),
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
        let is_by_user = request::is_by_user(&request.method, &request.headers);
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
        R: Future<Output = PageResult> + Send + 'static,
    {
        let state = Arc::clone(&self.0);
        ConsoleRoute {
            method: Method::GET,
            path,
            access: Access::Open,
            action: None,
            handle: Box::new(move |request| {
                let state = Arc::clone(&state);
                Box::pin(async move {
                    let responding = handler(Arc::clone(&state), request).await;
                    let refused = |failure| state.error(failure).into_response();
                    secured(responding.unwrap_or_else(refused))
                })
            }),
        }
    }

    /// Returns the route of a page, which needs a session.
    fn page<F, R>(
        &self,
        path: &'static str,
        action: Option<&'static str>,
        handler: F,
    ) -> ConsoleRoute
    where
        F: Fn(Visit, Request) -> R + Send + Sync + Copy + 'static,
        R: Future<Output = PageResult> + Send + 'static,
    {
        let state = Arc::clone(&self.0);
        ConsoleRoute {
            method: Method::GET,
            path,
            access: Access::Session,
            action,
            handle: Box::new(move |request| {
                let state = Arc::clone(&state);
                Box::pin(async move {
                    let session = request.extensions().get::<Arc<Session>>().cloned();
                    let responding = match Visit::of(Arc::clone(&state), &request) {
                        Some(visit) => handler(visit, request).await,
                        None => Err(PageError::new(StatusCode::UNAUTHORIZED, NO_SESSION).into()),
                    };
                    let refused = |failure| {
                        let error = state.error(failure);
                        error.into_response_to(session.as_deref())
                    };
                    secured(responding.unwrap_or_else(refused))
                })
            }),
        }
    }
}

/// Turns the route of a page into the route of a form.
fn form(route: ConsoleRoute) -> ConsoleRoute {
    ConsoleRoute {
        method: Method::POST,
        ..route
    }
}

/// Turns the route of a page into the route of a form that writes nothing.
fn reading_form(route: ConsoleRoute) -> ConsoleRoute {
    ConsoleRoute {
        method: Method::POST,
        access: Access::ReadingSession,
        ..route
    }
}

/// Responds to requests for paths without a page.
async fn no_such_page(_: Visit, _: Request) -> PageResult {
    let message = "the console has no page at this address";
    Err(PageError::new(StatusCode::NOT_FOUND, message).into())
}

/// The message if the server did not authenticate the caller of a page.
const NO_SESSION: &str = "there is no session";
