//! Login in the browser: the authorization code grant with PKCE (RFC 6749, RFC 7636, RFC 8252), and the listener for the browser's
//! redirection on the loopback interface (RFC 8252, section 7.3).

use std::{
    convert::Infallible,
    io,
    net::Ipv4Addr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use aws_lc_rs::{
    constant_time::verify_slices_are_equal,
    digest::{SHA256, digest},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use reqwest::Url;
use tokio::{
    net::{TcpListener, TcpStream},
    select,
    task::JoinSet,
    time::timeout,
};

use super::{
    discovery::Endpoints,
    error::Error,
    grant::{Tokens, UserAction},
    provider::IdentityProvider,
};
use crate::Secret;

/// Shows the login page and exchanges the code from the browser's redirection for tokens.
pub(super) async fn tokens_by_browser(
    provider: &IdentityProvider<'_>,
    endpoints: &Endpoints,
) -> Result<Tokens, Error> {
    let page = endpoints.authorization.as_ref();
    let page = page.ok_or(Error::GrantUnsupported("authorization_endpoint"))?;
    if endpoints.lacks_s256 {
        return Err(Error::GrantUnsupported(
            "S256 in code_challenge_methods_supported",
        ));
    }
    let (state, verifier) = (random()?, random()?);
    let failed = |cause: std::io::Error| {
        Error::Configuration(format!(
            "could not listen on 127.0.0.1 for the browser: {cause}"
        ))
    };
    let redirect = Redirect::listen(state.expose().to_owned())
        .await
        .map_err(failed)?;
    let redirect_uri = redirect.uri().map_err(failed)?;
    let challenge = digest(&SHA256, verifier.expose().as_bytes());
    let challenge = URL_SAFE_NO_PAD.encode(challenge);
    let mut url = Url::parse(page).map_err(|_| Error::AddressMalformed(page.clone()))?;
    url.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", provider.public_client().id)
        .append_pair("redirect_uri", &redirect_uri)
        .append_pair("state", state.expose())
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256")
        .extend_pairs(provider.options.initial_parameters());
    provider.report(&UserAction::OpenPage { page: url.into() });
    let response = redirect.response(WAIT_MAX).await.map_err(failed)?;
    let response = response.ok_or(Error::LoginTimedOut)?;
    check_issuer(endpoints, response.get("iss"))?;
    if let Some(error) = response.get("error") {
        let description = response.get("error_description");
        return Err(Error::LoginDenied(description.unwrap_or(error).to_owned()));
    }
    let code = response.get("code").unwrap_or_default();
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("redirect_uri", &redirect_uri),
        ("code_verifier", verifier.expose()),
    ];
    let form = [&form[..], &provider.options.resource_parameter()].concat();
    provider
        .request_tokens(endpoints, provider.public_client(), form)
        .await
}

/// Checks the issuer in the response, so that the code is only sent to the provider that issued it (RFC 9207).
fn check_issuer(endpoints: &Endpoints, named: Option<&str>) -> Result<(), Error> {
    let is_checked = match named {
        Some(named) => endpoints.issuer.as_deref() == Some(named),
        None => !endpoints.names_issuer,
    };
    if is_checked {
        Ok(())
    } else {
        Err(Error::LoginDenied(
            "the parameter iss in the browser's redirection is missing or names another provider"
                .to_owned(),
        ))
    }
}

/// Returns 32 random bytes in base64url: 43 characters, as RFC 7636 recommends for a code verifier.
fn random() -> Result<Secret, Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| {
        Error::Configuration("the system's random number generator failed".to_owned())
    })?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}

/// A listener for the redirection of one authorization request.
struct Redirect {
    listener: TcpListener,
    state: Arc<str>,
}

/// The parameters of the redirection.
struct RedirectResponse(Vec<(String, String)>);

