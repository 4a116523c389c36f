//! Login and logout.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::{
    extract::Request,
    http::{
        Extensions, HeaderMap, HeaderValue, Method, StatusCode, header::SET_COOKIE, request::Parts,
    },
    response::Response,
};
use maud::html;

use crate::{
    login::{LoginError, StartedLogin},
    page::{Page, PageError, PageResult, see_other},
    paths::{BROWSE, LOGGED_OUT, LOGIN, link},
    ports::ProviderError,
    request::{Fields, cookie, is_cross_site_navigation},
    session,
    state::{State, Visit},
};

/// Starts a login: redirects the browser to the provider's login page.
pub(crate) async fn start(state: Arc<State>, request: Request) -> PageResult {
    let query = Fields::of_query(request.uri());
    let started = StartedLogin::new(local_path(query.text(THEN)));
    let _permit = state.login.permit(network_of(request.extensions()))?;
    let page = state
        .login
        .page(&started)
        .await
        .map_err(|error| unavailable(&error))?;
    let mut response = see_other(&page);
    let cookie = format!(
        "{LOGIN_COOKIE}={}; {LOGIN_COOKIE_ATTRIBUTES}",
        started.to_cookie()
    );
    set_cookie(response.headers_mut(), &cookie);
    Ok(response)
}

/// Finishes a login: the provider redirected the browser here with a code.
pub(crate) async fn finish(state: Arc<State>, request: Request) -> PageResult {
    let (request, _) = request.into_parts();
    let query = Fields::of_query(&request.uri);
    let started = cookie(&request.headers, LOGIN_COOKIE).and_then(StartedLogin::of_cookie);
    let started = started.filter(|started| {
        let (expected, returned) = (started.state.as_bytes(), query.text("state").as_bytes());
        !expected.is_empty() && verify_slices_are_equal(expected, returned).is_ok()
    });
    // Without the state, the cookie is kept: it may belong to another login, which is in progress.
    let started = started.ok_or_else(|| {
        let message = "the login was not started in this browser, or it took too long";
        PageError::bad_request(message).with_link(LOGIN, "Log in again")
    })?;
    let mut response = match begin_session(&state, &request, &query, &started).await {
        Ok(id) => {
            let mut response = continue_page(local_path(&started.then));
            let cookie = format!("{}={id}; {SESSION_COOKIE_ATTRIBUTES}", session::COOKIE);
            set_cookie(response.headers_mut(), &cookie);
            response
        }
        Err(refusal) => refusal.with_link(LOGIN, "Log in again").into_response(),
    };
    let removed = format!("{LOGIN_COOKIE}=; {REMOVED_COOKIE_ATTRIBUTES}");
    set_cookie(response.headers_mut(), &removed);
    Ok(response)
}

/// Checks the provider's redirection, and starts a session. Returns its id.
async fn begin_session(
    state: &State,
    request: &Parts,
    query: &Fields,
    started: &StartedLogin,
) -> Result<String, PageError> {
    if query.all("error").next().is_some() {
        let message = format!(
            "the identity provider refuses the login: {}",
            query.text("error")
        );
        return Err(PageError::new(StatusCode::FORBIDDEN, message));
    }
    let _permit = state.login.permit(network_of(&request.extensions))?;
    let now = state.ports.clock.now();
    let refused = |error: ProviderError| {
        tracing::info!(%error, "refused a login to the console");
        PageError::new(StatusCode::FORBIDDEN, error.0)
    };
    let tokens = state.login.exchange(started, query.text("code"), now).await;
    let tokens = tokens.map_err(|error| match error {
        LoginError::Unavailable(error) => unavailable(&error),
        LoginError::Refused(error) => refused(error),
    })?;
    let actor = state
        .ports
        .provider
        .actor(&tokens.access_token)
        .await
        .map_err(refused)?;
    if let Some(earlier) = cookie(&request.headers, session::COOKIE) {
        state.sessions.end(earlier);
    }
    let id = state.sessions.start(actor, tokens, now);
    id.ok_or_else(|| {
        let message = "too many users are logged in to the console; try again later";
        PageError::new(StatusCode::SERVICE_UNAVAILABLE, message)
    })
}

pub(crate) async fn log_out(visit: Visit, request: Request) -> PageResult {
    let id = cookie(request.headers(), session::COOKIE).map(str::to_owned);
    Fields::of_form(request, &visit.session).await?;
    if let Some(id) = id {
        visit.state.sessions.end(&id);
    }
    let mut response = see_other(LOGGED_OUT);
    let removed = format!("{}=; {REMOVED_COOKIE_ATTRIBUTES}", session::COOKIE);
    set_cookie(response.headers_mut(), &removed);
    Ok(response)
}