impl Redirect {
    /// Listens on a free port of 127.0.0.1 for the redirection with this `state`.
    async fn listen(state: String) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        Ok(Self {
            listener,
            state: state.into(),
        })
    }

    /// Returns the address to which the provider redirects the browser.
    fn uri(&self) -> io::Result<String> {
        let port = self.listener.local_addr()?.port();
        Ok(format!("http://127.0.0.1:{port}{PATH}"))
    }

    /// Waits for the redirection, and returns its parameters once the browser has received the page. `None` after `wait_max`.
    ///
    /// Requests without the right `state` get 404 and don't end the wait: any local program can send them.
    async fn response(self, wait_max: Duration) -> io::Result<Option<RedirectResponse>> {
        let received = async {
            let mut connections = JoinSet::new();
            loop {
                select! {
                    accepted = self.listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                        let (stream, _) = accepted?;
                        connections.spawn(serve(stream, Arc::clone(&self.state)));
                    }
                    Some(served) = connections.join_next() => {
                        if let Ok(Some(response)) = served {
                            return Ok(response);
                        }
                    }
                }
            }
        };
        timeout(wait_max, received).await.ok().transpose()
    }
}

impl RedirectResponse {
    /// Parses the query of a request. `None` if `state` differs, if a parameter is duplicated, or if both `code` and `error` are
    /// missing.
    fn of_query(query: &str, state: &str) -> Option<Self> {
        let parameters: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let response = Self(parameters);
        let names: Vec<&str> = response.0.iter().map(|(name, _)| name.as_str()).collect();
        let is_single = |name: &&str| names.iter().filter(|have| *have == name).count() == 1;
        let given = response.get("state").unwrap_or_default();
        let is_for_this_login = verify_slices_are_equal(given.as_bytes(), state.as_bytes()).is_ok();
        let is_response = response.get("code").is_some() || response.get("error").is_some();
        (is_for_this_login && is_response && names.iter().all(is_single)).then_some(response)
    }