/// Shows that the session has ended.
pub(crate) async fn logged_out(state: Arc<State>, _: Request) -> PageResult {
    let logout = state.login.logout_page();
    Ok(Page::new("Logged out").render(&html! {
        p { "You are logged out of the console. You may still be logged in at the identity provider." }
        @if let Some(url) = logout { p { a.button href=(url) { "Log out at the identity provider" } } }
        p { a.button href=(LOGIN) { "Log in" } }
    }))
}

pub(crate) fn without_session(request: &Parts) -> Response {
    let target = request.uri.path_and_query().map(ToString::to_string);
    let target = target.unwrap_or_default();
    if is_cross_site_navigation(request) {
        // The browser withheld the cookie, because a link on another site leads here. It sends the cookie to the next page.
        return continue_page(local_path(&target));
    }
    session_over(&request.method, &target)
}

/// Returns the response to a request whose session has ended: the login, and then the same page again.
pub(crate) fn session_over(method: &Method, target: &str) -> Response {
    if matches!(*method, Method::GET | Method::HEAD) {
        return see_other(&link(LOGIN, [(THEN, local_path(target))]));
    }
    let message = "your session has ended; nothing was changed";
    PageError::new(StatusCode::UNAUTHORIZED, message)
        .with_link(LOGIN, "Log in again")
        .into_response()
}

/// Returns a page that leads to another page of the console. The browser sends the session's cookie with the next request,
/// because a page of the same site caused it.
fn continue_page(then: &str) -> Response {
    let page = Page::new("Continue").leading_to(then);
    page.render(&html! {
        p { a.button href=(then) { "Continue to the console" } }
    })
}

/// Returns the path if it is a page of the console, or else the first page. Never another site.
fn local_path(path: &str) -> &str {
    let (page, query) = path.split_once('?').unwrap_or((path, ""));
    let is_local = page == BROWSE || page.starts_with("/console/");
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'-' || byte == b'/';
    let is_text = page.bytes().all(is_plain) && query.bytes().all(|byte| byte.is_ascii_graphic());
    if is_local && is_text && path.len() <= PATH_BYTES_MAX {
        path
    } else {
        BROWSE
    }
}

/// Returns the network of a request's client. Requests without a connection share one.
fn network_of(extensions: &Extensions) -> IpAddr {
    let network = extensions.get::<IpAddr>().copied();
    network.unwrap_or(Ipv6Addr::UNSPECIFIED.into())
}

fn unavailable(error: &ProviderError) -> PageError {
    tracing::warn!(%error, "the identity provider is not available for a login to the console");
    let message = "the identity provider does not respond; try again later";
    PageError::new(StatusCode::SERVICE_UNAVAILABLE, message)
}

fn set_cookie(headers: &mut HeaderMap, cookie: &str) {
    if let Ok(mut cookie) = HeaderValue::try_from(cookie) {
        cookie.set_sensitive(true);
        headers.append(SET_COOKIE, cookie);
    }
}

/// The query parameter with the page to show after a login.
const THEN: &str = "then";

/// Maximum length of the path and query of the page to show after a login. A longer one leads to the first page: browsers limit
/// the size of cookies.
const PATH_BYTES_MAX: usize = 2_048;

const LOGIN_COOKIE: &str = "__Host-keywright-login";

/// Lax, because the provider's redirection comes from another site.
const LOGIN_COOKIE_ATTRIBUTES: &str = "Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=600";
const SESSION_COOKIE_ATTRIBUTES: &str = "Path=/; Secure; HttpOnly; SameSite=Strict";
const REMOVED_COOKIE_ATTRIBUTES: &str = "Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_console_follow_a_login() {
        for path in [
            "/console",
            "/console?path=/a",
            "/console/credential?name=%2Fa",
        ] {
            assert_eq!(local_path(path), path);
        }
        let too_long = format!("/console?{}", "a".repeat(PATH_BYTES_MAX));
        for path in [
            "",
            "/",
            "/api/v1/data",
            "/consoles",
            "//other.example/console/",
            "https://other.example/console/",
            "/\\other.example/console/",
            "/console/\\..",
            "/console/../identity",
            "/console/%2e%2e/identity",
            "/console/a\r\nSet-Cookie: b",
            "/console/ä",
            &too_long,
        ] {
            assert_eq!(local_path(path), BROWSE, "{path}");
        }
    }
}