    fn get(&self, name: &str) -> Option<&str> {
        let mut parameters = self.0.iter();
        let found = parameters.find(|(have, _)| have == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Serves one request of a connection. If it is the redirection, returns its parameters.
async fn serve(stream: TcpStream, state: Arc<str>) -> Option<RedirectResponse> {
    let received = Mutex::new(None);
    let service = service_fn(|request: Request<Incoming>| {
        let response = of_request(&request, &state);
        let page = page(response.is_some());
        if response.is_some() {
            *received.lock().unwrap_or_else(PoisonError::into_inner) = response;
        }
        std::future::ready(Ok::<_, Infallible>(page))
    });
    // The code is valid even if the browser disconnects before it has received the page.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    received
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
}

fn of_request(request: &Request<Incoming>, state: &str) -> Option<RedirectResponse> {
    let is_for_us = request.method() == Method::GET && request.uri().path() == PATH;
    let query = request.uri().query().filter(|_| is_for_us)?;
    RedirectResponse::of_query(query, state)
}

fn page(is_redirection: bool) -> Response<Full<Bytes>> {
    let (status, text) = if is_redirection {
        (
            StatusCode::OK,
            "You can close this page and return to the terminal.",
        )
    } else {
        (StatusCode::NOT_FOUND, "Not found.")
    };
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Keywright</title><p>{text}</p></html>\n"
    );
    let mut response = Response::new(Full::from(html));
    *response.status_mut() = status;
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'"),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        let value = hyper::header::HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

const WAIT_MAX: Duration = Duration::from_mins(10);

const PATH: &str = "/callback";

/// The maximum number of connections at a time. Browsers open some without using them.
const CONNECTIONS_MAX: usize = 16;

/// The longest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// The longest time to receive the head of a request.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Sends a request and returns the response.
    async fn send(uri: &str, request: &str) -> String {
        let authority = uri.strip_prefix("http://").unwrap();
        let (authority, _) = authority.split_once('/').unwrap();
        let mut stream = TcpStream::connect(authority).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = Vec::new();
        // A server that refuses a head that is too long may reset the connection.
        let _ = stream.read_to_end(&mut response).await;
        String::from_utf8(response).unwrap()
    }

    fn get(target: &str) -> String {
        format!("GET {target} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    }

    #[tokio::test]
    async fn only_the_redirection_with_the_right_state_ends_the_wait() {
        let redirect = Redirect::listen("s".to_owned()).await.unwrap();
        let uri = redirect.uri().unwrap();
        let waiting = tokio::spawn(redirect.response(Duration::from_mins(1)));
        let too_long = format!("/callback?code=c&state=s&x={}", "x".repeat(HEAD_BYTES_MAX));
        for (request, status) in [
            (get("/"), "404"),
            (get("/favicon.ico"), "404"),
            (get("/callback"), "404"),
            (get("/callback?code=c"), "404"),
            (get("/callback?state=s"), "404"),
            (get("/callback?code=c&state=t"), "404"),
            (get("/callback?code=c&state=s&state=s"), "404"),
            (get("/callback?code=c&code=d&state=s"), "404"),
            (get("/callback/?code=c&state=s"), "404"),
            (
                get("/callback?code=c&state=s").replace("GET", "POST"),
                "404",
            ),
            (get(&too_long), "431"),
            (get("/callback?code=c%20d&state=s&iss=x"), "200"),
        ] {
            let response = send(&uri, &request).await;
            let line = response.lines().next().unwrap_or_default();
            assert!(line.contains(status), "{request}: {response}");
        }
        let response = waiting.await.unwrap().unwrap().unwrap();
        assert_eq!(response.get("code"), Some("c d"));
        assert_eq!(response.get("iss"), Some("x"));
        assert_eq!(response.get("error"), None);
    }

    #[tokio::test]
    async fn the_page_loads_no_resources_and_names_the_next_step() {
        let redirect = Redirect::listen("s".to_owned()).await.unwrap();
        let uri = redirect.uri().unwrap();
        let waiting = tokio::spawn(redirect.response(Duration::from_mins(1)));
        let response = send(&uri, &get("/callback?error=access_denied&state=s")).await;
        assert!(response.contains("return to the terminal"), "{response}");
        assert!(response.contains("default-src 'none'"), "{response}");
        assert!(response.contains("no-store"), "{response}");
        let response = waiting.await.unwrap().unwrap().unwrap();
        assert_eq!(response.get("error"), Some("access_denied"));
    }

    #[tokio::test]
    async fn idle_connections_do_not_delay_the_redirection() {
        let redirect = Redirect::listen("s".to_owned()).await.unwrap();
        let uri = redirect.uri().unwrap();
        let address = redirect.listener.local_addr().unwrap();
        let waiting = tokio::spawn(redirect.response(Duration::from_mins(1)));
        let mut idle = Vec::new();
        for _ in 1..CONNECTIONS_MAX {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        send(&uri, &get("/callback?code=c&state=s")).await;
        assert!(waiting.await.unwrap().unwrap().is_some());
    }

    #[tokio::test]
    async fn connections_above_the_limit_wait_until_another_closes() {
        let redirect = Redirect::listen("s".to_owned()).await.unwrap();
        let uri = redirect.uri().unwrap();
        let address = redirect.listener.local_addr().unwrap();
        let waiting = tokio::spawn(redirect.response(Duration::from_mins(1)));
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let redirection = get("/callback?code=c&state=s");
        let pending = tokio::spawn(async move { send(&uri, &redirection).await });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!pending.is_finished());
        idle.pop();
        assert!(pending.await.unwrap().contains("200 OK"));
        assert!(waiting.await.unwrap().unwrap().is_some());
    }

    #[tokio::test]
    async fn without_a_redirection_the_wait_ends_after_the_maximum_time() {
        let redirect = Redirect::listen("s".to_owned()).await.unwrap();
        let waited = redirect.response(Duration::from_millis(20)).await;
        assert!(waited.unwrap().is_none());
    }
}
